// flash_wgmma, backward: dK, dV and the sums of dQ on Hopper's own instructions (sm_90a).
//
//   P_ij = exp(scale·S_ij − L_i)      dV = Pᵀ·dO      dP = dO·Vᵀ      δ_i = Σ_d dO_id·O_id
//   dS = P∘(dP − δ)                   dQ = scale·dS·K                 dK = scale·dSᵀ·Q
//
// WHO DOES WHAT (a block: a warpgroup that loads and adds, two that compute; one block a multiprocessor)
//
//   A block owns 128 keys of a head of K and V, 64 a computing group. It goes over all tiles of 64 queries that see
//   these keys, of all query heads that share them. One tile of queries is a step.
//   The loader is one thread: K and V once, then Q with −L·log₂e and dO with −δ of each step, in rings of two slots;
//   with `early_dq` Q has four, so that the next Q is there when S is queued ahead of dK.
//   A computing group keeps dK and dV of its keys in registers, and in each step computes
//     Sᵀ = K·Qᵀ, dPᵀ = V·dOᵀ   wgmma, both factors in shared memory: keys are rows, queries are columns
//     P, dS                    in place of them; packed two columns a register, they lie as the factor A must of
//     dV += Pᵀ·dO, dK += dSᵀ·Q
//     dSᵀ                      to shared memory as well, since the next product sums over the keys of both groups:
//     dQ = dS·K                of the step before: the other group has stored its dS long ago; half of the columns each
//   With kept factors (`keeps_factors`) V of its keys and Kᵀ of the block's are in a group's registers from the start,
//   so that dP and dQ read one factor in shared memory, not two. A factor in registers has 64 rows: dQᵀ = Kᵀ·dSᵀ, all
//   64 columns of half of the queries each.
//   dQ of a step is added to fp32 sums in the L2, which have the layout of the registers: neighbouring threads,
//   neighbouring addresses (the next kernel, in backward_rows.cuh, reads this layout and rounds the sums to dQ).
//   Adders (`kStaged`) are other threads of the loader's group: dQ goes through shared memory, and they take turns to
//   add it, a whole tile by one instruction. Without adders the groups add it from registers. In order (`kOrdered`) an
//   adder waits until the block of the next higher keys has added to that tile: equal inputs then give equal bits.
//
// WHAT OVERLAPS WITH WHAT. The exponentials of a step overlap with its dP, which is queued before them. Where registers
//   are left (`early_dq`) they also overlap with dK of the step before, since S is queued ahead of it. dQ of the step
//   before is then queued after the exponentials, and overlaps with dS. Otherwise dQ follows dV, and S and dP of the
//   next step follow dK.
//
// A STEP, READ ALOUD, at head_dim 128 (without `early_dq`). `names` are mbarriers, see below.
//   The loader waits at q `empty` and asks TMA for Q and L of the step, waits at dout `empty` and asks for dO and δ.
//
//   A computing group begins with S ready and dP under way. It makes P of S and L; waits for dP; makes dS of P, dP and
//   δ and packs both. When ds `empty` says that both groups are done with the dS of two steps ago, it stores dS there
//   and says so at ds `full`. It queues dV += Pᵀ·dO. At ds `full` of the step before it knows that the other group has
//   stored its half too, and queues dQ = dS·K of that step. When dV has ended dO's slot is free (dout `empty`), and it
//   queues dK += dSᵀ·Q. When dQ has ended the older dS is free (ds `empty`), and dQ goes to an adder's slot, which dq
//   `empty` says is free and dq `full` hands over. It waits for the next Q and queues S; when dK has ended this Q's
//   slot is free (q `empty`); it waits for the next dO and queues dP; when S is there the next step begins.
//
//   An adder waits at dq `full`, in order also for its block's turn at that tile of queries; tells TMA to add the whole
//   tile; frees the slot when TMA has read it; and in order passes the turn on when the addition is complete.
//
//   After the last step dK and dV go over K and V in shared memory, and TMA stores them.
//
// WHAT WAITS FOR WHAT (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   mbarriers, one for each job of a slot. Who arrives → what may then be done:
//
//   slot        full (landed)                               empty (left)
//   k, v        loader's arrival and the bytes → S, dQ; dP  none: loaded once; dK and dV over them: (2)
//   q[slot]     the same → S, dK, and L for P               one arrival a computing warp, when dK is done → next Q, L
//   dout[slot]  the same → dP, dV, and δ for dS             the same, when dV is done → next dO, δ
//   ds[slot]    one arrival a computing warp, which has     one arrival a computing warp, when its dQ of it is done
//               stored its part → dQ                        → dS two steps later
//   dq[slot]    one arrival a computing warp, which has     its adder, when the copy has read it → dQ in the same slot
//               stored its part → its adder
//
//   A warp arrives only after the wait for its products that read the slot, and, in release(), after a __syncwarp:
//   its lanes have read L and δ, or stored their parts of dS and dQ, in ordinary ways, and one lane arrives for all.
//   Before an arrival at ds or dq `full` each lane has a proxy fence: what it stored is read by wgmma or TMA.
//
//   wait_products  What is still under way after it, in the order of the code.
//     early_dq (order: dP, dQ of the step before, dV, next S, dK; the last step has no next S)
//       all but dQ              landed: dP.  left: dK of the step before has read Q (q `empty`) and packed dS.
//       all but dV, next S, dK  landed: dQ.  left: dS of the step before (ds `empty`).
//       all but dK              landed: next S.  left: dV has read dO (dout `empty`) and packed P.
//     otherwise (order: dP, dV, dQ of the step before, dK, next S, next dP; the last step ends with dK)
//       nothing                 landed: dP.
//       all but dQ              left: dV has read dO (dout `empty`) and packed P.
//       all but dK              landed: dQ.  left: dS of the step before (ds `empty`).
//       all but next S          left: dK has read Q (q `empty`) and packed dS.
//       all but next dP         landed: next S.
//     before the first step     landed: S; without early_dq its dP is still under way.
//     after the last step       landed: dQ, dK, dV.  left: K, for (2).
//
//   (1) after the mbarriers were initialised, block
//       landed   All threads, and through the fence before it TMA, see initialised mbarriers; in order, also the ticket
//                that says which block this is.
//       left     Nothing: shared memory was not used before.
//   (2) both groups, named, 256 threads
//       landed   Nothing.
//       left     dQ of the last step, for which each group reads all rows of K, is done in both groups (or with kept
//                factors the reading of Kᵀ at the start): dK is written over K. dV could be written over V without it:
//                behind ds `full` of the last step all warps of both groups have waited for their last dP, and nothing
//                else reads V.
//   (3) own[group], named, 128 threads
//       landed   dK and dV of all warps of the group: one thread tells TMA to store them. Each writer has a proxy fence
//                before it.
//       left     Nothing is overwritten any more.
//   wait_stores_read   left: TMA has read dQ, then the adder arrives at dq `empty`; or dK and dV, then the thread
//              exits, since shared memory must stay until then.
//   setmaxnreg The computing groups wait until the loader's group has released its registers.
//   turns[tile], in order, in global memory. landed: the additions of the block before in the order are complete
//              (wait_stores, not only read), so that ours follow; a proxy fence on both sides, since TMA adds and an
//              ordinary release and acquire pass the turn on. left: nothing is overwritten.
//              No deadlock: a block waits only for blocks with a smaller ticket, which have begun.
//   kernels    wait_for_kernels_before: landed Q, K, V, dO, and from the statistics kernel L and δ, the zeros in
//              dq_sums and in turns; left: earlier kernels have read dk and dv, which are overwritten. It stands before
//              (1), unlike forward's, because the ticket is drawn from zeroed memory. What a kernel wrote that has
//              ended needs no proxy fence, although TMA adds to it.
//
// TAILS. TMA fills what lies beyond a tensor with zeros when it loads, and skips it when it stores. Queries beyond the
//   last have −∞ for −L, so P = dS = 0; keys beyond the last are hidden as masked keys are.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/cuda/mbarrier.cuh"
#include "device/cuda/ptx.cuh"
#include "device/cuda/tma.cuh"
#include "device/cuda/warpgroup.cuh"
#include "device/cuda/wgmma.cuh"
#include "ops/attention/wgmma/backward_block.cuh"
#include "ops/attention/wgmma/backward_products.cuh"

