#include "worker/judged/serve_calls.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/process/pipe.hpp"
#include "core/refusal.hpp"
#include "trace/code_watch.hpp"
#include "worker/cases/calls_beside.hpp"
#include "worker/judged/call.hpp"
#include "worker/judged/doorbell.hpp"
#include "worker/judged/guard_pages.hpp"
#include "worker/judged/limit_memory.hpp"
#include "worker/judged/served_gpu.hpp"
#include "worker/judged/shared_segment.hpp"
#include "worker/wire/fields.hpp"
#include "worker/wire/host_message.hpp"
#include "worker/wire/own_streams.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::worker {
namespace {

constexpr int kServingFailed = 4;
constexpr std::int64_t kMostStreams = 16;

Json failed(FailedKind kind, const std::string& message) {
  return {{"type", "failed"}, {"kind", to_string(kind)}, {"message", message}};
}

// Of an error that is no refusal.
FailedKind kind_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::oom:
      return FailedKind::oom;
    case ErrorKind::check:
      return FailedKind::check;
    case ErrorKind::device:
      return FailedKind::device;
    default:
      return FailedKind::exception;
  }
}

// What body() throws as the host is to hear it; null if it throws nothing.
template <typename Body>
Json failure_of(const Body& body) {
  try {
    body();
    return nullptr;
  } catch (const Unsupported& reason) {
    return failed(FailedKind::unsupported, reason.what());
  } catch (const std::bad_alloc&) {
    return failed(FailedKind::oom, "out of memory");
  } catch (const Refusal& reason) {
    return failed(FailedKind::exception, reason.what());
  } catch (const Error& error) {
    return failed(kind_of(error), error.what());
  } catch (const std::exception& error) {
    return failed(FailedKind::exception, error.what());
  }
}

class Memory {
 public:
  explicit Memory(int fd) : fd_(fd) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    guards_.forget();
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  std::byte* of(std::size_t bytes) {
    if (bytes <= bytes_) return data_;
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) throw_errno(ErrorKind::oom, fmt::format("map {} shared bytes", bytes), errno, "mmap");
    guards_.forget();
    if (data_ != nullptr) ::munmap(data_, bytes_);
    data_ = static_cast<std::byte*>(mapped);
    bytes_ = bytes;
    return data_;
  }

  void guard(const CallRequest& request) {
    std::vector<GuardPages::Page> pages;
    for (const std::vector<SharedTensor>* group : {&request.inputs, &request.outputs}) {
      if (!request.guarded) break;
      for (const SharedTensor& one : *group) {
        const std::size_t page = guard_page_of(one);
        pages.push_back({data_ + page, page - one.offset - extent_bytes(one), one.name});
      }
    }
    guards_.put(std::move(pages));
  }
  // No page is left that a call in memory of the host had.
  void unguard() { guards_.put({}); }

 private:
  int fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  GuardPages guards_;
};

// CUPTI may listen from now on: names are told with each launch, and whoever is listened to is timed no more. It stays
// until the end, when CUPTI's own may be gone.
KernelsOfCall kernels_of(const std::function<void()>& work) {
  KernelsOfCall told;
  static std::unique_ptr<trace::CodeWatch>& watch = *new std::unique_ptr<trace::CodeWatch>;
  if (!watch) watch = trace::CodeWatch::start(told.why);
  if (watch) watch->begin();
  work();
  if (!watch) return told;
  const trace::CodeOfCall code = watch->end();
  for (const trace::CodeOfCall::Kernel& one : code.kernels) told.kernels.push_back({one.name, one.launches});
  if (told.kernels.empty()) told.why = code.why;
  return told;
}

class Server {
 public:
  Server(int in, int out, std::string name, const OpenCallee& open)
      : reader_(in), out_(out), name_(std::move(name)), open_(open), beside_(open) {}

  int run() {
    while (const auto said = next_host_message(reader_)) {
      const Json& message = *said->json;
      const std::string& type = said->type;
      if (type == "hello") {
        if (!greet(message)) return 1;
      } else if (type == "call" && callee_) {
        write_frame(out_, answer(message));
      } else {
        write_frame(
            out_, failed(FailedKind::protocol, fmt::format("this worker serves 'call' after 'hello', not '{}'", type)));
      }
    }
    return 0;
  }

 private:
  bool greet(const Json& message) {
    const Fields fields(message, "message 'hello'");
    const Json failure = failure_of([&] {
      const int fd = static_cast<int>(fields.integer_or("memory_fd", -1));
      memory_ = std::make_unique<Memory>(fd);
      if (fields.text_or("device", "cpu") == "cuda") open_gpu(fd, fields.integer_or("gpu_memory_bytes", 0));
      if (fields.flag_or("loading", false)) write_frame(out_, {{"type", "loading"}});
      callee_ = open_(gpu_ ? gpu_->stream() : device::Stream{});
      limit_memory_for_good(static_cast<std::uint64_t>(fields.integer_or("memory_limit_bytes", 0)));
    });
    if (!failure.is_null()) {
      write_frame(out_, failure);
      return false;
    }
    Json serves{"call", "release", "empty"};
    if (gpu_) serves.insert(serves.end(), {"graph", "kernels"});
    if (gpu_ && gpu_->shares()) serves.push_back("gpu_release");
    write_frame(out_, {{"type", "hello"},
                       {"protocol", kWireVersion},
                       {"name", name_},
                       {"language", "C"},
                       {"serves", std::move(serves)},
                       {"domain", callee_->domain()}});
    return fields.integer("protocol") == kWireVersion;
  }

