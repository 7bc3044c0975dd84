#include "worker/judged/foreign.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/build_info.hpp"
#include "core/misuse.hpp"
#include "core/refusal.hpp"
#include "core/text/json_text.hpp"
#include "device/evict.hpp"
#include "judge/unnamed_threads.hpp"
#include "measure/cuda_device.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/judged/call.hpp"
#include "worker/judged/gpu_memory.hpp"
#include "worker/wire/fields.hpp"

namespace syslab::worker {
namespace {

// What a worker may say of its own window.
constexpr std::int64_t kToldFlags =
    measure::kHostInWindow | measure::kPowerCapped | measure::kHot | measure::kHardwareSlowdown;

constexpr std::chrono::microseconds kBriefCall{300};  // calls up to here are waited for without a system call

SpawnOptions spawn_options(const ForeignOptions& options, int shared_fd, const judge::PrivateFolder* folder,
                           judge::Walls* walls) {
  SpawnOptions spawn;
  spawn.argv = options.command;
  if (folder != nullptr) spawn.environment = folder->environment();
  if (folder != nullptr && options.device != DeviceKind::cpu) {
    spawn.environment.insert_or_assign("LD_PRELOAD", judge::preload_unnamed_threads(folder->path()));
  }
  for (const auto& [name, value] : judge::withheld_variables()) spawn.environment.insert_or_assign(name, value);
  for (const auto& [name, value] : options.environment) spawn.environment.insert_or_assign(name, value);
  spawn.extra_fd = shared_fd;
  spawn.own_group = options.own_group;
  if (walls != nullptr) spawn.confinement = walls->confinement();
  return spawn;
}

template <typename View>
SharedTensor describe(std::string_view name, const View& view) {
  return {std::string(name), view.dtype, view.shape, view.strides, 0};
}

// Processor time of a child and its threads so far. What cannot be read counts as nothing, and accuses nobody.
Nanoseconds processor_time(pid_t pid) {
  clockid_t clock{};
  timespec spent{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &spent) != 0) return {};
  return std::chrono::seconds(spent.tv_sec) + Nanoseconds(spent.tv_nsec);
}

// The same of all processes that one has started, too: of ranks, which their worker forks.
Nanoseconds processor_time_with_children(pid_t pid) {
  Nanoseconds spent = processor_time(pid);
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid));
  for (pid_t child = 0; children >> child;) spent += processor_time(child);
  return spent;
}

// About an input that a call has changed. `constant`: of the C interface, and of functions.
const char* what_to_do(bool constant) {
  return constant
             ? "whoever calls reads it again; work on a copy in memory of your own"
             : "whoever calls reads it again; work on a copy (q.clone(), q.copy()), or make a new tensor (q = q * c in "
               "place of q *= c or q.mul_(c))";
}

// A backward pass reads what its forward pass wrote, and has no reason to fill in what that did not: NaN until then.
bool was_left_unwritten(std::string_view function, std::string_view input, const ChangedTensor& change) {
  return function == "attention_backward" && (input == "out" || input == "lse") && change.from_nan;
}

// The error that the implementation raised, with the kind that decides the attempt's status.
[[noreturn]] void raise(const Failed& failed, std::string_view function) {
  std::string text = failed.message;
  if (!failed.traceback.empty()) text += "\n" + failed.traceback;
  switch (failed.kind) {
    case FailedKind::unsupported:
      throw Unsupported(failed.message);
    case FailedKind::oom:
      throw Error(ErrorKind::oom, text, std::string(function));
    case FailedKind::check:
      throw FoundFault(ErrorKind::check, failed.finding, text);
    case FailedKind::device:
      throw FoundFault(ErrorKind::device, FindingKind::crash, text, std::string(function));
    case FailedKind::exception:
      throw Refusal(text, std::string(function), failed.finding, failed.lacks);
    case FailedKind::protocol:
      break;
  }
  throw Error(ErrorKind::comm, fmt::format("the worker answered '{}': {}", to_string(failed.kind), text),
              std::string(function));
}

}  // namespace

ForeignWorker::ForeignWorker(ForeignOptions options)
    : options_(std::move(options)),
      process_([this] {
        if (options_.walls) {
          folder_.emplace();
          walls_.emplace(judge::WallsOptions{.profile = *options_.walls,
                                             .network = talks(),
                                             .gpu = options_.device != DeviceKind::cpu,
                                             .listens = judge::under_compute_sanitizer(),
                                             .memory_limit_bytes = options_.shared_memory_bytes,
                                             .writable = folder_->path(),
                                             .hidden = judge::keys_folders()});
          judge::hide_this_process();
        }
        return Process::spawn(
            spawn_options(options_, segment_.fd(), folder_ ? &*folder_ : nullptr, walls_ ? &*walls_ : nullptr));
      }()),
      reader_(process_.from_child()),
      errors_(process_.error_output()) {
  say_hello();
  if (options_.waited_for) await_greeting();
}

