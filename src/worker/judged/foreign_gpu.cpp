// Calls of a worker that computes on a GPU, in memory of ours there (worker/judged/gpu_handover.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/misuse.hpp"
#include "device/cuda/launch.hpp"
#include "device/properties.hpp"
#include "measure/cuda_device.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/judged/gpu_memory.hpp"

namespace syslab::worker {
namespace {

// So long a call may take to queue all that it does, before its inputs are given: longer than any takes to launch its
// kernels. One that waits for the GPU itself queues the rest afterwards, and is not waited for so long every time.
constexpr std::chrono::milliseconds kGate{64}, kGateOfWhoWaits{2};
constexpr int kMissesToBelieve = 3;

// Of host memory that both see, for an answer to a question. It is there from the beginning, and its first page is what
// the GPU knows.
constexpr std::size_t kAnswerBytes = 1024;

// A sanitizer may hold up whoever launches a kernel until it has run, and kernels here wait for what is launched later.
bool sharing_wanted() { return gpu_memory_wanted() == GpuMemory::shared && !judge::under_compute_sanitizer(); }

bool failed(const Json& reply) { return std::holds_alternative<Failed>(call_reply_from_json(reply)); }

}  // namespace

void ForeignWorker::share_gpu() {
  if (gpu_ || !options_.shares || !sharing_wanted()) return;
  if (options_.shares->kind == device::Kind::cuda && device::gpu_count() == 0) return;
  SharedTensor answer{.name = "answer", .dtype = DType::f64, .shape = {kAnswerBytes / 8}, .strides = {1}};
  segment_.arrange({}, {&answer, 1});
  try {
    words_ = std::make_unique<FirstPage>(segment_);
    gpu_ = std::make_unique<GpuHandover>(words_->data(), *options_.shares);
    staging_ = std::make_unique<SharedSegment>();
  } catch (const Unsupported&) {  // tensors travel through host memory
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device && error.kind() != ErrorKind::oom) throw;
  }
}

// Right behind a call; what holds clocks down lasts longer than calls.
std::int64_t ForeignWorker::flags_of_gpu() {
  if (options_.device == DeviceKind::cpu) return 0;
  if (!nvml_) {
    nvml_ = std::make_unique<Nvml>();
    if (device::gpu_count() > 0) nvml_device_ = nvml_->device(device::properties({device::Kind::cuda, 0}).uuid);
  }
  return measure::flags_of_clocks(nvml_->slowed_by(nvml_device_).value_or(0));
}

// Others travel through host memory: a function needs its arguments before it is examined, what is called beside others
// needs copies of its own, guards lie in host memory, and who listens to a call's kernels holds them up.
bool ForeignWorker::is_timed(const CallRequest& request) const {
  return !guarded_ && !kernels_wanted_ && !request.options.has("examine") && !request.options.has("streams");
}

// What has no inputs and one small answer has nothing to compute on a GPU; both go through host memory.
bool ForeignWorker::is_question(const CallRequest& request) {
  return request.inputs.empty() && request.outputs.size() == 1 && extent_bytes(request.outputs[0]) <= kAnswerBytes;
}

// Of ranks all else prepares a step, or asks what became of it.
bool ForeignWorker::is_no_step(const CallRequest& request) const {
  return options_.starts_ranks && request.function != kStepOfRanks;
}

