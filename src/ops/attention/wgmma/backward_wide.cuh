// flash_wgmma, backward of wide heads (head_dim 192 and 256): dK and dV of 64 keys alone fill half of the registers, so
// that groups differ by what they make, not by their keys. What is computed stands in wgmma/backward.cuh.
//
// WHO DOES WHAT (a block: a warpgroup that loads, three that compute; one block a multiprocessor)
//
//   A block owns 64 keys of a head of K and V, and goes over all tiles of 64 queries that see these keys, of all query
//   heads that share them. One tile of queries is a step.
//   load         one thread: K and V once, then Q with −L·log₂e and dO with −δ of each step, in rings of slots
//   compute_dv   Sᵀ = K·Qᵀ, P in place of it, dV += Pᵀ·dO with P from registers; P, rounded, to compute_dk
//   compute_dk   dPᵀ = V·dOᵀ, dS in place of it, dK += dSᵀ·Q with dS from registers; dS to compute_dq
//   compute_dq   dQ = dS·K of a step, added to fp32 sums in the L2, kDqColumns at a time
//   P goes from one group to the other thread by thread: both have the same part of a tile in their registers. dS goes
//   to shared memory in the layout that wgmma reads.
//
//   In order (kOrdered), another thread of the loader's group (keep_order) lets compute_dq add to a tile of queries
//   when the block of the next higher keys has added to it, and says so in turn: equal inputs give equal bits.
//
// WHAT OVERLAPS WITH WHAT. P of a step is made under dV of the step before, and dS under dK of the step before. Beyond
//   that, groups overlap with each other: no barrier holds them in step, and each waits for the others' results alone.
//
// WHAT SHOULD LIMIT IT, a step of 64 × 64 at head_dim 256 (predicted before the first measurement). Tensor cores: 5
//   products of 512 clocks, 2560. Shared memory, 128 bytes a clock: S and dP 512 each, dV and dK 256 each, dQ 512, what
//   TMA writes 512, P and dS 192, 2752 together. Exponentials: 256. The L2, each block and step: 64 KiB of Q and dO and
//   64 KiB of additions, twice what the kernel of head_dim 128 has for as many products, which reaches 530 to 595
//   TFLOP/s. head_dim 192 (1920 clocks of products, 48 + 48 KiB through the L2): 350 to 420. Pairs of blocks in a
//   cluster, which halve what passes through the L2, were slower (reports/ledger/attention-tried.md).
//
// WHAT WAITS FOR WHAT (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   mbarriers, one for each job of a slot. Who arrives → what may then be done:
//
//   slot        full (landed)                               empty (left)
//   k, v        loader's arrival and the bytes → S; dP; dQ  none: loaded once
//   q[slot]     the same → S and L for P; dK                one arrival a warp of compute_dv, when S is done and L
//                                                           read, and one of compute_dk, when dK is done → next Q, L
//   dout[slot]  the same → dP and δ for dS; dV              one of compute_dk, when dP is done and δ read, and one of
//                                                           compute_dv, when dV is done → next dO, δ
//   p           one arrival a warp of compute_dv → dS       one arrival a warp of compute_dk, which has read P → next P
//   ds[slot]    one arrival of compute_dk → dQ              one arrival a warp of compute_dq, when its dQ is done
//                                                           → dS two steps later
//   turn        in order: arrival of keep_order, which has  none: keep_order arrives again after `added`
//               seen the turn → additions of a step
//   added       in order: one arrival a warp of compute_dq  none: compute_dq adds again after the next `turn`
//               → the turn is passed on
//
//   A warp arrives after the wait for its products that read the slot and, in arrive_for_warp(), after a __syncwarp:
//   its lanes have read L, δ or P, stored P, or added dQ in ordinary ways. At ds `full` one thread arrives behind (2).
//
//   wait_products  compute_dv (in brackets compute_dk), in the order of the code
//     <0> before the first step  landed: S (dP).
//     <0> in a step              left: dV (dK) of the step before has read dO (Q) and packed P (dS).
//     <1> in a step              landed: next S (dP), while dV (dK) of this step is still under way.  left: K (V), for
//                                (3), and the next Q (dO), see the table.
//     <0> after the last step    landed: dV (dK).
//   compute_dq, <0> in each pass landed: dQ of its columns.  left: after the last pass dS (ds `empty`), and K, for (3).
//
//   (1) after the mbarriers were initialised, block
//       landed   All threads, and through the fence before it TMA, see initialised mbarriers and, in order, the ticket
//                that says which block this is.
//       left     Nothing: shared memory was not used before.
//   (2) kDsStored, named, the 128 threads of compute_dk, each step
//       landed   dS of all warps: one thread arrives at ds `full`. Each writer has a proxy fence before it.
//       left     Nothing: the slot is overwritten after ds `empty`.
//       The __syncwarp behind the arrival at ds `full` has no job in memory: it brings the first warp together again
//       for the .aligned products. Behind the `if` in arrive_for_warp() we leave that to the compiler.
//   (3) kDone, named, 384 threads (compute_dq arrives without waiting)
//       landed   Nothing.
//       left     All products that read K (S, dQ) and V (dP) are done in all three groups: dK and dV are written over
//                them.
//   (4) kOwnStored + group, named, 128 threads
//       landed   dK or dV of all warps of the group: one thread tells TMA to store it. Proxy fence as in (2).
//       left     Nothing is overwritten any more.
//   wait_stores_read   left: TMA has read dK or dV, then the thread exits, since shared memory must stay until then.
//   setmaxnreg   The computing groups wait until others have released registers: the loader's group, and at head_dim
//                256 compute_dq as well. Who releases does not wait.
//   turns[tile]  in order, in global memory, as in wgmma/backward.cuh, but between ordinary additions, so that no proxy
//                fence is needed: keep_order's acquire, then `turn`; `added`, then its release. The next step's acquire
//                and `turn` may stand before that release, which then covers more. No deadlock: a block waits only for
//                blocks with a smaller ticket, which have begun.
//   kernels      as in wgmma/backward.cuh.
//
// TAILS as in wgmma/backward.cuh.
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
#include "ops/attention/wgmma/backward_wide_block.cuh"