Json ForeignWorker::walls_facts() const {
  Json facts{{"walls", "none"}};
  if (options_.device != DeviceKind::cpu) {
    facts["gpu_memory"] = gpu_ ? "shared" : "copied";
    facts["gpu_clock"] = trusted_ && !options_.starts_ranks ? "its own" : "the lab's";
  }
  if (nvml_) {
    if (const std::string blind = measure::blind_to_clocks(*nvml_, nvml_device_); !blind.empty()) {
      facts["flags_missing"] = blind;
    }
  }
  if (!options_.walls) return facts;
  facts["walls"] = *options_.walls == judge::Profile::native ? "native" : "python";
  const std::vector<std::string> missing = judge::missing_walls(*options_.walls == judge::Profile::python, talks());
  if (!missing.empty()) facts["walls_missing"] = missing;
  return facts;
}

// A library is called on each rank and calls nobody.
bool ForeignWorker::talks() const {
  return options_.walls == judge::Profile::python && (options_.world_size > 1 || options_.starts_ranks);
}

void ForeignWorker::say_hello() {
  Json hello{{"type", "hello"},
             {"protocol", kWireVersion},
             {"host", "syslab " + build_info().version},
             {"memory_fd", segment_.fd()},
             {"device", to_string(options_.device)},
             {"memory_limit_bytes", options_.memory_limit_bytes},
             {"loading", options_.judged}};
  if (!options_.implementation.empty()) hello["implementation"] = options_.implementation;
  if (!options_.about.empty()) hello["about"] = options_.about;
  if (options_.device == DeviceKind::cuda && options_.world_size == 1 && !options_.starts_ranks) share_gpu();
  if (gpu_) hello["gpu_memory_bytes"] = segment_.bytes();
  if (options_.world_size > 1) hello.update({{"rank", options_.rank}, {"world_size", options_.world_size}});
  said_hello_ = Clock::now();
  send(hello, starting());
  greets_ = true;
}

void ForeignWorker::await_greeting() {
  if (!std::exchange(greets_, false)) return;
  const auto answer = [this] {
    return receive(said_hello_ + options_.start_timeout, options_.start_timeout, starting());
  };
  Json reply = answer();
  if (Fields(reply, "the worker's greeting").text("type") == "loading") {
    loading_ = true;
    reply = answer();
    loading_ = false;
  }
  const Fields fields(reply, "the worker's greeting");
  if (fields.text("type") == "failed") raise(std::get<Failed>(call_reply_from_json(reply)), "hello");
  if (fields.text("type") != "hello") fields.fail("field 'type' must be \"hello\"");
  if (const std::int64_t version = fields.integer("protocol"); version != kWireVersion) {
    fields.fail(
        fmt::format("it speaks version {} of the worker's wire format, this host version {}", version, kWireVersion));
  }
  name_ = fields.text("name");
  language_ = fields.text("language");
  declared_ = std::make_shared<const Json>(reply.value("domain", Json::object()));
  const Json said = reply.value("serves", Json::array());
  const auto serves = [&said](const char* what) { return std::find(said.begin(), said.end(), what) != said.end(); };
  if (!serves("call")) fields.fail("it does not serve calls");
  if (!serves("gpu_release")) gpu_.reset();
  captures_ = options_.device != DeviceKind::cpu && serves("graph");
  tells_kernels_ = options_.device != DeviceKind::cpu && serves("kernels");
  if (options_.device != DeviceKind::cpu) {
    trusted_ = !gpu_ && (options_.starts_ranks || gpu_memory_wanted() == GpuMemory::trusted);
    if (!trusted_) clock_ = gpu_ ? CallClock::of_gpu() : CallClock::of_copies();
  }
  if (options_.starts_ranks) clock_ = CallClock::of_ranks(options_.device != DeviceKind::cpu, processors());
  waits_for_release_ = options_.device == DeviceKind::cpu && serves("release");
  serves_empty_ = waits_for_release_ && serves("empty");
}

void ForeignWorker::turn_to(std::string about) {
  options_.about = std::move(about);
  say_hello();
  await_greeting();
}

void ForeignWorker::copy_in(const CallRequest& request, std::span<const NamedInput> inputs,
                            const std::vector<std::string>& early, bool wanted) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_early = std::find(early.begin(), early.end(), request.inputs[i].name) != early.end();
    if (is_early == wanted) segment_.copy_in(request.inputs[i], inputs[i].view.data, cold_);
  }
}