namespace syslab::attention::wgmma {

// One thread.
template <typename Tile>
__device__ __forceinline__ void load(const BackwardParams& p, std::uint32_t shared,
                                     const BackwardBarriers<Tile>& barriers, const KeyBlock& block) {
  const auto load_keys = [&](const device::TensorMap& map, int at, std::uint32_t barrier) {
    ptx::arrive_expecting(barrier, Tile::kKeyBytes);
#pragma unroll 1
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      ptx::load_box(shared + at + panel * Tile::kKeyPanelBytes, map, panel * Tile::kPanelColumns, block.first_key,
                    block.kv_head, block.batch, barrier, ptx::kPassThroughL2);
    }
  };
  Step step(p, block);
  const auto load_queries = [&](const device::TensorMap& map, int slot, int at, const float* of_rows, int rows_at,
                                std::uint32_t barrier) {
    ptx::arrive_expecting(barrier, Tile::kQueryBytes + Tile::kRowsBytes);
#pragma unroll 1
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      ptx::load_box(shared + at + slot * Tile::kQueryBytes + panel * Tile::kQueryPanelBytes, map,
                    panel * Tile::kPanelColumns, step.tile * Tile::kQueries, step.head, block.batch, barrier,
                    ptx::kKeepInL2);
    }
    ptx::load_line(shared + rows_at + slot * Tile::kRowsBytes,
                   of_rows + static_cast<std::int64_t>(step.index) * Tile::kQueries, Tile::kRowsBytes, barrier);
  };
  if (block.steps == 0) return;  // nothing to load: the groups write zeros
  load_keys(p.k, Tile::kKeysAt, barriers.k());