namespace syslab::attention::wgmma {

inline constexpr int kDsStored = 1, kDone = 2, kOwnStored = 3;  // names of barriers; kOwnStored + 1 as well

// One thread.
template <typename Tile>
__device__ __forceinline__ void load_wide(const BackwardParams& p, const WideBlock<Tile>& block) {
  const auto load_keys = [&](const device::TensorMap& map, int at, std::uint32_t barrier) {
    ptx::arrive_expecting(barrier, Tile::kKeyBytes);
#pragma unroll 1
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      ptx::load_box(block.shared + at + panel * Tile::kKeyPanelBytes, map, panel * Tile::kPanelColumns,
                    block.keys.first_key, block.keys.kv_head, block.keys.batch, barrier, ptx::kPassThroughL2);
    }
  };
  Step step(p, block.keys);
  const auto load_queries = [&](const device::TensorMap& map, int at, const float* of_rows, int rows_at,
                                std::uint32_t barrier) {
    ptx::arrive_expecting(barrier, Tile::kQueryBytes + Tile::kRowsBytes);
#pragma unroll 1
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      ptx::load_box(block.shared + at + panel * Tile::kQueryPanelBytes, map, panel * Tile::kPanelColumns,
                    step.tile * Tile::kQueries, step.head, block.keys.batch, barrier, ptx::kKeepInL2);
    }
    ptx::load_line(block.shared + rows_at, of_rows + static_cast<std::int64_t>(step.index) * Tile::kQueries,
                   Tile::kRowsBytes, barrier);
  };
  const auto& barriers = block.barriers;
  if (block.keys.steps == 0) return;  // nothing to load: the groups write zeros
  load_keys(p.k, Tile::kKeysAt, barriers.k());
