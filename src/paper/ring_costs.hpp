// What collectives around a ring of n ranks cost on paper: the bytes that a rank sends. A rank receives as much at the
// same time, so that at W bytes a second out of each rank they take sent / W.
//
//   ring_all_reduce_sent(S, n) / W                         // 2(n−1)/n · S/W
//
// Source: the hand-outs' ring collectives (2026: data_parallel_calcs, fsdp_calcs, tp_calcs).
// paper/ring_walk.hpp does them step by step.
#pragma once

#include <cstdint>

namespace syslab::parallel {

// `bytes`: of the tensor; of the whole one where ranks end or begin with a part. One rank, and 0 bytes, cost nothing.
// Error(usage) for fewer than one rank.
double ring_all_gather_sent(double bytes, std::int64_t ranks);      // (n−1)/n · S
double ring_reduce_scatter_sent(double bytes, std::int64_t ranks);  // (n−1)/n · S
double ring_all_reduce_sent(double bytes, std::int64_t ranks);      // both, one after the other

// Along a chain, in pieces: all ranks but the last send everything once. The mean over ranks, (n−1)/n · S; the time is
// that of S bytes whatever n is.
double chain_broadcast_sent(double bytes, std::int64_t ranks);

}  // namespace syslab::parallel