#pragma unroll 1
  while (step.number < block.steps) {
    const int q_slot = step.slot<Tile::kQueryStages>();
    ptx::wait(barriers.q_empty(q_slot), step.parity<Tile::kQueryStages>() ^ 1);
    load_queries(p.q, q_slot, Tile::kQueriesAt, p.negated_lse, Tile::kLseAt, barriers.q_full(q_slot));
    if (step.number == 0) load_keys(p.v, Tile::kValuesAt, barriers.v());
    ptx::wait(barriers.dout_empty(step.slot()), step.parity() ^ 1);
    load_queries(p.dout, step.slot(), Tile::kDoutAt, p.negated_delta, Tile::kDeltaAt, barriers.dout_full(step.slot()));
    step.advance(p, block);
  }
}

// One of kAdders threads: adds dQ of every kAdders-th step, which the groups have stored; in order, the last keys
// first.
template <typename Tile>
__device__ __forceinline__ void add_stored(const BackwardParams& p, std::uint32_t shared,
                                           const BackwardBarriers<Tile>& barriers, const KeyBlock& block, int adder) {
  std::uint32_t parity = 0;
  int until_mine = adder;
#pragma unroll 1
  for (Step step(p, block); step.number < block.steps; step.advance(p, block)) {
    if (until_mine-- > 0) continue;
    until_mine = Tile::kAdders - 1;
    ptx::wait(barriers.dq_full(adder), parity);
    parity ^= 1;
    if constexpr (Tile::kOrdered) {
      const auto turn = static_cast<unsigned>(turn_of<Tile>(p, block, step.tile));
      while (ptx::load_acquire(p.turns + step.index) != turn) {
      }
      ptx::fence_async_proxy_everywhere();
    }
    ptx::add_line(p.dq_sums + static_cast<std::int64_t>(step.index) * (Tile::kDqBytes / 4),
                  shared + Tile::kDqAt + adder * Tile::kDqBytes, Tile::kDqBytes);
    ptx::commit_stores();
    ptx::wait_stores_read();
    ptx::arrive(barriers.dq_empty(adder));
    if constexpr (Tile::kOrdered) {
      ptx::wait_stores();
      ptx::fence_async_proxy_everywhere();
      ptx::add_release(p.turns + step.index, 1);
    }
  }
}

