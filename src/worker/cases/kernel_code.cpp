#include "worker/cases/kernel_code.hpp"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/process/environment_variable.hpp"
#include "core/process/pipe.hpp"
#include "core/process/process.hpp"
#include "core/text/json_text.hpp"
#include "device/allocator.hpp"
#include "device/cuda/launch.hpp"
#include "device/stream.hpp"
#include "trace/code_watch.hpp"

namespace syslab::worker {
namespace {

struct Listening {
  std::unique_ptr<trace::CodeWatch> watch;
  std::string why;
};

Listening& listening() {
  static Listening& one = *new Listening;  // CUPTI's own may be gone when the process ends
  return one;
}

Json without(const std::string& why) { return {{"why", why}}; }

constexpr const char* kApart = "it runs in a process of its own, which tells names alone";

bool switched_off() { return environment_variable("SYSLAB_KERNEL_CODE") == "off"; }

// The process that listens, kept for the cases to come: a start costs more than most cases take. It begins with the
// first case that asks, ends with this worker, and with a case that fails there, or of which it does not say the end in
// time.
class Listener {
 public:
  std::vector<Json> messages_of(const CaseRequest& request, std::chrono::milliseconds patience) {
    if (!process_) start();
    std::vector<Json> messages;
    try {
      write_frame(process_->to_child(), to_json(request));
      const auto until = std::chrono::steady_clock::now() + patience;
      while (std::chrono::steady_clock::now() < until) {
        const FrameReader::Result read = frames_->read(std::chrono::milliseconds(100));
        errors_->drain();
        if (read.state == FrameReader::State::end) break;
        if (read.state != FrameReader::State::frame) continue;
        messages.push_back(json_or_discarded(read.text));
        const Json& said = messages.back();
        if (!said.is_object() || said.value("type", "") != "end") continue;
        if (said.value("status", "") == to_string(Status::ok)) return messages;
        break;  // what failed on a GPU may have taken its context with it
      }
    } catch (...) {
      stop();
      throw;
    }
    stop();
    return messages;
  }

 private:
  void start() {
    SpawnOptions options;
    options.argv = {"/proc/self/exe", "worker"};
    options.own_group = false;  // the runner ends our group
    process_.emplace(Process::spawn(options));
    frames_.emplace(process_->from_child());
    errors_.emplace(process_->error_output());
    write_frame(process_->to_child(), {{"type", "hello"}, {"protocol", kWireVersion}});
  }

  void stop() {
    frames_.reset();
    errors_.reset();
    process_.reset();
  }

  std::optional<Process> process_;
  std::optional<FrameReader> frames_;
  std::optional<TailReader> errors_;
};

Listener& listener() {
  static Listener one;
  return one;
}

}  // namespace

void forget_memory(const CaseRequest& request) {
  if (device::gpu_count() <= request.device_index) return;
  device::allocator_of({device::Kind::cuda, request.device_index}).release_cached();
}

void listen_for_code_by(std::unique_ptr<trace::CodeWatch> watch) { listening() = {std::move(watch), "nobody listens"}; }

void listen_for_code() {
  Listening& one = listening();
  if (!one.watch) one.watch = trace::CodeWatch::start(one.why);
}

Json told(const trace::CodeOfCall& of_call) {
  Json code = of_call.digest.empty() ? without(of_call.why) : Json{{"digest", of_call.digest}};
  for (const trace::CodeOfCall::Kernel& kernel : of_call.kernels) {
    code["kernels"].push_back({{"name", kernel.name}, {"code", kernel.code}, {"launches", kernel.launches}});
  }
  return code;
}

// Of what runs in a process of its own: that process tells of its kernels, and of their code nobody.
Json names_told_by_it(const CaseContext& context, const Operation& operation, InputSets& sets) {
  sets.call(operation.call, 0);  // a first call loads, and may do what no other does
  if (!context.serve_kernels(true)) return without("its worker tells of no kernels");
  sets.call(operation.call, 0);
  Json code = without(context.kernels().why.empty() ? kApart : context.kernels().why);
  code["kernels"] = to_json(context.kernels());
  code["told_by"] = "its own process";
  return code;
}

void tell_code(CaseContext& context, const Operation& operation, InputSets& sets, device::Stream stream) {
  Json code = without(listening().why);
  if (context.request().mine) {
    code = names_told_by_it(context, operation, sets);
  } else if (trace::CodeWatch* const watch = listening().watch.get()) {
    sets.call(operation.call, 0);  // a first call loads, and may do what no other does
    device::synchronize(stream);
    watch->begin();
    sets.call(operation.call, 0);
    device::synchronize(device::place_of(stream));
    code = told(watch->end());
  }
  context.emit(FactRecord{json_text(Json{{"code", std::move(code)}})});
}

void tell_code(CaseContext& context, const std::function<void()>& prepare, const std::function<void()>& call,
               device::Place where) {
  trace::CodeWatch* const watch = listening().watch.get();
  prepare();
  call();  // a first call loads, and may do what no other does
  device::synchronize(where);
  prepare();
  if (watch != nullptr) watch->begin();
  call();
  device::synchronize(where);
  Json code = watch != nullptr ? told(watch->end()) : without(listening().why);
  context.emit(FactRecord{json_text(Json{{"code", std::move(code)}})});
}

Json code_among(const std::vector<Json>& messages) {
  for (const Json& message : messages) {
    if (!message.is_object() || message.value("type", "") != "fact") continue;
    const Json facts = message.value("facts", Json::object());
    if (facts.is_object() && facts.contains("code") && facts["code"].is_object()) return facts["code"];
  }
  for (const Json& message : messages) {
    if (!message.is_object() || message.value("type", "") != "end") continue;
    const std::string detail = message.value("detail", std::string());
    return without(detail.empty() ? "the process that listens ended without a word" : detail);
  }
  return without("the process that listens did not end in time, or died");
}

Json code_of_case(const CaseRequest& request, std::chrono::milliseconds patience) {
  if (request.device != DeviceKind::cuda || switched_off()) return nullptr;
  if (request.world_size > 1)
    return without("it is asked of all ranks together: by a comparison, or with SYSLAB_KERNEL_CODE=ranks");
  static std::chrono::steady_clock::duration left_for_judged = std::chrono::minutes(1);
  if (request.mine && left_for_judged.count() <= 0) return without("its kernels were asked for in earlier cases");
  if (patience.count() <= 0) return without("too little of --timeout was left");
  CaseRequest ask = request;
  ask.task = Task::code;
  ask.kernel_code = false;
  try {
    forget_memory(request);  // the process that listens needs as much, and the next case begins without it anyway
    if (!request.mine) return code_among(listener().messages_of(ask, patience));
    // Of a listener of its own, which ends with it: what is judged must not be there while others are timed. Each is
    // started anew, a framework with it, so that it is asked for some cases and not for all of a long run.
    const auto began = std::chrono::steady_clock::now();
    Json code = code_among(Listener().messages_of(ask, patience));
    left_for_judged -= std::chrono::steady_clock::now() - began;
    return code;
  } catch (const std::exception& error) {
    return without(error.what());
  }
}

}  // namespace syslab::worker
