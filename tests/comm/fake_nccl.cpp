// A library behind NCCL's table of functions for tests without a GPU: ranks are threads of one process, streams are the
// CPU's, and sums are those of the backend `local`. As with NCCL's blocking communicators making one waits for all
// ranks, and an operation under way ends only when all ranks take part or its rank aborts.
//
// SYSLAB_FAKE_NCCL, read when a communicator is made, holds words:
//   slow_init        a communicator is ready half a second after all ranks have come
//   never_ready      it never is: the call does not return
//   async_error      the third operation of rank 1 fails while it is under way
//   swallow          the third operation of rank 1 is not done at all: the others wait for it
//   stuck_call       the call of rank 1's third operation does not return for three seconds
//   refuse_init      making rank 1's communicator is an error
//   refuse_send      ncclSend is an error
//   abort_hangs      ncclCommAbort does not return
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/local/local.hpp"
#include "comm/nccl/api.hpp"
#include "tests/comm/fake_nccl.hpp"

using namespace std::chrono_literals;  // NOLINT: a library of its own
namespace comm = syslab::comm;
namespace nccl = syslab::comm::nccl;
using syslab::DType;

namespace {

struct World {
  std::mutex mutex;
  std::vector<std::unique_ptr<comm::Communicator>> ranks;
  int joined = 0;
  std::chrono::steady_clock::time_point complete;
};

bool says(const char* word) {
  const char* words = std::getenv("SYSLAB_FAKE_NCCL");
  return words != nullptr && std::strstr(words, word) != nullptr;
}

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;
std::atomic<int> next_id = 0;

DType dtype_of(nccl::Type type) {
  switch (type) {
    case nccl::kFloat64:
      return DType::f64;
    case nccl::kFloat16:
      return DType::f16;
    case nccl::kBfloat16:
      return DType::bf16;
    case nccl::kFloat32:
      break;
  }
  return DType::f32;
}

comm::Reduction reduction_of(nccl::Op op) {
  return op == nccl::kMax ? comm::Reduction::max : op == nccl::kMin ? comm::Reduction::min : comm::Reduction::sum;
}

syslab::TensorView view(const void* data, std::size_t count, nccl::Type type) {
  return {const_cast<void*>(data), dtype_of(type), {static_cast<std::int64_t>(count)}};
}

}  // namespace

namespace syslab::comm::nccl {

struct CommOpaque {
  std::shared_ptr<World> world;
  int rank = 0, operations = 0;
  int calls = 0;  // by the host, operations or groups
  std::atomic<Result> error = kSuccess;
  std::atomic<bool> aborted = false;
  bool slow = false, never = false, fails = false, swallows = false, stuck = false, refuses_send = false,
       abort_hangs = false;
};

}  // namespace syslab::comm::nccl

namespace {

// All stay until the process ends: another rank may still be in a world, a stream may still run a call.
std::vector<nccl::Comm>& made_comms() {
  static auto* const kept = new std::vector<nccl::Comm>;
  return *kept;
}

struct Queued {
  nccl::Comm comm = nullptr;
  void* stream = nullptr;
  std::function<void(comm::Communicator&)> run;
};
// How work is put on a stream of the program that has opened this library: its queues are none of ours.
std::atomic<FakeEnqueue> enqueue = nullptr;

thread_local int group_depth = 0;
thread_local bool group_refused = false;
thread_local std::vector<Queued> group;

// In the thread of the stream. What is thrown becomes the communicator's asynchronous error.
void run_all(nccl::Comm comm, const std::vector<Queued>& calls) {
  comm::Communicator& ranks = *comm->world->ranks[static_cast<std::size_t>(comm->rank)];
  const int operation = ++comm->operations;
  const bool third_of_one = operation == 3 && comm->rank == 1;
  if (third_of_one && comm->swallows) return;
  try {
    if (third_of_one && comm->fails) {
      comm->error = nccl::kRemoteError;
      return;
    }
    if (calls.size() > 1) ranks.begin_group();
    for (const Queued& call : calls) call.run(ranks);
    if (calls.size() > 1) ranks.end_group();
  } catch (const std::exception&) {
    if (!comm->aborted) comm->error = nccl::kRemoteError;
  }
}

nccl::Result end_group() {
  if (group_depth == 0) return nccl::kInvalidUsage;
  if (--group_depth > 0) return nccl::kSuccess;
  const std::vector<Queued> calls = std::move(group);
  group.clear();
  if (std::exchange(group_refused, false)) return nccl::kInvalidUsage;
  if (calls.empty()) return nccl::kSuccess;
  nccl::Comm comm = calls[0].comm;
  if (++comm->calls == 3 && comm->rank == 1 && comm->stuck) std::this_thread::sleep_for(3s);
  enqueue.load()(calls[0].stream, [comm, calls] { run_all(comm, calls); });
  return nccl::kSuccess;
}

nccl::Result queue(Queued call) {
  if (call.comm == nullptr) return nccl::kInvalidArgument;
  group.push_back(std::move(call));
  if (group_depth > 0) return nccl::kSuccess;
  ++group_depth;
  return end_group();
}

constexpr comm::Purpose kPurpose{"fake"};

}  // namespace

extern "C" {

void fake_enqueue_by(FakeEnqueue by) { enqueue = by; }

nccl::Result ncclGetVersion(int* version) {
  *version = 22803;
  return nccl::kSuccess;
}

nccl::Result ncclGetUniqueId(nccl::UniqueId* id) {
  const std::string name = "fake " + std::to_string(++next_id);
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, name.data(), name.size());
  return nccl::kSuccess;
}

