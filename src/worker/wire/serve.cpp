#include "worker/wire/serve.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/misuse.hpp"
#include "core/process/descendants.hpp"
#include "core/process/own_memory.hpp"
#include "core/process/pipe.hpp"
#include "core/text/json_text.hpp"
#include "device/cuda/gpu_probe.hpp"
#include "device/cuda/nvtx.hpp"
#include "registry/registry.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/cases/kernel_code.hpp"
#include "worker/judged/call.hpp"
#include "worker/judged/function_ended.hpp"
#include "worker/judged/limit_memory.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/wire/fields.hpp"
#include "worker/wire/host_message.hpp"
#include "worker/wire/own_streams.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::worker {
namespace {

constexpr int kToolFailed = 4;

double cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A law that could not begin since what is judged ended while it was loaded: it does so on every input, so also on
// those that are promised.
void tell_fault_at_start(CaseContext& context, const Error& error) {
  const auto* fault = dynamic_cast<const FoundFault*>(&error);
  if (fault == nullptr || !is_severe(fault->finding()) || !context.is_law()) return;
  const Params& params = context.params();
  context.emit(CheckRecord{.name = context.request().law,
                           .outcome = Outcome::error,
                           .seed = std::to_string(context.request().seed),
                           .message = error.what(),
                           .contract = params.has("contract") ? contract_of(params.text("contract")) : Contract::full,
                           .finding = {.kind = fault->finding(), .promised = true}});
}

// What is judged says that its Python lacks; no process of ours has looked whether it does.
void tell_lack_at_start(CaseContext& context, const Error& error) {
  const auto* fault = dynamic_cast<const FoundFault*>(&error);
  if (fault == nullptr || !fault->lacks()) return;
  context.emit(FactRecord{json_text(Json{{kLackAtStart, to_json(*fault->lacks())}})});
}

// Names a call of the wire by its purpose: users do not know the calls.
std::string where_it_failed(std::string_view call) {
  if (call.empty()) return "";
  if (call == "expect" || call == "expect_ties" || call == "shapes")
    return " (while syslab works out what is expected)";
  if (call == "make") return " (while the case makes its arguments)";
  if (call == kFunction) return " (in the function)";
  if (call == kFunctionBackward) return " (in the function or its gradients)";
  return fmt::format(" (in {})", call);
}

EndRecord run_body(CaseContext& context) {
  const CaseRequest& request = context.request();
  const device::NvtxRange range(fmt::format("{}{}{} {}", request.experiment, request.law.empty() ? "" : " ",
                                            request.law, request.implementation));
  try {
    const registry::Experiment& experiment = registry::Registry::global().only(request.experiment);
    if (!experiment.run) {
      throw Error(ErrorKind::internal, fmt::format("experiment '{}' has no body to run", experiment.id));
    }
    experiment.run(context);
    return {Status::ok, ""};
  } catch (const Unsupported& reason) {
    return {Status::unsupported, reason.what()};
  } catch (const CheckFailed& reason) {
    return {Status::check_failed, reason.what()};
  } catch (const Misuse& misuse) {
    context.emit(CheckRecord{.name = misuse.check(),
                             .outcome = Outcome::falsified,
                             .seed = std::to_string(request.seed),
                             .message = misuse.what()});
    return {Status::check_failed, misuse.what()};
  } catch (const std::bad_alloc&) {
    return {Status::oom,
            context.request().memory_limit_bytes == 0
                ? "out of memory"
                : fmt::format("out of memory: the case may take {} bytes", context.request().memory_limit_bytes)};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::oom) return {Status::oom, error.what()};
    tell_fault_at_start(context, error);
    tell_lack_at_start(context, error);
    const std::string call = where_it_failed(error.call());
    if (dynamic_cast<const FunctionEnded*>(&error) != nullptr) return {Status::error, error.what()};
    EndRecord end{Status::error, fmt::format("{}: {}{}", to_string(error.kind()), error.what(), call)};
    if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) end.fault = of_rank->fault();
    return end;
  } catch (const std::exception& error) {
    return {Status::error, error.what()};
  }
}

// The rank to blame if one of several ended badly; none for a case of a single process.
std::optional<Fault> fault_of(const CaseRequest& request, const EndRecord& end) {
  if (request.world_size <= 1 || end.status == Status::ok || end.status == Status::unsupported) return std::nullopt;
  return end.fault ? end.fault : Fault::own;
}