  Json answer(const Json& message) {
    Returned returned;
    const Json failure = failure_of([&] { returned = call(call_request_from_json(message)); });
    if (!failure.is_null()) return failure;
    Json said{{"type", "returned"}, {"elapsed_ns", returned.elapsed.count()}};
    if (returned.clock_hz) said["clock_hz"] = *returned.clock_hz;
    if (returned.flags != 0) said["flags"] = returned.flags;
    if (returned.kernels) said.update({{"kernels", to_json(*returned.kernels)}, {"no_kernels", returned.kernels->why}});
    return said;
  }

  // Before anything of the library runs: the driver may start what a judged process may not.
  void open_gpu(int fd, std::int64_t shared_bytes) {
    gpu_ = std::make_unique<ServedGpu>(device::Place{device::Kind::cuda, 0});
    if (shared_bytes <= 0) return;
    page_ = std::make_unique<Memory>(fd);
    try {
      gpu_->share(page_->of(static_cast<std::size_t>(shared_bytes)));
    } catch (const Error& error) {
      std::fprintf(stderr, "memory of the GPU is not shared: %s\n", error.what());
    }
  }

  // What runs it on tensors whose offsets count from `memory`.
  std::function<void()> prepared(const CallRequest& request, std::byte* memory) {
    const TensorsOfCall there = tensors_of(request, memory);
    std::function<void()> body = callee_->prepare(request.function, there.inputs, there.outputs, request.options);
    return request.graph && gpu_ ? gpu_->captured(body) : body;
  }

  Returned call_in_memory_of_the_host(const CallRequest& request) {
    const auto body = prepared(request, gpu_->memory(request.gpu_memory));
    write_frame(out_, {{"type", "ready"}});
    return {.elapsed = gpu_->run_shared(request.step, body, [&] {
      write_frame(out_, {{"type", "queued"}, {"outputs", Json(request.outputs.size(), nullptr)}});
    })};
  }

  Returned call_on_gpu(const CallRequest& request) {
    if (!request.gpu_memory.empty()) return call_in_memory_of_the_host(request);
    try {
      return called_on_gpu(request);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device || !gpu_->is_fenced()) throw;
      throw Error(ErrorKind::device,
                  fmt::format("{}; behind each tensor of this call nothing is mapped: it may have read "
                              "or written past the end of one",
                              error.what()));
    }
  }

  Returned called_on_gpu(const CallRequest& request) {
    std::byte* const memory = memory_->of(request.memory_bytes);
    memory_->unguard();  // what was asked before, of its workspace, was a call on the host
    std::byte* const there = gpu_->copied(request, memory);
    const auto body = prepared(gpu_->there(), there);
    if (request.kernels) {
      return {.kernels = kernels_of([&] { gpu_->run_untimed(request, body, memory); })};
    }
    if (!request.options.has("streams")) return gpu_->run(request, body, memory);
    const auto streams =
        static_cast<int>(std::clamp<std::int64_t>(request.options.integer("streams"), 1, kMostStreams));
    const auto all = [&] { beside_.queue_with(request, memory, streams, gpu_->stream(), body); };
    gpu_->run_untimed(request, all, memory);
    return {};
  }

  Returned call(const CallRequest& request) {
    if (gpu_ && !request.inputs.empty()) return call_on_gpu(request);
    std::byte* const memory = memory_->of(request.memory_bytes);
    memory_->guard(request);
    const std::function<void()> body = request.empty == EmptyCall::none ? prepared(request, memory) : [] {};
    Doorbell bell(memory);
    if (request.release) {
      write_frame(out_, {{"type", "ready"}});
      bell.await(1);
    }
    const auto begin = std::chrono::steady_clock::now();
    body();
    const Nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
    if (request.release) bell.finish();
    return {.elapsed = elapsed};
  }

  FrameReader reader_;
  int out_;
  std::string name_;
  const OpenCallee& open_;
  std::unique_ptr<Memory> memory_, page_;  // page_: of the words that streams read and write; never mapped anew
  std::unique_ptr<ServedGpu> gpu_;         // of what computes on one
  std::unique_ptr<Callee> callee_;
  CallsBeside beside_;  // last: its gate is on the stream of gpu_
};

}  // namespace

int serve_calls(int in, int out, const std::string& name, const OpenCallee& open) {
  try {
    const OwnStreams streams(in, out);
    return Server(streams.in(), streams.out(), name, open).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "syslab judged: %s\n", error.what());
    return kServingFailed;
  }
}

}  // namespace syslab::worker
