// The part of NCCL's binary interface that we use, declared here, so that building needs no NCCL header. nccl/abi.cpp
// checks it against nccl.h if available. Source: nccl.h of NCCL 2.28, and the documentation of its API.
#pragma once

#include <climits>
#include <cstddef>

namespace syslab::comm::nccl {

using Comm = struct CommOpaque*;

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7
};

enum Type : int { kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9 };
enum Op : int { kSum = 0, kMax = 2, kMin = 3 };

struct UniqueId {
  char internal[128];
};

inline constexpr int kUndefined = INT_MIN;

// As of version 2.28. Older libraries read only the part that they know, according to `size` and `version`.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22800;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;
  const char* comm_name = nullptr;
  int collnet_enable = kUndefined;
  int cta_policy = kUndefined;
  int shrink_share = kUndefined;
  int nvls_ctas = kUndefined;
  int channels_per_net_peer = kUndefined;
  int nvlink_centric_sched = kUndefined;
};

// Functions by their names in the library. `stream` is a cudaStream_t.
struct Api {
  Result (*ncclGetVersion)(int* version) = nullptr;
  Result (*ncclGetUniqueId)(UniqueId* id) = nullptr;
  Result (*ncclCommInitRankConfig)(Comm* comm, int size, UniqueId id, int rank, Config* config) = nullptr;
  Result (*ncclCommFinalize)(Comm comm) = nullptr;
  Result (*ncclCommDestroy)(Comm comm) = nullptr;
  Result (*ncclCommAbort)(Comm comm) = nullptr;
  Result (*ncclCommGetAsyncError)(Comm comm, Result* error) = nullptr;
  const char* (*ncclGetErrorString)(Result result) = nullptr;
  const char* (*ncclGetLastError)(Comm comm) = nullptr;
  Result (*ncclAllReduce)(const void* in, void* out, std::size_t count, Type type, Op op, Comm comm,
                          void* stream) = nullptr;
  Result (*ncclReduceScatter)(const void* in, void* out, std::size_t out_count, Type type, Op op, Comm comm,
                              void* stream) = nullptr;
  Result (*ncclAllGather)(const void* in, void* out, std::size_t in_count, Type type, Comm comm,
                          void* stream) = nullptr;
  Result (*ncclBroadcast)(const void* in, void* out, std::size_t count, Type type, int root, Comm comm,
                          void* stream) = nullptr;
  Result (*ncclSend)(const void* in, std::size_t count, Type type, int peer, Comm comm, void* stream) = nullptr;
  Result (*ncclRecv)(void* out, std::size_t count, Type type, int peer, Comm comm, void* stream) = nullptr;
  Result (*ncclGroupStart)() = nullptr;
  Result (*ncclGroupEnd)() = nullptr;
};

}  // namespace syslab::comm::nccl