// The exit code that the worker ends with after the case; 0: it takes the next case. Exceptions out of here mean that
// the host cannot be told.
int run_case(const Json& message, FrameReader& in, int out) {
  bool host_gone = false, fresh = false;
  EndRecord end;
  std::optional<Fault> fault;
  Json judged = Json::object();
  const double cpu_before = cpu_seconds();
  reset_memory_peak();  // of this case even in a process that had others
  try {
    const auto began = std::chrono::steady_clock::now();
    const CaseRequest request = case_request_from_json(message);
    // CUDA maps far more addresses than it uses: on a GPU the plan enforces the limit.
    limit_memory(request.device == DeviceKind::cuda ? 0 : request.memory_limit_bytes);
    if (request.task == Task::code && !request.mine) listen_for_code();
    PipeBurstLine bursts(in, out);
    const auto emit = [&](const Record& record) {
      host_gone = true;  // unless the next line returns
      write_frame(out, to_json(record));
      host_gone = false;
    };
    if (fresh = request.fresh; fresh) end_what_is_judged();
    CaseContext context(request, emit, &bursts);
    end = run_body(context);
    if (request.task == Task::code) forget_memory(request);
    judged = context.channel_facts();
    if (context.is_paired() && end.status == Status::ok && !bursts.was_ready()) {
      end = {Status::unsupported, fmt::format("'{}' is measured as a whole, not in bursts", request.experiment)};
    }
    if (request.kernel_code && context.tells_code() && end.status == Status::ok) {
      const auto left = request.timeout - (std::chrono::steady_clock::now() - began);
      if (Json code = code_of_case(request, patience_within(left)); !code.is_null()) judged["code"] = std::move(code);
    }
    fault = end.fault = fault_of(request, end);
  } catch (const Error& error) {
    end = {Status::error, fmt::format("{}: {}", to_string(error.kind()), error.what())};
  }
  if (fresh) end_what_is_judged();
  limit_memory(0);
  if (host_gone) throw Error(ErrorKind::comm, "the host is gone");
  Json facts{{"peak_rss_bytes", own_memory("VmHWM").value_or(0)}, {"case_cpu_time_s", cpu_seconds() - cpu_before}};
  facts.update(judged);
  write_frame(out, to_json(Record(FactRecord{json_text(facts)})));
  write_frame(out, to_json(Record(end)));
  return fault ? static_cast<int>(*fault) : 0;
}

void greet(const Json& message, int out) {
  const std::int64_t asked = Fields(message, "message 'hello'").integer("protocol");
  write_frame(out, {{"type", "hello"},
                    {"protocol", kWireVersion},
                    {"name", "syslab " + build_info().version},
                    {"language", "C++"},
                    {"serves", {"case", "bursts", "fresh", "starts"}}});
  if (asked != kWireVersion) {
    throw Error(ErrorKind::comm,
                fmt::format("the host speaks version {} of the worker's wire format, this worker version {}", asked,
                            kWireVersion));
  }
}

// The exit code.
int serve_frames(int in, int out) {
  FrameReader reader(in);
  bool greeted = false;
  while (const auto said = next_host_message(reader)) {
    const Json& message = *said->json;
    const std::string& type = said->type;
    if (type == "hello") {
      greet(message, out);
      greeted = true;
    } else if (!greeted) {
      throw Error(ErrorKind::comm, fmt::format("the host must say hello before '{}'", type));
    } else if (type == "case") {
      if (const int code = run_case(message, reader, out); code != 0) return code;
    } else {
      write_frame(out, {{"type", "failed"},
                        {"kind", "protocol"},
                        {"message", fmt::format("this worker serves 'case', not '{}'", type)}});
    }
  }
  return 0;
}

// std::bad_alloc in a thread that nobody watches ends the process.
[[noreturn]] void end_of_uncaught() {
  try {
    if (const std::exception_ptr uncaught = std::current_exception()) std::rethrow_exception(uncaught);
    std::fputs("syslab worker: std::terminate without an exception\n", stderr);
  } catch (const std::bad_alloc&) {
    ::_exit(kOutOfMemoryExit);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "syslab worker: uncaught: %s\n", error.what());
  } catch (...) {
    std::fputs("syslab worker: uncaught exception\n", stderr);
  }
  std::abort();
}

}  // namespace

int serve(int in, int out) {
  std::set_terminate(end_of_uncaught);
  try {
    keep_orphans();  // of what is judged: none of it is left when the next call begins
    const OwnStreams streams(in, out);
    return serve_frames(streams.in(), streams.out());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "syslab worker: %s\n", error.what());
    return kToolFailed;
  }
}

std::string probed_gpus() {
  const device::GpuProbe probe = device::probe_gpus();
  Json gpus = Json::array();
  for (const device::Gpu& gpu : probe.gpus) {
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"sm", gpu.sm},
                    {"multiprocessors", gpu.multiprocessors},
                    {"memory_bytes", gpu.memory_bytes},
                    {"uuid", gpu.uuid}});
  }
  return json_text(Json{{"gpus", std::move(gpus)},
                        {"runtime", probe.runtime_version},
                        {"driver", probe.driver_version},
                        {"why_none", probe.why_none}});
}

}  // namespace syslab::worker