#pragma unroll 1
  for (; step.number < block.keys.steps; step.advance(p, block.keys)) {
    const int slot = step.slot();
    ptx::wait(barriers.q_empty(slot), step.parity() ^ 1);
    load_queries(p.q, Tile::kQueriesAt + slot * Tile::kQueryBytes, p.negated_lse,
                 Tile::kLseAt + slot * Tile::kRowsBytes, barriers.q_full(slot));
    if (step.number == 0) load_keys(p.v, Tile::kValuesAt, barriers.v());
    ptx::wait(barriers.dout_empty(slot), step.parity() ^ 1);
    load_queries(p.dout, Tile::kDoutAt + slot * Tile::kQueryBytes, p.negated_delta,
                 Tile::kDeltaAt + slot * Tile::kRowsBytes, barriers.dout_full(slot));
  }
}

// One thread, in order: waits for the turn of each step, and passes it on when dQ was added. Whether the next step's
// turn has come is asked while this one's dQ is added, and if so said before this turn is passed on: additions of a
// block then follow each other without a way to the L2 and back, or two, between them.
template <typename Tile>
__device__ __forceinline__ void keep_order(const BackwardParams& p, const WideBlock<Tile>& block) {
  const auto has_come = [&](const Step& step) {
    return static_cast<int>(ptx::load_acquire(p.turns + step.index)) >= turn_of<Tile>(p, block.keys, step.tile);
  };
  bool said = false;  // that the step's turn has come
  Step step(p, block.keys);
#pragma unroll 1
  while (step.number < block.keys.steps) {
    if (!said) {
      while (!has_come(step)) {
      }
      ptx::arrive(block.barriers.turn());
    }
    const int index = step.index, number = step.number;
    step.advance(p, block.keys);
    said = step.number < block.keys.steps && has_come(step);
    ptx::wait(block.barriers.added(), parity_of_one(number));
    if (said) ptx::arrive(block.barriers.turn());
    ptx::add_release(p.turns + index, 1);
  }
}

// dK or dV of a group, to global memory. `group` is 0 or 1.
template <typename T, typename Tile>
__device__ __forceinline__ void store_sum(const float (&sum)[Tile::kHeadDim / 8][4], float factor,
                                          const device::TensorMap& map, int at, const WideBlock<Tile>& block,
                                          int group) {
  ptx::wait_named(kDone, 3 * 128);  // (3)
  store_tile<T, Tile>(sum, factor, block.shared + at);
  ptx::fence_async_proxy();
  ptx::wait_named(kOwnStored + group, 128);  // (4)
  if (threadIdx.x % 128 != 0) return;
#pragma unroll 1
  for (int panel = 0; panel < Tile::kPanels; ++panel) {
    ptx::store_box(map, panel * Tile::kPanelColumns, block.keys.first_key, block.keys.kv_head, block.keys.batch,
                   block.shared + at + panel * Tile::kKeyPanelBytes);
  }
  ptx::commit_stores();
  ptx::wait_stores_read();  // shared memory must stay until then
}

// Where a thread of the group leaves P, or finds it: 16 bytes for every 16 queries.
template <typename Tile>
__device__ __forceinline__ std::uint32_t place_of_p(const WideBlock<Tile>& block) {
  return block.shared + Tile::kPAt + ptx::thread_anew() % 128 * 16;
}