// A computing group, 0 or 1.
template <typename T, typename Tile>
__device__ __forceinline__ void compute(const BackwardParams& p, std::uint32_t shared,
                                        const BackwardBarriers<Tile>& barriers, const KeyBlock& block, int group) {
  constexpr int kD = Tile::kHeadDim, kQueries = Tile::kQueries, kRowBytes = Tile::kRowBytes;
  constexpr int kBoth = 1, kDsRowBytes = 2 * kQueries;
  const int own = 2 + group;  // names of barriers
  const int first_key = block.first_key + 64 * group;
  // Computed anew at each use: there are no registers to keep them.
  const auto warp = [] { return ptx::thread_anew() / 32 % 4; };
  const auto lane = [] { return ptx::lane_anew(); };

  // The descriptor that those of all operands are offsets of. Only Q and dO are read across panels.
  const std::uint64_t origin = ptx::operand<kRowBytes>(shared, Tile::kQueryPanelBytes);
  const int keys_of_group = 64 * group * kRowBytes;
  constexpr int kGroupColumns = 2 * Tile::kDqColumns;  // bytes of a group's part of a row of K
  const int columns_of_group = group * (Tile::kPanels > 1 ? Tile::kKeyPanelBytes : kGroupColumns);

  float dk[kD / 8][4], dv[kD / 8][4];
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) dk[n][e] = dv[n][e] = 0.0F;
  }
  ptx::hold<kD>(dk);
  ptx::hold<kD>(dv);
  float scores[kQueries / 8][4], ds[kQueries / 8][4], dq[Tile::kDqColumns / 8][4];
  std::uint32_t p_bits[kQueries / 16][4], ds_bits[kQueries / 16][4];
  std::uint32_t kept_values[kD / 16][4], kept_keys[Tile::kKeys / 16][4];  // V of the group's keys, Kᵀ of all
  Step step(p, block);

  const auto queue_sum = [&](float(&to)[kD / 8][4], const std::uint32_t(&bits)[kQueries / 16][4], int queries_at,
                             int slot) {
    queue_sum_over_queries<T, Tile>(to, bits, ptx::at(origin, queries_at + slot * Tile::kQueryBytes));
  };
  // dQ of the step before: 64 queries × kDqColumns; with kept factors its transpose, of as many queries. The first
  // call, before any dS, waits for nothing and may read a slot that is being written; its result is not added.
  const auto queue_dq = [&] {
    const int number = step.number - 1;
    if (number >= 0) ptx::wait(barriers.ds_full(number & 1), number >> 1 & 1);
    const std::uint64_t of_slot = ptx::at(origin, Tile::kDsAt + (number & 1) * Tile::kDsBytes);
    const std::uint64_t keys = ptx::at(origin, Tile::kKeysAt + columns_of_group);
    if constexpr (Tile::kEarlyDq) ptx::forget<Tile::kDqColumns>(dq);
    ptx::fence_products();
#pragma unroll
    for (int s = 0; s < Tile::kKeys / 16; ++s) {
      const std::uint64_t of_keys = ptx::at(of_slot, s * 16 * kDsRowBytes);
      if constexpr (Tile::kKeepsFactors) {
        ptx::Product<Tile::kDqColumns>::template of_registers<T>(dq, kept_keys[s],
                                                                 ptx::at(of_keys, group * kGroupColumns), s > 0);
      } else {
        ptx::Product<Tile::kDqColumns>::template of_shared_across<T>(dq, of_keys, ptx::at(keys, s * 16 * kRowBytes),
                                                                     s > 0);
      }
    }
    ptx::commit_products();
  };
  const auto release = [](std::uint32_t barrier) { arrive_for_warp(barrier); };
  // Adds or stages dQ of the step before.
  const auto add_dq = [&] {
    const int number = step.number - 1, tile = step.index_before(p, block);
    release(barriers.ds_empty(number & 1));
    const int thread = ptx::thread_anew() - 128;
    const int of_thread = (thread / 32 * (Tile::kDqColumns / 8) * 32 + thread % 32) * 4;
    if constexpr (Tile::kStaged) {
      const int slot = number % Tile::kAdders;
      ptx::wait(barriers.dq_empty(slot), number / Tile::kAdders & 1 ^ 1);
      const std::uint32_t to = shared + Tile::kDqAt + slot * Tile::kDqBytes + of_thread * 4;
#pragma unroll
      for (int n = 0; n < Tile::kDqColumns / 8; ++n) ptx::store_shared(to + n * 32 * 16, dq[n]);
      ptx::fence_async_proxy();
      release(barriers.dq_full(slot));
    } else {
      float* to = p.dq_sums + static_cast<std::int64_t>(tile) * (Tile::kDqBytes / 4) + of_thread;
#pragma unroll
      for (int n = 0; n < Tile::kDqColumns / 8; ++n) ptx::reduce_add(to + n * 32 * 4, dq[n]);
    }
  };
  // dS in place of dP; both packed, and dS stored.
  const auto make_ds = [&] {
    const std::uint32_t rows = shared + Tile::kDeltaAt + step.slot() * Tile::kRowsBytes + lane() % 4 * 8;
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
      const float2 delta = ptx::load_shared_pair(rows + n * 32);
#pragma unroll
      for (int e = 0; e < 4; ++e) ds[n][e] = scores[n][e] * (ds[n][e] + (e % 2 == 0 ? delta.x : delta.y));
    }