// What a backward pass may have before its clock starts: all but the gradients that come in, as after a forward pass.
void refuse_early(const CallRequest& request, const std::vector<std::string>& early) {
  for (const std::string& name : early) {
    // What a gradient arrives by comes last: "dout" of an operator, "d(out)" of a function, whose arguments may have
    // any name.
    const std::string_view late = request.function == kFunctionBackward ? "d(" : "d";
    if (request.function.ends_with("_backward") && !name.starts_with(late)) continue;
    throw Error(ErrorKind::comm,
                fmt::format("the worker wants input '{}' of {} before the clock starts", name, request.function));
  }
}

// The worker's last answer, and in `spent.ours` the time from the release of the call until its outputs were complete,
// or until the answer of a worker that does not wait for a release. `take_outputs` is called at that very moment: what
// is written later is too late.
Json ForeignWorker::run(CallRequest& request, std::span<const NamedInput> inputs, CallClock::Readings& spent,
                        const std::function<void()>& take_outputs) {
  const Doing doing = running(request);
  const auto deadline = Clock::now() + options_.call_timeout;
  const auto answer = [&] { return receive(deadline, options_.call_timeout, doing); };
  if (!waits_for_release_ || inputs.empty()) {  // nothing would be held back
    if (cold_) segment_.evict();
    copy_in(request, inputs, {}, false);
    const auto worked = options_.starts_ranks ? processor_time_with_children : processor_time;
    const Nanoseconds worked_before = worked(process_.pid());
    const auto begin = Clock::now();
    send(to_json(request), doing);
    Json reply = answer();
    spent.ours = Clock::now() - begin;
    spent.worked = worked(process_.pid()) - worked_before;
    take_outputs();
    return reply;
  }

  Doorbell bell = segment_.doorbell();
  request.release = true;
  send(to_json(request), doing);
  Json reply = answer();
  std::vector<std::string> early;
  std::uint32_t step = 1;
  if (auto first = call_reply_from_json(reply); auto* prepared = std::get_if<Prepared>(&first)) {
    early = std::move(prepared->early);
  } else if (std::holds_alternative<Failed>(first)) {
    return reply;
  } else {
    throw Error(ErrorKind::comm,
                fmt::format("the worker '{}' returned from {} before it was released", name_, request.function));
  }
  if (!early.empty()) {
    refuse_early(request, early);
    copy_in(request, inputs, early, true);
    const auto released = Clock::now();
    bell.release(step++);
    reply = answer();
    if (request.empty == EmptyCall::none) clock_.take_forward(Clock::now() - released);
    if (!std::holds_alternative<Prepared>(call_reply_from_json(reply))) return reply;
  }
  // Not afterwards: emptying caches takes many times as long as a copy, and whoever looks at this memory would begin.
  if (cold_) segment_.evict();
  copy_in(request, inputs, early, false);

  const Nanoseconds worked_before = processor_time(process_.pid());
  const auto begin = Clock::now();
  bell.release(step);
  // Whoever waits without a system call takes a processor from a kernel that uses all: only for brief calls.
  const auto spin_until = begin + (clock_.last(request.function) <= kBriefCall ? 2 * kBriefCall : kBriefCall / 10);
  while (!bell.is_done() && Clock::now() < spin_until) continue;
  const bool done = bell.is_done();
  if (!done) reply = answer();
  spent.ours = Clock::now() - begin;
  spent.worked = processor_time(process_.pid()) - worked_before;
  take_outputs();
  return done ? answer() : reply;
}

bool ForeignWorker::serve_cold(bool wanted) {
  const bool possible = options_.device == DeviceKind::cpu ? device::can_evict() : gpu_ != nullptr;
  cold_ = wanted && possible;
  if (gpu_) gpu_->serve_cold(cold_);
  return possible;
}

// What the last call left erased has been written since: by a thread that goes on after its function has returned.
void ForeignWorker::demand_finished() {
  const std::vector<SharedTensor> outputs = std::exchange(last_outputs_, {});
  if (const auto late = segment_.written_since(outputs)) {
    throw Misuse(FindingKind::late_write, kEndsWhenItReturns,
                 fmt::format("{} wrote its output '{}' after it had returned: whatever it starts "
                             "must have ended by then",
                             last_function_, *late));
  }
}

Nanoseconds ForeignWorker::call(std::string_view function, std::span<const NamedInput> inputs,
                                std::span<const NamedOutput> outputs, const Params& options) {
  const bool was_usable = usable();
  try {
    return called(function, inputs, outputs, options);
  } catch (const FoundFault&) {
    throw;
  } catch (const Error& error) {
    // Nothing else writes into its pipe: an answer that makes no sense is as bad as none.
    if (error.kind() != ErrorKind::comm || !was_usable) throw;
    throw FoundFault(ErrorKind::comm, FindingKind::crash, error.what(), error.call());
  }
}