nccl::Result ncclCommInitRankConfig(nccl::Comm* comm, int size, nccl::UniqueId id, int rank, nccl::Config* config) {
  if (config == nullptr || config->size != sizeof(nccl::Config) || config->magic != 0xcafebeef ||
      config->blocking != 1) {
    return nccl::kInvalidArgument;
  }
  if (says("refuse_init") && rank == 1) return nccl::kInternalError;
  std::shared_ptr<World> world;
  {
    const std::lock_guard lock(worlds_mutex);
    std::shared_ptr<World>& known = worlds[id.internal];
    if (known == nullptr) known = std::make_shared<World>();
    world = known;
  }
  {
    const std::lock_guard lock(world->mutex);
    if (world->ranks.empty()) world->ranks = comm::make_local(size, {.limit = std::chrono::hours(1)});
    if (++world->joined == size) world->complete = std::chrono::steady_clock::now();
  }
  auto* made = new nccl::CommOpaque{world, rank};
  {
    const std::lock_guard lock(worlds_mutex);
    made_comms().push_back(made);
  }
  made->slow = says("slow_init");
  made->never = says("never_ready");
  made->fails = says("async_error");
  made->swallows = says("swallow");
  made->stuck = says("stuck_call");
  made->refuses_send = says("refuse_send");
  made->abort_hangs = says("abort_hangs");
  const auto ready = [&] {
    const std::lock_guard lock(world->mutex);
    return world->joined == size && !made->never &&
           (!made->slow || std::chrono::steady_clock::now() > world->complete + 500ms);
  };
  while (!ready()) std::this_thread::sleep_for(5ms);  // as a blocking communicator does
  *comm = made;
  return nccl::kSuccess;
}

nccl::Result ncclCommGetAsyncError(nccl::Comm comm, nccl::Result* error) {
  *error = comm->error;
  return nccl::kSuccess;
}

nccl::Result ncclCommFinalize(nccl::Comm comm) { return comm == nullptr ? nccl::kInvalidArgument : nccl::kSuccess; }

nccl::Result ncclCommDestroy(nccl::Comm) { return nccl::kSuccess; }

nccl::Result ncclCommAbort(nccl::Comm comm) {
  while (comm->abort_hangs) std::this_thread::sleep_for(10ms);
  comm->aborted = true;
  comm->world->ranks[static_cast<std::size_t>(comm->rank)]->abort("ncclCommAbort");
  return nccl::kSuccess;
}

const char* ncclGetErrorString(nccl::Result result) {
  return result == nccl::kRemoteError ? "remote process exited or there was a network error" : "another error";
}

const char* ncclGetLastError(nccl::Comm) { return "the fake says so"; }

nccl::Result ncclAllReduce(const void* in, void* out, std::size_t count, nccl::Type type, nccl::Op op, nccl::Comm comm,
                           void* stream) {
  return queue({comm, stream, [=](comm::Communicator& ranks) {
                  if (in != out) std::memmove(out, in, count * syslab::size_of(dtype_of(type)));
                  ranks.all_reduce(view(out, count, type), reduction_of(op), kPurpose, {});
                }});
}

nccl::Result ncclReduceScatter(const void* in, void* out, std::size_t count, nccl::Type type, nccl::Op op,
                               nccl::Comm comm, void* stream) {
  return queue({comm, stream, [=](comm::Communicator& ranks) {
                  const auto all = static_cast<std::size_t>(ranks.size()) * count;
                  ranks.reduce_scatter(view(in, all, type), view(out, count, type), reduction_of(op), kPurpose, {});
                }});
}

nccl::Result ncclAllGather(const void* in, void* out, std::size_t count, nccl::Type type, nccl::Comm comm,
                           void* stream) {
  return queue({comm, stream, [=](comm::Communicator& ranks) {
                  const auto all = static_cast<std::size_t>(ranks.size()) * count;
                  ranks.all_gather(view(in, count, type), view(out, all, type), kPurpose, {});
                }});
}

nccl::Result ncclBroadcast(const void* in, void* out, std::size_t count, nccl::Type type, int root, nccl::Comm comm,
                           void* stream) {
  return queue({comm, stream, [=](comm::Communicator& ranks) {
                  if (in != out && ranks.rank() == root) {
                    std::memmove(out, in, count * syslab::size_of(dtype_of(type)));
                  }
                  ranks.broadcast(view(out, count, type), root, kPurpose, {});
                }});
}

nccl::Result ncclSend(const void* in, std::size_t count, nccl::Type type, int peer, nccl::Comm comm, void* stream) {
  if (comm->refuses_send) {
    group_refused = group_depth > 0;
    return nccl::kInvalidUsage;
  }
  return queue(
      {comm, stream, [=](comm::Communicator& ranks) { ranks.send(view(in, count, type), peer, kPurpose, {}); }});
}

nccl::Result ncclRecv(void* out, std::size_t count, nccl::Type type, int peer, nccl::Comm comm, void* stream) {
  return queue(
      {comm, stream, [=](comm::Communicator& ranks) { ranks.receive(view(out, count, type), peer, kPurpose, {}); }});
}

nccl::Result ncclGroupStart() {
  ++group_depth;
  return nccl::kSuccess;
}

nccl::Result ncclGroupEnd() { return end_group(); }

int fake_open_groups() { return group_depth; }  // of the calling thread

}  // extern "C"