#pragma unroll
    for (int s = 0; s < kQueries / 16; ++s) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p_bits[s][e] = ptx::pack<T>(scores[2 * s + e / 2][e % 2 * 2], scores[2 * s + e / 2][e % 2 * 2 + 1]);
        ds_bits[s][e] = ptx::pack<T>(ds[2 * s + e / 2][e % 2 * 2], ds[2 * s + e / 2][e % 2 * 2 + 1]);
      }
    }
    ptx::wait(barriers.ds_empty(step.slot()), step.parity() ^ 1);
    const int row = 64 * group + 16 * warp() + lane() % 16, half = lane() / 16;
    const std::uint32_t to = shared + Tile::kDsAt + step.slot() * Tile::kDsBytes + row * kDsRowBytes;
#pragma unroll
    for (int s = 0; s < kQueries / 16; ++s) {
      ptx::store_matrices(to + (((2 * s + half) ^ (row % 8)) << 4), ds_bits[s]);
    }
    ptx::fence_async_proxy();
    release(barriers.ds_full(step.slot()));
  };

  // S and dP of this step or of one `later`, when its Q and dO are there.
  const auto queue_s = [&](int later) {
    const int slot = step.slot<Tile::kQueryStages>(later);
    ptx::wait(barriers.q_full(slot), step.parity<Tile::kQueryStages>(later));
    queue_transposed_scores<T, Tile>(scores, ptx::at(origin, Tile::kKeysAt + keys_of_group),
                                     ptx::at(origin, Tile::kQueriesAt + slot * Tile::kQueryBytes));
  };
  const auto queue_dp = [&](int later) {
    const int slot = step.slot(later);
    ptx::wait(barriers.dout_full(slot), step.parity(later));
    const std::uint64_t dout = ptx::at(origin, Tile::kDoutAt + slot * Tile::kQueryBytes);
    if constexpr (Tile::kKeepsFactors) {
      queue_transposed_scores<T, Tile>(ds, kept_values, dout);
    } else {
      queue_transposed_scores<T, Tile>(ds, ptx::at(origin, Tile::kValuesAt + keys_of_group), dout);
    }
  };
  // A step. Its S is done. Still under way: with kEarlyDq dK of the step before, otherwise dP of this one.
  const auto do_step = [&](auto is_last) {
    constexpr bool kLast = decltype(is_last)::value;
    const int q_slot = step.slot<Tile::kQueryStages>();
    if constexpr (Tile::kEarlyDq) {
      queue_dp(0);
      weigh<Tile>(scores, p, shared + Tile::kLseAt + q_slot * Tile::kRowsBytes, first_key, step.tile * kQueries);
      queue_dq();
      ptx::wait_products<1>();  // all but dQ
      if (step.number > 0) release(barriers.q_empty(step.slot<Tile::kQueryStages>(-1)));
    } else {
      weigh<Tile>(scores, p, shared + Tile::kLseAt + q_slot * Tile::kRowsBytes, first_key, step.tile * kQueries);
      ptx::wait_products<0>();  // nothing
    }
    ptx::hold<kQueries>(ds);
    make_ds();
    queue_sum(dv, p_bits, Tile::kDoutAt, step.slot());
    if constexpr (Tile::kEarlyDq) {
      if constexpr (!kLast) queue_s(1);
      queue_sum(dk, ds_bits, Tile::kQueriesAt, q_slot);
      ptx::wait_products<kLast ? 2 : 3>();  // all but dV, next S, dK
    } else {
      queue_dq();
      ptx::wait_products<1>();  // all but dQ
      release(barriers.dout_empty(step.slot()));
      queue_sum(dk, ds_bits, Tile::kQueriesAt, q_slot);
      ptx::wait_products<1>();  // all but dK
    }
    ptx::hold<Tile::kDqColumns>(dq);
    if (step.number > 0) add_dq();
    if constexpr (Tile::kEarlyDq) {
      ptx::wait_products<1>();  // all but dK
      release(barriers.dout_empty(step.slot()));
    } else if constexpr (!kLast) {
      queue_s(1);
      ptx::wait_products<1>();  // all but next S
      release(barriers.q_empty(q_slot));
      queue_dp(1);
      ptx::wait_products<1>();  // all but next dP
    }
    if constexpr (!kLast) ptx::hold<kQueries>(scores);
    step.advance(p, block);
  };
  if (block.steps > 0) {
    ptx::wait(barriers.k(), 0);
    if constexpr (Tile::kKeepsFactors) keep_transposed<Tile>(kept_keys, shared + Tile::kKeysAt);
    queue_s(0);
    ptx::wait(barriers.v(), 0);
    if constexpr (Tile::kKeepsFactors) keep_rows<Tile>(kept_values, shared + Tile::kValuesAt + keys_of_group);
    if constexpr (Tile::kEarlyDq) {
      ptx::wait_products<0>();
    } else {
      queue_dp(0);
      ptx::wait_products<1>();
    }
    ptx::hold<kQueries>(scores);
#pragma unroll 1
    while (step.number + 1 < block.steps) do_step(std::false_type{});
    do_step(std::true_type{});
    queue_dq();
    ptx::wait_products<0>();
    ptx::hold<Tile::kDqColumns>(dq);
    ptx::hold<kD>(dk);
    ptx::hold<kD>(dv);
    add_dq();
  }

  ptx::wait_named(kBoth, 128 * Tile::kGroups);  // (2)
  store_tile<T, Tile>(dv, 1.0F, shared + Tile::kValuesAt + 64 * group * kRowBytes);
  store_tile<T, Tile>(dk, p.scale, shared + Tile::kKeysAt + 64 * group * kRowBytes);
  ptx::fence_async_proxy();
  ptx::wait_named(own, 128);  // (3)
  if (threadIdx.x % 128 == 0) {
#pragma unroll 1
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      const std::uint32_t from = shared + panel * Tile::kKeyPanelBytes + 64 * group * kRowBytes;
      const int column = panel * Tile::kPanelColumns;
      ptx::store_box(p.dv, column, first_key, block.kv_head, block.batch, from + Tile::kValuesAt);
      ptx::store_box(p.dk, column, first_key, block.kv_head, block.batch, from + Tile::kKeysAt);
    }
    ptx::commit_stores();
    ptx::wait_stores_read();  // shared memory must stay until then
  }
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_wgmma_backward_kernel(const __grid_constant__ BackwardParams p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const std::uint32_t shared = ptx::shared_address(shared_memory);
  const BackwardBarriers<Tile> barriers{shared + Tile::kBarriersAt};
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  if (threadIdx.x == 0) {
    constexpr int kWarps = 4 * Tile::kGroups * ptx::kArrivalsOfAWarp;  // that compute
    ptx::init_barrier(barriers.k(), 1);
    ptx::init_barrier(barriers.v(), 1);
    for (int stage = 0; stage < Tile::kQueryStages; ++stage) {
      ptx::init_barrier(barriers.q_full(stage), 1);
      ptx::init_barrier(barriers.q_empty(stage), kWarps);
    }
    for (int stage = 0; stage < 2; ++stage) {
      ptx::init_barrier(barriers.dout_full(stage), 1);
      ptx::init_barrier(barriers.dout_empty(stage), kWarps);
      ptx::init_barrier(barriers.ds_full(stage), kWarps);
      ptx::init_barrier(barriers.ds_empty(stage), kWarps);
    }
    for (int slot = 0; slot < Tile::kAdders; ++slot) {
      ptx::init_barrier(barriers.dq_full(slot), kWarps);
      ptx::init_barrier(barriers.dq_empty(slot), 1);
    }
    ptx::fence_barrier_init();
    if constexpr (Tile::kOrdered) {
      const std::uint32_t ticket = atomicAdd(p.turns + p.batch * p.heads_q * p.query_tiles, 1U);
      ptx::store_shared(shared + Tile::kTicketAt, ticket);
    }
  }
  ptx::barrier_of_block();  // (1)
  const KeyBlock block = key_block_of<Tile>(p, ptx::uniform(block_index<Tile>(shared)));

  const int group = ptx::uniform(static_cast<int>(threadIdx.x) / 128);
  if (group == 0) {
    ptx::give_registers<Tile::kLoaderRegisters>();
    if (threadIdx.x == 0) load<Tile>(p, shared, barriers, block);
    const int warp = ptx::uniform(static_cast<int>(threadIdx.x) / 32);
    if (Tile::kStaged && 1 <= warp && warp <= Tile::kAdders && threadIdx.x % 32 == 0) {
      add_stored<Tile>(p, shared, barriers, block, warp - 1);
    }
  } else {
    ptx::take_registers<Tile::kRegisters>();
    compute<T, Tile>(p, shared, barriers, block, group - 1);
  }
}

}  // namespace syslab::attention::wgmma
