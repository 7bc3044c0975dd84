#include "worker/serve.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/own_memory.hpp"
#include "core/pipe.hpp"
#include "core/process.hpp"
#include "device/gpu_probe.hpp"
#include "device/nvtx.hpp"
#include "registry/registry.hpp"
#include "worker/bursts.hpp"
#include "worker/case_context.hpp"
#include "worker/fields.hpp"
#include "worker/protocol.hpp"

namespace syslab::worker {
namespace {

constexpr int kToolFailed = 4;

// Moves `fd` above the standard streams (closed on exec) and puts `replacement` in its place.
FileDescriptor move_away(int fd, int replacement) {
  FileDescriptor moved(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!moved) throw_errno(ErrorKind::internal, "move a standard stream", errno, "fcntl");
  if (::dup2(replacement, fd) < 0) throw_errno(ErrorKind::internal, "replace a standard stream", errno, "dup2");
  return moved;
}

// Address space is what can be limited without privileges. The worker's own mappings (libraries, thread stacks) come on
// top of what the case may take. Only the soft limit: a child may lift it to make room for its own libraries.
void limit_memory(std::uint64_t limit_bytes) {
  struct rlimit limit {};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = limit_bytes == 0 ? limit.rlim_max : own_memory("VmSize").value_or(0) + limit_bytes;
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_AS, &limit) != 0) throw_errno(ErrorKind::internal, "limit the memory", errno, "setrlimit");
}

double cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

EndRecord run_body(CaseContext& context) {
  const CaseRequest& request = context.request();
  const device::NvtxRange range(fmt::format("{}{}{} {}", request.experiment, request.law.empty() ? "" : " ",
                                            request.law, request.implementation));
  try {
    const registry::Experiment& experiment = registry::Registry::global().find(request.experiment);
    if (!experiment.run) {
      throw Error(ErrorKind::internal, fmt::format("experiment '{}' has no body to run", experiment.id));
    }
    experiment.run(context);
    return {Status::ok, ""};
  } catch (const Unsupported& reason) {
    return {Status::unsupported, reason.what()};
  } catch (const CheckFailed& reason) {
    return {Status::check_failed, reason.what()};
  } catch (const std::bad_alloc&) {
    return {Status::oom,
            context.request().memory_limit_bytes == 0
                ? "out of memory"
                : fmt::format("out of memory: the case may take {} bytes", context.request().memory_limit_bytes)};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::oom) return {Status::oom, error.what()};
    const std::string call = error.call().empty() ? "" : fmt::format(" (in {})", error.call());
    EndRecord end{Status::error, fmt::format("{}: {}{}", to_string(error.kind()), error.what(), call)};
    if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) end.fault = of_rank->fault();
    return end;
  } catch (const std::exception& error) {
    return {Status::error, error.what()};
  }
}

// Whose fault it is that a rank among several did not end well; nothing of a case that is one process's alone.
std::optional<Fault> fault_of(const CaseRequest& request, const EndRecord& end) {
  if (request.world_size <= 1 || end.status == Status::ok || end.status == Status::unsupported) return std::nullopt;
  return end.fault ? end.fault : Fault::own;
}

// The exit code that the case leaves the worker with; 0: it takes the next. Exceptions out of here mean that the host
// cannot be told.
int run_case(const Json& message, FrameReader& in, int out) {
  bool host_gone = false;
  EndRecord end;
  std::optional<Fault> fault;
  const double cpu_before = cpu_seconds();
  reset_memory_peak();  // this case's even in a process that had others
  try {
    const CaseRequest request = case_request_from_json(message);
    // CUDA maps far more addresses than it uses: there the limit is the plan's to keep.
    limit_memory(request.device == "cuda" ? 0 : request.memory_limit_bytes);
    PipeBurstLine bursts(in, out);
    const auto emit = [&](const Record& record) {
      host_gone = true;  // unless the next line returns
      write_frame(out, to_json(record));
      host_gone = false;
    };
    CaseContext context(request, emit, &bursts);
    end = run_body(context);
    if (context.is_paired() && end.status == Status::ok && !bursts.was_ready()) {
      end = {Status::unsupported, fmt::format("'{}' is measured as a whole, not in bursts", request.experiment)};
    }
    fault = end.fault = fault_of(request, end);
  } catch (const Error& error) {
    end = {Status::error, fmt::format("{}: {}", to_string(error.kind()), error.what())};
  }
  limit_memory(0);
  if (host_gone) throw Error(ErrorKind::comm, "the host is gone");
  const Json facts{{"peak_rss_bytes", own_memory("VmHWM").value_or(0)},
                   {"case_cpu_time_s", cpu_seconds() - cpu_before}};
  write_frame(out, to_json(Record(FactRecord{json_text(facts)})));
  write_frame(out, to_json(Record(end)));
  return fault ? static_cast<int>(*fault) : 0;
}

void greet(const Json& message, int out) {
  const std::int64_t asked = Fields(message, "message 'hello'").integer("protocol");
  write_frame(out, {{"type", "hello"},
                    {"protocol", kProtocolVersion},
                    {"name", "syslab " + build_info().version},
                    {"language", "C++"},
                    {"serves", {"case", "bursts"}}});
  if (asked != kProtocolVersion) {
    throw Error(ErrorKind::comm,
                fmt::format("the host speaks version {} of the worker protocol, this worker version {}", asked,
                            kProtocolVersion));
  }
}

// The exit code.
int serve_frames(int in, int out) {
  FrameReader reader(in);
  bool greeted = false;
  while (true) {
    const FrameReader::Result result = reader.read(std::nullopt);
    if (result.state != FrameReader::State::frame) return 0;
    const Json message = json_or_discarded(result.text);
    if (message.is_discarded()) throw Error(ErrorKind::comm, "a frame of the host is no JSON");
    const std::string type = Fields(message, "a message of the host").text("type");
    if (type == "bye") return 0;
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
}

}  // namespace

int serve(int in, int out) {
  try {
    FileDescriptor moved_in, moved_out;
    if (in == STDIN_FILENO) {
      const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!nothing) throw_errno(ErrorKind::internal, "open /dev/null", errno, "open");
      moved_in = move_away(in, nothing.get());
      in = moved_in.get();
    }
    if (out == STDOUT_FILENO) {
      moved_out = move_away(out, STDERR_FILENO);
      out = moved_out.get();
    }
    return serve_frames(in, out);
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