template <typename T, typename Tile>
__device__ __forceinline__ void compute_dv(const BackwardParams& p, const WideBlock<Tile>& block) {
  constexpr int kD = Tile::kHeadDim, kQueries = Tile::kQueries;
  const auto& barriers = block.barriers;
  float dv[kD / 8][4], scores[kQueries / 8][4];
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) dv[n][e] = 0.0F;
  }
  ptx::hold<kD>(dv);
  std::uint32_t bits[kQueries / 16][4];
  Step step(p, block.keys);

  const auto queue_s = [&](int number) {
    const int slot = slot_of(number);
    ptx::wait(barriers.q_full(slot), parity_of(number));
    queue_transposed_scores<T, Tile>(scores, block.operand(Tile::kKeysAt),
                                     block.operand(Tile::kQueriesAt + slot * Tile::kQueryBytes));
  };
  // Its S is done; dV of the step before may be under way.
  const auto do_step = [&](auto is_last) {
    constexpr bool kLast = decltype(is_last)::value;
    const int slot = step.slot();
    weigh<Tile>(scores, p, block.shared + Tile::kLseAt + slot * Tile::kRowsBytes, block.keys.first_key,
                step.tile * kQueries);
    arrive_for_warp(barriers.q_empty(slot));
    ptx::wait_products<0>();
    if (step.number > 0) arrive_for_warp(barriers.dout_empty(slot ^ 1));
    ptx::wait(barriers.p_empty(), parity_of_one(step.number) ^ 1);
#pragma unroll
    for (int s = 0; s < kQueries / 16; ++s) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        bits[s][e] = ptx::pack<T>(scores[2 * s + e / 2][e % 2 * 2], scores[2 * s + e / 2][e % 2 * 2 + 1]);
      }
      ptx::store_shared(place_of_p(block) + s * 128 * 16, bits[s]);
    }
    arrive_for_warp(barriers.p_full());
    if constexpr (!kLast) queue_s(step.number + 1);
    ptx::wait(barriers.dout_full(slot), step.parity());
    queue_sum_over_queries<T, Tile>(dv, bits, block.operand(Tile::kDoutAt + slot * Tile::kQueryBytes));
    if constexpr (!kLast) {
      ptx::wait_products<1>();
      ptx::hold<kQueries>(scores);
    }
    step.advance(p, block.keys);
  };
  if (block.keys.steps > 0) {
    ptx::wait(barriers.k(), 0);
    queue_s(0);
    ptx::wait_products<0>();
    ptx::hold<kQueries>(scores);
#pragma unroll 1
    while (step.number + 1 < block.keys.steps) do_step(std::false_type{});
    do_step(std::true_type{});
    ptx::wait_products<0>();
    ptx::hold<kD>(dv);
  }
  store_sum<T, Tile>(dv, 1.0F, p.dv, Tile::kValuesAt, block, 0);
}