Nanoseconds ForeignWorker::call_on_gpu(CallRequest& request, std::span<const NamedInput> inputs,
                                       std::span<const NamedOutput> outputs) {
  staging_->arrange(request.inputs, request.outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) staging_->copy_in(request.inputs[i], inputs[i].view.data);
  gpu_->begin(request, staging_->data(), staging_->bytes());
  request.memory_bytes = segment_.bytes();
  request.release = true;

  CallClock::Readings spent;
  Json reply;
  try {
    reply = run_on_gpu(request, spent);
  } catch (...) {
    free_stream();
    throw;
  }
  if (!std::holds_alternative<Returned>(call_reply_from_json(reply))) free_stream();
  const Nanoseconds time = timed(request, reply, spent);
  gpu_->fetch(request.outputs, staging_->data());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].view.data != nullptr) staging_->copy_out(request.outputs[i], outputs[i].view.data);
  }
  if (const auto changed = options_.constant_inputs ? gpu_->changed(request.inputs) : std::nullopt) {
    throw Misuse(FindingKind::input_changed, kChangesNoInput,
                 "the call changed its input '" + *changed +
                     "': whoever calls reads it again; work on a copy in memory of your own",
                 *changed);
  }
  if (const auto violation = staging_->violation(request.outputs)) {
    throw Misuse(FindingKind::write_outside, kWritesOutputsAlone, request.function + ": " + *violation);
  }
  return time;
}

// The worker's last answer: that it returned, or failed. Whatever else it says is an error.
Json ForeignWorker::run_on_gpu(const CallRequest& request, CallClock::Readings& spent) {
  const Doing doing = running(request);
  const auto deadline = Clock::now() + options_.call_timeout;
  const auto answer = [&] { return receive(deadline, options_.call_timeout, doing); };
  const auto demand = [&](const auto& there) {
    if (there == nullptr)
      throw Error(ErrorKind::comm, "the worker '" + name_ + "' is out of turn while " + doing.words);
  };

  send(to_json(request), doing);
  Json reply = answer();
  if (failed(reply)) return reply;
  std::vector<SharedTensor> early, others;
  {
    const auto first = call_reply_from_json(reply);
    const auto* prepared = std::get_if<Prepared>(&first);
    demand(prepared);
    refuse_early(request, prepared->early);
    for (const SharedTensor& one : request.inputs) {
      (std::ranges::count(prepared->early, one.name) > 0 ? early : others).push_back(one);
    }
  }
  if (!early.empty()) {
    gpu_->give_early(early);
    reply = answer();
    if (failed(reply)) return reply;
    const auto second = call_reply_from_json(reply);
    demand(std::get_if<Prepared>(&second));
  }

  const auto learn_places = [&] {
    reply = answer();
    if (failed(reply)) return false;
    const auto said = call_reply_from_json(reply);
    const auto* queued = std::get_if<Queued>(&said);
    demand(queued);
    gpu_->locate(request.outputs, queued->outputs);
    return true;
  };
  const bool in_time = answers_within(gates_missed_ < kMissesToBelieve ? kGate : kGateOfWhoWaits);
  gates_missed_ = in_time ? 0 : gates_missed_ + 1;
  if (in_time && !learn_places()) return reply;
  gpu_->give(others);
  if (!in_time && !learn_places()) return reply;
  gpu_->take(request.outputs);

  reply = answer();
  if (failed(reply)) return reply;
  const auto last = call_reply_from_json(reply);
  demand(std::get_if<Returned>(&last));
  if (!gpu_->taken_within(options_.behind_the_last_word)) {
    stop(
        fmt::format("the worker '{}' said that it had returned from {}, and {} s later its stream had not come to the "
                    "end of the call: it was stopped",
                    name_, request.function, std::chrono::duration<double>(options_.behind_the_last_word).count()));
    throw Error(ErrorKind::check, broken_);
  }
  spent.ours = gpu_->finish(spent.whole);
  return reply;
}

// Our stream waits for this call no longer, whatever has become of it.
void ForeignWorker::free_stream() {
  if (gpu_->give_up(options_.behind_the_last_word)) return;
  stop(fmt::format("the worker '{}' keeps the lab's stream waiting after the end of a call: it was stopped", name_));
  gpu_->give_up(options_.behind_the_last_word);
}

// No further call is possible; the first reason counts.
void ForeignWorker::stop(std::string why) {
  if (broken_.empty()) broken_ = std::move(why);
  process_.kill_group(SIGKILL);
}

}  // namespace syslab::worker
