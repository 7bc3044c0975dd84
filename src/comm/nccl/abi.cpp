// Our declarations against NCCL's own, at compile time. Built where nccl.h is found.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "comm/nccl/api.hpp"

namespace syslab::comm::nccl {
namespace {

// Whether our argument type and NCCL's are passed the same way: equal sizes, and both numbers, both pointers or both
// plain structures.
template <typename Ours, typename Theirs>
constexpr bool kSame =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& std::is_class_v<Ours> ==
                                          std::is_class_v<Theirs>;

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool same(OurResult (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return kSame<OurResult, TheirResult> && (kSame<Ours, Theirs> && ...);
  }
}

constexpr Api kApi;
static_assert(same(kApi.ncclGetVersion, &::ncclGetVersion));
static_assert(same(kApi.ncclGetUniqueId, &::ncclGetUniqueId));
static_assert(same(kApi.ncclCommInitRankConfig, &::ncclCommInitRankConfig));
static_assert(same(kApi.ncclCommFinalize, &::ncclCommFinalize));
static_assert(same(kApi.ncclCommDestroy, &::ncclCommDestroy));
static_assert(same(kApi.ncclCommAbort, &::ncclCommAbort));
static_assert(same(kApi.ncclCommGetAsyncError, &::ncclCommGetAsyncError));
static_assert(same(kApi.ncclGetErrorString, &::ncclGetErrorString));
static_assert(same(kApi.ncclGetLastError, &::ncclGetLastError));
static_assert(same(kApi.ncclAllReduce, &::ncclAllReduce));
static_assert(same(kApi.ncclReduceScatter, &::ncclReduceScatter));
static_assert(same(kApi.ncclAllGather, &::ncclAllGather));
static_assert(same(kApi.ncclBroadcast, &::ncclBroadcast));
static_assert(same(kApi.ncclSend, &::ncclSend));
static_assert(same(kApi.ncclRecv, &::ncclRecv));
static_assert(same(kApi.ncclGroupStart, &::ncclGroupStart));
static_assert(same(kApi.ncclGroupEnd, &::ncclGroupEnd));

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(int{kSuccess} == ncclSuccess && int{kRemoteError} == ncclRemoteError &&
              int{kInProgress} == ncclInProgress);
static_assert(int{kFloat16} == ncclFloat16 && int{kFloat32} == ncclFloat32 && int{kFloat64} == ncclFloat64 &&
              int{kBfloat16} == ncclBfloat16);
static_assert(int{kSum} == ncclSum && int{kMax} == ncclMax && int{kMin} == ncclMin);
static_assert(kUndefined == NCCL_CONFIG_UNDEF_INT);

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(sizeof(Config) == sizeof(ncclConfig_t));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(Config, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Config, comm_name) == offsetof(ncclConfig_t, commName));
static_assert(offsetof(Config, nvlink_centric_sched) == offsetof(ncclConfig_t, nvlinkCentricSched));
#endif

}  // namespace
}  // namespace syslab::comm::nccl