template <typename T, typename Tile>
__device__ __forceinline__ void compute_dk(const BackwardParams& p, const WideBlock<Tile>& block) {
  constexpr int kD = Tile::kHeadDim, kQueries = Tile::kQueries, kDsRowBytes = 2 * kQueries;
  const auto& barriers = block.barriers;
  float dk[kD / 8][4], ds[kQueries / 8][4];
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) dk[n][e] = 0.0F;
  }
  ptx::hold<kD>(dk);
  std::uint32_t bits[kQueries / 16][4];

  const auto queue_dp = [&](int number) {
    const int slot = slot_of(number);
    ptx::wait(barriers.dout_full(slot), parity_of(number));
    queue_transposed_scores<T, Tile>(ds, block.operand(Tile::kValuesAt),
                                     block.operand(Tile::kDoutAt + slot * Tile::kQueryBytes));
  };
  const auto queue_dk = [&](int number) {
    const int slot = slot_of(number);
    ptx::wait(barriers.q_full(slot), parity_of(number));
    queue_sum_over_queries<T, Tile>(dk, bits, block.operand(Tile::kQueriesAt + slot * Tile::kQueryBytes));
  };
  // dS in place of dP.
  const auto make_ds = [&](int number) {
    const int slot = slot_of(number);
    const std::uint32_t rows = block.shared + Tile::kDeltaAt + slot * Tile::kRowsBytes + ptx::lane_anew() % 4 * 8;
    ptx::wait(barriers.p_full(), parity_of_one(number));
#pragma unroll
    for (int s = 0; s < kQueries / 16; ++s) {
      std::uint32_t weights[4];
      ptx::load_shared(place_of_p(block) + s * 128 * 16, weights);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int n = 2 * s + half;
        const float2 delta = ptx::load_shared_pair(rows + n * 32);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float2 weight = ptx::unpack<T>(weights[2 * half + h]);
          ds[n][2 * h] = weight.x * (ds[n][2 * h] + delta.x);
          ds[n][2 * h + 1] = weight.y * (ds[n][2 * h + 1] + delta.y);
        }
      }
    }
    arrive_for_warp(barriers.p_empty());
    arrive_for_warp(barriers.dout_empty(slot));
  };
  // Packed, and stored for compute_dq.
  const auto hand_on_ds = [&](int number) {
    const int slot = slot_of(number);
    ptx::wait(barriers.ds_empty(slot), parity_of(number) ^ 1);
    const int row = 16 * (ptx::thread_anew() / 32 % 4) + ptx::lane_anew() % 16, half = ptx::lane_anew() / 16;
    const int at = Tile::kDsAt + slot * Tile::kDsBytes;
#pragma unroll
    for (int s = 0; s < kQueries / 16; ++s) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        bits[s][e] = ptx::pack<T>(ds[2 * s + e / 2][e % 2 * 2], ds[2 * s + e / 2][e % 2 * 2 + 1]);
      }
      ptx::store_matrices(block.shared + at + row * kDsRowBytes + (((2 * s + half) ^ (row % 8)) << 4), bits[s]);
    }
    ptx::fence_async_proxy();
    ptx::wait_named(kDsStored, 128);  // (2)
    if (ptx::kArrivalsOfAGroup > 1 || ptx::thread_anew() % 128 == 0) ptx::arrive(barriers.ds_full(slot));
    __syncwarp();  // no job in memory, see (2)
  };
  // Its dP is done; dK of the step before may be under way.
  const auto do_step = [&](int number, auto is_last) {
    constexpr bool kLast = decltype(is_last)::value;
    make_ds(number);
    ptx::wait_products<0>();
    if (number > 0) arrive_for_warp(barriers.q_empty(slot_of(number - 1)));
    hand_on_ds(number);
    if constexpr (!kLast) queue_dp(number + 1);
    queue_dk(number);
    if constexpr (!kLast) {
      ptx::wait_products<1>();
      ptx::hold<kQueries>(ds);
    }
  };
  if (block.keys.steps > 0) {
    ptx::wait(barriers.v(), 0);
    queue_dp(0);
    ptx::wait_products<0>();
    ptx::hold<kQueries>(ds);
    int number = 0;
#pragma unroll 1
    for (; number + 1 < block.keys.steps; ++number) do_step(number, std::false_type{});
    do_step(number, std::true_type{});
    ptx::wait_products<0>();
    ptx::hold<kD>(dk);
  }
  store_sum<T, Tile>(dk, p.scale, p.dk, Tile::kKeysAt, block, 1);
}