Nanoseconds ForeignWorker::called(std::string_view function, std::span<const NamedInput> inputs,
                                  std::span<const NamedOutput> outputs, const Params& options) {
  CallRequest request;
  request.function = function;
  request.options = options;
  for (const NamedInput& input : inputs) request.inputs.push_back(describe(input.name, input.view));
  for (const NamedOutput& output : outputs) {
    request.outputs.push_back(describe(output.name, output.view));
    request.outputs.back().lent = options_.device != DeviceKind::cpu && output.view.data == nullptr;
  }
  request.graph = graphs_ && !request.inputs.empty();
  if (gpu_ && is_timed(request) && !is_question(request)) return call_on_gpu(request, inputs, outputs);
  request.guarded = guarded_;
  request.kernels = kernels_wanted_ && !request.inputs.empty();
  demand_finished();
  segment_.arrange(request.inputs, request.outputs, guarded_);
  request.memory_bytes = segment_.bytes();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].view.data != nullptr) segment_.copy_in(request.outputs[i], outputs[i].view.data);
  }

  CallClock::Readings spent;
  const Json reply = run(request, inputs, spent, [&] {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].view.data != nullptr) segment_.copy_out(request.outputs[i], outputs[i].view.data);
    }
  });
  spent.whole = spent.ours;

  const Nanoseconds time = timed(request, reply, spent);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!must_stay(function, inputs[i].name)) continue;
    if (const auto change = segment_.change_of(request.inputs[i], inputs[i].view.data)) {
      if (was_left_unwritten(function, inputs[i].name, *change)) {
        throw Misuse(FindingKind::late_write, kEndsWhenItReturns,
                     fmt::format("attention_forward's output '{}' was written after it had "
                                 "returned, {}: whatever it starts must have ended by then",
                                 inputs[i].name, change->words));
      }
      throw Misuse(FindingKind::input_changed, kChangesNoInput,
                   fmt::format("the call changed its input '{}', {}: {}", inputs[i].name, change->words,
                               what_to_do(options_.constant_inputs)),
                   std::string(inputs[i].name));
    }
  }
  if (const auto violation = segment_.violation(request.outputs)) {
    throw Misuse(FindingKind::write_outside, kWritesOutputsAlone, fmt::format("{}: {}", function, *violation));
  }
  if (guarded_) {
    last_function_ = function;
    last_outputs_ = request.outputs;
    std::erase_if(last_outputs_, [](const SharedTensor& one) { return one.lent; });  // nothing here is erased
  }
  if (wants_empty_call(request)) call_empty(request, inputs);
  return time;
}

// A Python class on the CPU is called as hand-outs' tests call it: they read q, k and v afterwards, and the gradient
// that came in never again. Its methods for other operators may work in place.
bool ForeignWorker::must_stay(std::string_view function, std::string_view input) const {
  if (options_.constant_inputs) return true;
  const bool of_handout = function.starts_with("attention_") || function.starts_with("weighted_sum_");
  return of_handout && !(function.ends_with("_backward") && input.starts_with("d"));
}

// What the call took, of its last answer; throws what that says instead.
Nanoseconds ForeignWorker::timed(const CallRequest& request, const Json& reply, CallClock::Readings spent) {
  const auto result = call_reply_from_json(reply);
  if (const auto* failed = std::get_if<Failed>(&result)) {
    if (failed->kind == FailedKind::device) {  // a context in which something failed fails whoever asks it next
      broken_ = failed->message;
      process_.kill_group(SIGKILL);
    }
    raise(*failed, request.function);
  }
  const auto* returned = std::get_if<Returned>(&result);
  if (returned == nullptr)
    throw Error(ErrorKind::comm, fmt::format("the worker '{}' is ready and did not return", name_));
  if (request.kernels && returned->kernels) kernels_.add(*returned->kernels);
  spent.its_own = returned->elapsed;
  last_window_ = {.clock_hz = returned->clock_hz, .flags = returned->flags & kToldFlags};
  if (!request.inputs.empty()) last_window_.flags |= flags_of_gpu();
  if (spent.its_own > spent.whole) {
    throw Error(ErrorKind::check,
                fmt::format("the worker '{}' reports {} ns for {}, but the whole call took {} ns: its clock is not the "
                            "monotonic one, or counts another unit",
                            name_, spent.its_own.count(), request.function, spent.whole.count()));
  }
  if (is_no_step(request)) return spent.ours;
  // Ranks have taken their own tensors to their GPUs before; what is timed of them is called without any.
  const bool by_ours = options_.device == DeviceKind::cpu || options_.starts_ranks ||
                       (!trusted_ && is_timed(request) && !request.inputs.empty());
  return by_ours ? clock_.time(request.function, spent, is_question(request)) : returned->elapsed;
}

}  // namespace syslab::worker