template <typename T, typename Tile>
__device__ __forceinline__ void compute_dq(const BackwardParams& p, const WideBlock<Tile>& block) {
  constexpr int kColumns = Tile::kDqColumns, kPanelBytes = kColumns / Tile::kPanelColumns * Tile::kKeyPanelBytes;
  const auto& barriers = block.barriers;
  if (block.keys.steps > 0) ptx::wait(barriers.k(), 0);
  float dq[kColumns / 8][4];
#pragma unroll 1
  for (Step step(p, block.keys); step.number < block.keys.steps; step.advance(p, block.keys)) {
    const int slot = step.slot(), thread = ptx::thread_anew() % 128;
    ptx::wait(barriers.ds_full(slot), step.parity());
#pragma unroll 1
    for (int pass = 0; pass < Tile::kDqPasses; ++pass) {  // over the columns
      ptx::forget<kColumns>(dq);
      ptx::fence_products();
#pragma unroll
      for (int s = 0; s < Tile::kKeys / 16; ++s) {
        const int within = s * 16 * Tile::kRowBytes;
        const std::uint64_t ds = block.operand(Tile::kDsAt + slot * Tile::kDsBytes + within);
        const std::uint64_t keys = block.operand(Tile::kKeysAt + pass * kPanelBytes + within);
        ptx::Product<kColumns>::template of_shared_across<T>(dq, ds, keys, s > 0);
      }
      ptx::commit_products();
      ptx::wait_products<0>();
      ptx::hold<kColumns>(dq);
      if (pass == Tile::kDqPasses - 1) arrive_for_warp(barriers.ds_empty(slot));
      if (Tile::kOrdered && pass == 0) ptx::wait(barriers.turn(), parity_of_one(step.number));
      float* to = p.dq_sums + static_cast<std::int64_t>(step.index) * (Tile::kDqBytes / 4) +
                  pass * (Tile::kQueries * kColumns) + (thread / 32 * (kColumns / 8) * 32 + thread % 32) * 4;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) ptx::reduce_add(to + n * 32 * 4, dq[n]);
    }
    if (Tile::kOrdered) arrive_for_warp(barriers.added());
  }
  ptx::arrive_named(kDone, 3 * 128);  // (3)
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    flash_wgmma_wide_backward_kernel(const __grid_constant__ BackwardParams p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  WideBlock<Tile> block{};
  block.shared = ptx::shared_address(shared_memory);
  block.barriers.first = block.shared + Tile::kBarriersAt;
  const auto& barriers = block.barriers;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  if (threadIdx.x == 0) {
    constexpr int kWarps = 4 * ptx::kArrivalsOfAWarp;  // of a group
    ptx::init_barrier(barriers.k(), 1);
    ptx::init_barrier(barriers.v(), 1);
    ptx::init_barrier(barriers.p_full(), kWarps);
    ptx::init_barrier(barriers.p_empty(), kWarps);
    ptx::init_barrier(barriers.turn(), 1);
    ptx::init_barrier(barriers.added(), kWarps);
    for (int slot = 0; slot < Tile::kStages; ++slot) {
      ptx::init_barrier(barriers.q_full(slot), 1);
      ptx::init_barrier(barriers.q_empty(slot), 2 * kWarps);
      ptx::init_barrier(barriers.dout_full(slot), 1);
      ptx::init_barrier(barriers.dout_empty(slot), 2 * kWarps);
      ptx::init_barrier(barriers.ds_full(slot), ptx::kArrivalsOfAGroup);
      ptx::init_barrier(barriers.ds_empty(slot), kWarps);
    }
    ptx::fence_barrier_init();
    if constexpr (Tile::kOrdered) {
      const std::uint32_t ticket = atomicAdd(p.turns + p.batch * p.heads_q * p.query_tiles, 1U);
      ptx::store_shared(block.shared + Tile::kTicketAt, ticket);
    }
  }
  ptx::barrier_of_block();  // (1)
  block.keys = key_block_of<Tile>(p, ptx::uniform(block_index<Tile>(block.shared)));

  const int group = ptx::uniform(static_cast<int>(threadIdx.x) / 128);
  if (group == 0) {
    ptx::give_registers<Tile::kLoaderRegisters>();
    if (threadIdx.x == 0) load_wide<Tile>(p, block);
    if (Tile::kOrdered && threadIdx.x == 32) keep_order<Tile>(p, block);
  } else if (group == 1) {
    ptx::take_registers<Tile::kSumRegisters>();
    compute_dv<T, Tile>(p, block);
  } else if (group == 2) {
    ptx::take_registers<Tile::kSumRegisters>();
    compute_dk<T, Tile>(p, block);
  } else {
    if constexpr (Tile::kDqRegisters > 128) {
      ptx::take_registers<Tile::kDqRegisters>();
    } else {
      ptx::give_registers<Tile::kDqRegisters>();
    }
    compute_dq<T, Tile>(p, block);
  }
}

}  // namespace syslab::attention::wgmma
