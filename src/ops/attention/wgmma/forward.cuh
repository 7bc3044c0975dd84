// flash_wgmma, forward: FlashAttention on Hopper's own instructions (sm_90a): TMA, mbarrier, wgmma, setmaxnreg.
//
// WHO DOES WHAT (a block: a warpgroup that loads, one to three that compute; one block a multiprocessor, of one
// computing group three)
//
//   The loader is one thread. Its group has given its registers to the others. For each item (64 query rows a computing
//   group, one head) it queues TMA loads of Q, then of K and V, one block of keys after another, the last block first.
//   K and V each have a ring of two slots: V is needed later than its K, and is kept longer.
//   A computing group has 64 query rows and needs nothing from the other groups:
//     scores   S = Q·Kᵀ    wgmma, both factors in shared memory, S in registers
//     weights  P = exp2(S·c − m·c), one multiply-add and one ex2 a score; packed two columns a register, they lie as
//                          the factor A of the second product must
//     O += P·V             wgmma, P in registers, V as it was loaded, read across its rows; O in registers
//   After the last block it writes O/l over its Q. TMA stores it from there while the next item begins, which has its Q
//   in a second place. L goes out by ordinary stores. (Where shared memory has no second place, Q waits for O.)
//
// WHAT OVERLAPS WITH WHAT. Within a group: S of a block and P·V of the block before it are queued together, S first.
//   While the tensor cores do P·V, the group computes weights from S. It cannot pack them yet: P·V is still reading the
//   registers that they go to. Between groups (`take_turns`): a group queues its products when the group before it has
//   queued its own, so that the softmax of one overlaps with the products of the other.
//
// AN ITEM, READ ALOUD: two blocks of keys, of which block 1 is met first. `names` are mbarriers, see below.
//   The loader takes the item's number. When k `empty` says that a slot is free it asks TMA for K1; when q `empty` says
//   that O of an item before has left its place, for Q there, and writes the number beside it. Then it asks for K0, V1
//   and V0, each when its slot is free, and at the last of them learns which item is next.
//
//   A computing group waits at q `full` and reads the number, waits at k `full` and queues S1 = Q·K1ᵀ. Under it, one
//   thread gives back the place of the item before, once TMA has read that O. When S1 is there the slot of K1 is free
//   (k `empty`). The group turns S1's sign where the scale is negative, hides what its rows do not
//   see, makes weights of S1, and packs them as P1.
//
//   It waits for K0, and for its turn; queues S0 = Q·K0ᵀ and, when V1 is there, O += P1·V1; and passes the turn on.
//   When S0 is there K0's slot is free; weights are made of S0 while P1·V1 runs. When that has ended V1's slot is free
//   (v `empty`), P0 is packed, and O is multiplied by what the maximum has risen by (above head_dim 128 only when the
//   next P·V is about to be queued).
//
//   It waits for V0, adds P0·V0, and frees the slot. O/l goes over Q, and one thread tells TMA to store it.
//
// WHAT WAITS FOR WHAT (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   Rings. Each slot has two mbarriers, one for each job. Who arrives → what may then be done:
//
//   slot        full (landed)                           empty (left)
//   k[slot]     loader's arrival and the bytes → S      one arrival a computing warp, when S is done → next K
//   v[slot]     the same → P·V                          the same, when P·V is done → next V
//   q[group][i] the same → the item's number; first S   the thread that stored O, when TMA has read O → next Q there
//
//   A warp arrives at k or v `empty` only after the wait for the products that read the slot (of all its lanes: the
//   wait is .aligned), and nothing but products reads K and V. So its one arrival needs no __syncwarp before it.
//   The item's number is an ordinary store of the loader; its arrival at q `full` makes it visible. Its empty job is
//   q's: the arriving thread has passed (4), which every reader of the number comes to after reading it.
//
//   wait_products  S and P·V are a group of products each; <1> leaves the younger one under way.
//     first S            landed: S.  left: K (k `empty`).
//     <1>, in the loop   the same; P·V of the block before is still under way.
//     <0>, in the loop   landed: O, which rescale() multiplies.  left: V (v `empty`), and the registers of P, which
//                        pack() overwrites.
//     after the last     landed: O.  left: V.
//
//   (1) after the mbarriers were initialised, block
//       landed   All threads, and through the fence before it TMA, see initialised mbarriers.
//       left     Nothing: shared memory was not used before.
//   (2) turn[group], named; 128 threads wait, the 128 of the group before arrive (the first group arrives for itself
//       once, at the start)
//       No job in memory: it makes groups queue their products in turn. Without it results are the same. An arrival
//       cannot overtake a wait: before a group arrives again it has waited for its own turn, which passes through the
//       group that it woke. All groups take the same number of turns, so none waits for ever; the last arrival of the
//       last group meets no wait. The group whose turn it is may wait for V meanwhile, and V comes: the slot was last
//       read in an earlier turn or between turns, and no group needs a further turn to finish that and release it.
//   (3) own[group] before O is written, named, 128 threads
//       landed   Nothing.
//       left     The products of all warps of the group, which read Q, are done: O is written over Q. A warp overwrites
//                only its own 16 rows, but PTX does not promise that its products read no others. (Q itself has landed
//                at q `full`, also for an item without keys: no late copy overwrites O.)
//       A partial result does not go there. Here (3) has q's `left`: Q has been read, and so has the item's number.
//   (4) own[group] after that
//       landed   O of all warps: one thread tells TMA to store it. Each writer has a proxy fence before the barrier,
//                because O is written by ordinary stores and read by the async proxy.
//       left     The item's number has been read by the whole group; the loader overwrites it after q `empty`. ((3)
//                would do for that.)
//   wait_stores_read, by the thread that stored O: left. TMA has read O; only then is q `empty` arrived at, or, at the
//              end, does the thread exit: shared memory must stay until then.
//   setmaxnreg The computing groups wait until the loader's group has released its registers.
//   kernels    wait_for_kernels_before: landed Q, K, V and a zeroed `counter`; left: earlier kernels have read out and
//              lse, which are overwritten. All blocks wait, after (1), which touches nothing of other kernels.
//
// ITEMS. The loader stores the number of the next item in shared memory, with Q; −1 is the end.
//   An item is a block of rows and, where the plan splits keys, one run of `blocks_of_split` blocks of them: a GPU has
//   132 multiprocessors, and one head of 16,384 rows has 86 blocks of rows, the last with 128 blocks of keys. Such an
//   item's O/l and L are partial results in fp32, which ordinary stores take to global memory; combine.cu puts them
//   together, in the order of the splits, so that equal inputs give equal bits. Rows that see no more than the first
//   run are not split and are written as always. In a section the items of the first run come first, then those of the
//   next, which fewer rows see under a causal mask; none is empty but those of rows without keys.
//   With at most as many blocks as the GPU has at a time, block b does items b, then 2·grid − 1 − b, 2·grid + b, …:
//   back and forth, so that with items sorted by length no block always has the longest. Where that is too uneven
//   (plan.hpp) each loader draws its next item from a counter in global memory, when it comes to the last block of keys
//   of this one. Without a mask, neighbouring items are of the same head and share K and V in the L2. Under a causal
//   mask the longest rows of a section of heads (plan.cpp says how many) come first, then the next section.
//
// TAILS. TMA fills what lies beyond the tensor with zeros when it loads, and skips it when it stores. Keys beyond the
// last are hidden as masked keys are, and their V is 0. Columns beyond head_dim are zeros in Q and K, and those of O
// are not stored.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <utility>

#include "device/cuda/mbarrier.cuh"
#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "device/cuda/tma.cuh"
#include "device/cuda/warpgroup.cuh"
#include "device/cuda/wgmma.cuh"
#include "ops/attention/wgmma/kernels.hpp"
#include "ops/attention/wgmma/plan.hpp"

namespace syslab::attention::wgmma {

// A row of kForwardTiles as a type, and what follows from it.
template <int kIndex>
struct ForwardTile {
  static constexpr ForwardTileShape kShape = kForwardTiles[kIndex];
  static constexpr int kHeadDim = kShape.head_dim, kKeys = kShape.keys, kGroups = kShape.groups;
  static constexpr bool kTakeTurns = kShape.take_turns;
  static constexpr int kRows = kShape.rows(), kThreads = 128 * (kGroups + 1), kStages = 2;
  // With a large O it is rescaled between the two products, so that fewer registers live across the wait.
  static constexpr bool kRescaleEarly = kHeadDim > 128;
  static constexpr int kLoaderRegisters = kGroups == 1 ? 24 : kGroups == 2 ? 40 : 32;
  static constexpr int kRegisters = kGroups == 1 ? 136 : kGroups == 2 ? 232 : 160;
  // What each thread begins with is shared out anew: no more than that.
  static constexpr int kRegistersAtFirst = 65536 / (kShape.blocks * kThreads) / 8 * 8;
  static_assert(kLoaderRegisters + kGroups * kRegisters <= (kGroups + 1) * kRegistersAtFirst);

  // A tile of n rows is panels of n rows of kRowBytes.
  static constexpr int kPanelColumns = kHeadDim % 64 == 0 ? 64 : 32, kRowBytes = 2 * kPanelColumns;
  static constexpr int kPanels = kHeadDim / kPanelColumns, kStepsOfPanel = kPanelColumns / 16;
  static constexpr int kQueryPanelBytes = 64 * kRowBytes, kKeyPanelBytes = kKeys * kRowBytes;
  static constexpr int kQueryBytes = kPanels * kQueryPanelBytes;  // of one group
  static constexpr int kKeyBytes = kPanels * kKeyPanelBytes;      // of one slot

  // Two places for Q where there is room: the next item's Q is loaded while O is stored from this one's place.
  static constexpr int kQueryStages = 2 * kGroups * kQueryBytes + 4 * kKeyBytes <= 226 * 1024 ? 2 : 1;
  static constexpr int kKeysAt = kQueryStages * kGroups * kQueryBytes, kValuesAt = kKeysAt + kStages * kKeyBytes;
  static constexpr int kBarriersAt = kValuesAt + kStages * kKeyBytes;
  static constexpr int kBarriers = 2 * kGroups * kQueryStages + 4 * kStages;
  static constexpr int kItemsAt = kBarriersAt + 8 * kBarriers;  // an int for each place of Q
  static constexpr int kSharedBytes = kItemsAt + 4 * kGroups * kQueryStages;
  static_assert(kShape.blocks * (kSharedBytes + 1024) <= 228 * 1024 && kKeyPanelBytes % 1024 == 0);
  static_assert(kKeys % 16 == 0 && kKeys / 2 + kKeys / 4 + kHeadDim / 2 <= kRegisters - (kGroups == 2 ? 20 : 32));
  static_assert(!kTakeTurns || kGroups > 1);
};

inline constexpr float kLn2 = 0.6931471805599453F;

// Addresses of the mbarriers.
template <typename Tile>
struct Barriers {
  std::uint32_t first;

  static constexpr int kOfQueries = Tile::kGroups * Tile::kQueryStages;

  __device__ __forceinline__ std::uint32_t q_full(int group, int stage) const {
    return first + 8 * (stage * Tile::kGroups + group);
  }
  __device__ __forceinline__ std::uint32_t q_empty(int group, int stage) const {
    return q_full(group, stage) + 8 * kOfQueries;
  }
  __device__ __forceinline__ std::uint32_t ring(int which, int stage) const {
    return first + 8 * (2 * kOfQueries + which * Tile::kStages + stage);
  }
  __device__ __forceinline__ std::uint32_t item(int group, int stage) const {
    return first + 8 * Tile::kBarriers + 4 * (stage * Tile::kGroups + group);
  }
  __device__ __forceinline__ std::uint32_t k_full(int stage) const { return ring(0, stage); }
  __device__ __forceinline__ std::uint32_t k_empty(int stage) const { return ring(1, stage); }
  __device__ __forceinline__ std::uint32_t v_full(int stage) const { return ring(2, stage); }
  __device__ __forceinline__ std::uint32_t v_empty(int stage) const { return ring(3, stage); }
};

// Byte offset of a group's Q, later of its O.
template <typename Tile>
__device__ __forceinline__ int queries_of(int group, int stage) {
  return (stage * Tile::kGroups + group) * Tile::kQueryBytes;
}

// Blocks of keys [begin, end) of those that the block's last row sees. `partial`: its rows have further splits.
struct Item {
  int batch, head, first_row, begin, end, split;
  bool partial;
};

template <typename Tile>
__device__ __forceinline__ Item item_of(const ForwardParams& p, int index) {
  Item item;
  item.split = 0;
  int head, row_block;
  if (p.section_heads == 0) {
    head = index / p.row_blocks;
    row_block = index - head * p.row_blocks;
  } else {
    const int section_items = p.section_heads * p.items_of_head;
    const int section = index / section_items, heads_before = section * p.section_heads;
    const int heads = min(p.section_heads, p.heads - heads_before);
    int within = index - section * section_items;
    // Split s has the blocks of rows that see a key of it: their last row is row ≥ s·keys − shift.
    for (int row_blocks = p.row_blocks; within >= heads * row_blocks;) {
      within -= heads * row_blocks;
      ++item.split;
      row_blocks = p.row_blocks - max(0, item.split * p.blocks_of_split * Tile::kKeys - p.shift) / Tile::kRows;
    }
    row_block = p.row_blocks - 1 - within / heads;
    head = heads_before + within % heads;
  }
  item.batch = head / p.heads_q;
  item.head = head - item.batch * p.heads_q;
  item.first_row = row_block * Tile::kRows;
  const int sees = max(0, min(min(item.first_row + Tile::kRows, p.seq_q) + p.shift, p.seq_k));
  const int blocks = (sees + Tile::kKeys - 1) / Tile::kKeys;
  item.partial = p.blocks_of_split != 0 && blocks > p.blocks_of_split;
  item.begin = item.split * p.blocks_of_split;
  item.end = item.partial ? min(item.begin + p.blocks_of_split, blocks) : blocks;
  return item;
}

// Of partial_out and partial_lse: the row that is row 0 of the item's head and split.
__device__ __forceinline__ std::int64_t partial_row(const ForwardParams& p, const Item& item) {
  const int head = item.batch * p.heads_q + item.head;
  return (static_cast<std::int64_t>(item.split) * p.heads + head) * p.seq_q;
}

// Hands the loader the items of its block in turn.
class Items {
 public:
  __device__ __forceinline__ explicit Items(const ForwardParams& p) : p_(p), next_(static_cast<int>(blockIdx.x)) {}
  // The number of the next item, −1 if none is left.
  __device__ __forceinline__ int take() const { return next_ < p_.items ? next_ : -1; }
  // Once an item, when little of it is left: whose turn it is depends on who is done first, and the number takes a
  // while to come.
  __device__ __forceinline__ void draw() {
    const int grid = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
    ++round_;
    next_ = p_.counter != nullptr ? grid + static_cast<int>(atomicAdd(p_.counter, 1U))
                                  : round_ * grid + (round_ % 2 == 0 ? block : grid - 1 - block);
  }

 private:
  const ForwardParams& p_;
  int next_, round_ = 0;
};

// One thread.
template <typename Tile>
__device__ __forceinline__ void load(const ForwardParams& p, std::uint32_t shared, const Barriers<Tile>& barriers) {
  ptx::prefetch_map(p.q);
  ptx::prefetch_map(p.k);
  ptx::prefetch_map(p.v);
  ptx::prefetch_map(p.out);
  ptx::RingPosition<Tile::kStages> k_at, v_at;
  ptx::RingPosition<Tile::kQueryStages> q_at;
  Items items(p);
#pragma unroll 1
  while (true) {
    const int index = items.take();
    if (index < 0) break;
    const Item item = item_of<Tile>(p, index);
    const int kv_head = item.head / p.heads_of_kv;
    const auto load_keys = [&](int block) {
      ptx::wait(barriers.k_empty(k_at.stage), k_at.other_parity());
      ptx::arrive_expecting(barriers.k_full(k_at.stage), Tile::kKeyBytes);
#pragma unroll 1
      for (int panel = 0; panel < Tile::kPanels; ++panel) {
        ptx::load_box(shared + Tile::kKeysAt + k_at.stage * Tile::kKeyBytes + panel * Tile::kKeyPanelBytes, p.k,
                      panel * Tile::kPanelColumns, block * Tile::kKeys, kv_head, item.batch,
                      barriers.k_full(k_at.stage), ptx::kKeepInL2);
      }
      k_at.advance();
    };
    const auto load_values = [&](int block) {
      ptx::wait(barriers.v_empty(v_at.stage), v_at.other_parity());
      ptx::arrive_expecting(barriers.v_full(v_at.stage), Tile::kKeyBytes);
#pragma unroll 1
      for (int panel = 0; panel < Tile::kPanels; ++panel) {
        ptx::load_box(shared + Tile::kValuesAt + v_at.stage * Tile::kKeyBytes + panel * Tile::kKeyPanelBytes, p.v,
                      panel * Tile::kPanelColumns, block * Tile::kKeys, kv_head, item.batch,
                      barriers.v_full(v_at.stage), ptx::kKeepInL2);
      }
      v_at.advance();
    };
    // The first K can be loaded while O of the item before still occupies the place of Q.
    if (item.begin < item.end) load_keys(item.end - 1);
#pragma unroll 1
    for (int group = 0; group < Tile::kGroups; ++group) {
      ptx::wait(barriers.q_empty(group, q_at.stage), q_at.other_parity());
      ptx::store_shared(barriers.item(group, q_at.stage), static_cast<std::uint32_t>(index));
      ptx::arrive_expecting(barriers.q_full(group, q_at.stage), Tile::kQueryBytes);
#pragma unroll 1
      for (int panel = 0; panel < Tile::kPanels; ++panel) {
        ptx::load_box(shared + queries_of<Tile>(group, q_at.stage) + panel * Tile::kQueryPanelBytes, p.q,
                      panel * Tile::kPanelColumns, item.first_row + 64 * group, item.head, item.batch,
                      barriers.q_full(group, q_at.stage), ptx::kPassThroughL2);
      }
    }
    q_at.advance();
#pragma unroll 1
    for (int block = item.end - 1; block >= item.begin; --block) {
      if (block > item.begin) load_keys(block - 1);
      if (block == item.begin) items.draw();  // the computing groups are two blocks of keys behind
      load_values(block);
    }
    if (item.begin >= item.end) items.draw();
  }
#pragma unroll 1
  for (int group = 0; group < Tile::kGroups; ++group) {
    ptx::wait(barriers.q_empty(group, q_at.stage), q_at.other_parity());
    ptx::store_shared(barriers.item(group, q_at.stage), ~0U);
    ptx::arrive(barriers.q_full(group, q_at.stage));
  }
}

// A computing group, 0 … kGroups − 1.
template <typename T, typename Tile>
__device__ __forceinline__ void compute(const ForwardParams& p, std::uint32_t shared, const Barriers<Tile>& barriers,
                                        int group) {
  constexpr int kKeys = Tile::kKeys, kD = Tile::kHeadDim, kRowBytes = Tile::kRowBytes;
  // Names of barriers; 0 is barrier_of_block().
  const int turn = 1 + group, next_turn = group + 1 == Tile::kGroups ? 1 : 2 + group, own = 1 + Tile::kGroups + group;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const std::uint64_t k_operand = ptx::operand<kRowBytes>(shared + Tile::kKeysAt);
  const std::uint64_t v_operand = ptx::operand<kRowBytes>(shared + Tile::kValuesAt, Tile::kKeyPanelBytes);
  ptx::RingPosition<Tile::kStages> k_at, v_at;
  ptx::RingPosition<Tile::kQueryStages> q_at;
  bool stored = false;  // O of the item before is being stored: its place is still to be released
  if (Tile::kTakeTurns && group == 0) ptx::arrive_named(turn, 256);  // (2)

#pragma unroll 1
  while (true) {
    ptx::wait(barriers.q_full(group, q_at.stage), q_at.parity);
    const int index = ptx::uniform(static_cast<int>(ptx::load_shared(barriers.item(group, q_at.stage))));
    if (index < 0) break;
    const Item item = item_of<Tile>(p, index);
    float scores[kKeys / 8][4], out[kD / 8][4];
    std::uint32_t weights[kKeys / 16][4];
    float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0F, 0.0F}, factor[2] = {1.0F, 1.0F};
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) out[n][e] = 0.0F;
    }
    const int first_row = item.first_row + 64 * group;
    const int row = first_row + 16 * warp + lane / 4;  // and that + 8
    const std::uint32_t queries = shared + queries_of<Tile>(group, q_at.stage);
    const std::uint64_t q_operand = ptx::operand<kRowBytes>(queries);

    const auto queue_scores = [&] {
      const std::uint64_t k_slot = ptx::at(k_operand, k_at.stage * Tile::kKeyBytes);
      ptx::fence_products();
#pragma unroll
      for (int d = 0; d < kD / 16; ++d) {
        const int panel = d / Tile::kStepsOfPanel, within = d % Tile::kStepsOfPanel * 32;
        ptx::Product<kKeys>::template of_shared<T>(scores, ptx::at(q_operand, panel * Tile::kQueryPanelBytes + within),
                                                   ptx::at(k_slot, panel * Tile::kKeyPanelBytes + within), d > 0);
      }
      ptx::commit_products();
    };
    const auto queue_values = [&] {
      const std::uint64_t v_slot = ptx::at(v_operand, v_at.stage * Tile::kKeyBytes);
      ptx::fence_products();
#pragma unroll
      for (int s = 0; s < kKeys / 16; ++s) {
        ptx::Product<kD>::template of_registers<T>(out, weights[s], ptx::at(v_slot, s * 16 * kRowBytes));
      }
      ptx::commit_products();
    };
    const auto release = [&](std::uint32_t barrier) {
      if (ptx::kArrivalsOfAWarp > 1 || lane == 0) ptx::arrive(barrier);
    };
    // Scores are given the scale's sign, of every block and under any mask: from here on `scale_log2` is positive, so
    // that the largest score has the largest weight. Then a score becomes −∞ where the row does not see the key.
    const auto hide = [&](int block) {
      const int first_key = block * kKeys;
      if (p.negative != 0) {
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[n][e] = -scores[n][e];
        }
      }
      if (first_key + kKeys <= min(first_row + 1 + p.shift, p.seq_k)) return;
      int limit[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) limit[h] = min(row + 8 * h + 1 + p.shift, p.seq_k) - first_key - lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (n * 8 + e % 2 >= limit[e / 2]) scores[n][e] = -INFINITY;
        }
      }
    };
    // Raises the maximum and replaces scores by weights; `factor` is what O and l so far must be multiplied by.
    const auto weigh = [&] {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most = m[h];
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) most = fmaxf(most, fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));
        most = ptx::quad_max(most);
        const float base = most == -INFINITY ? 0.0F : most * p.scale_log2;  // no key seen so far
        factor[h] = ptx::exp2_approx(fmaf(m[h], p.scale_log2, -base));
        m[h] = most;
        float sum = 0.0F;
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& score = scores[n][2 * h + c];
            score = ptx::exp2_approx(fmaf(score, p.scale_log2, -base));
            sum += score;
          }
        }
        l[h] = fmaf(l[h], factor[h], sum);
      }
    };
    const auto pack = [&] {
      ptx::hold<kKeys>(scores);
#pragma unroll
      for (int s = 0; s < kKeys / 16; ++s) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          weights[s][e] = ptx::pack<T>(scores[2 * s + e / 2][e % 2 * 2], scores[2 * s + e / 2][e % 2 * 2 + 1]);
        }
      }
    };
    const auto rescale = [&] {
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out[n][e] *= factor[e / 2];
      }
    };

    // The place of Q in which O lies that was stored last: TMA has read it, so the next Q may come.
    const auto give_back = [&](int stage) {
      const bool stores = threadIdx.x % 128 == 0;
      if (ptx::kArrivalsOfAGroup == 1 && !stores) return;
      if (stores) ptx::wait_stores_read();
      ptx::arrive(barriers.q_empty(group, stage));
    };

    if (item.begin < item.end) {
      ptx::wait(barriers.k_full(k_at.stage), k_at.parity);
      queue_scores();
      if (Tile::kQueryStages > 1 && stored) give_back(q_at.stage ^ 1);
      stored = false;
      ptx::wait_products<0>();
      ptx::hold<kKeys>(scores);
      release(barriers.k_empty(k_at.stage));
      k_at.advance();
      hide(item.end - 1);
      weigh();
      pack();
#pragma unroll 1
      for (int block = item.end - 2; block >= item.begin; --block) {
        ptx::wait(barriers.k_full(k_at.stage), k_at.parity);
        if constexpr (Tile::kTakeTurns) ptx::wait_named(turn, 256);  // (2)
        queue_scores();
        if constexpr (Tile::kRescaleEarly) rescale();
        ptx::wait(barriers.v_full(v_at.stage), v_at.parity);
        queue_values();
        if constexpr (Tile::kTakeTurns) ptx::arrive_named(next_turn, 256);  // (2)
        ptx::wait_products<1>();
        ptx::hold<kKeys>(scores);
        release(barriers.k_empty(k_at.stage));
        k_at.advance();
        hide(block);
        weigh();
        ptx::wait_products<0>();
        ptx::hold<kD>(out);
        release(barriers.v_empty(v_at.stage));
        v_at.advance();
        pack();
        if constexpr (!Tile::kRescaleEarly) rescale();
      }
      if constexpr (Tile::kRescaleEarly) rescale();
      ptx::wait(barriers.v_full(v_at.stage), v_at.parity);
      queue_values();
      ptx::wait_products<0>();
      ptx::hold<kD>(out);
      release(barriers.v_empty(v_at.stage));
      v_at.advance();
    }

    if (Tile::kQueryStages > 1 && stored) give_back(q_at.stage ^ 1);  // an item without keys
    float inverse[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = ptx::quad_sum(l[h]);
      inverse[h] = sum == 0.0F ? 0.0F : 1.0F / sum;  // NaN stays
      const float lse = sum == 0.0F ? -INFINITY : fmaf(m[h], p.scale_log2, log2f(sum)) * kLn2;
      if (row + 8 * h >= p.seq_q) continue;
      if (item.partial) {
        const std::int64_t place = partial_row(p, item) + row + 8 * h;
        if (lane % 4 == 0) p.partial_lse[place] = lse;
        float* to = p.partial_out + place * p.head_dim + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
          if (n * 8 >= p.head_dim) break;
          *reinterpret_cast<float2*>(to + n * 8) = {out[n][2 * h] * inverse[h], out[n][2 * h + 1] * inverse[h]};
        }
      } else if (lane % 4 == 0) {
        p.lse[item.batch * p.lse_batch + item.head * p.lse_head + (row + 8 * h) * p.lse_row] = lse;
      }
    }
    ptx::wait_named(own, 128);  // (3)
    if (item.partial) {
      if (Tile::kQueryStages == 1) give_back(q_at.stage);
      stored = true;  // nothing is: the next item gives the place back all the same
      q_at.advance();
      continue;
    }
    // stmatrix takes pairs of columns of rows l/4 and l/4 + 8 as its matrices.
    const int own_row = 16 * warp + lane % 16;
    constexpr int kChunks = kRowBytes / 16;
    const int swizzle = kChunks == 8 ? own_row % 8 : own_row / 2 % 4;
#pragma unroll
    for (int n = 0; n < kD / 8; n += 2) {
      const int chunk = n % kChunks + lane / 16;
      const std::uint32_t words[4] = {ptx::pack<T>(out[n][0] * inverse[0], out[n][1] * inverse[0]),
                                      ptx::pack<T>(out[n][2] * inverse[1], out[n][3] * inverse[1]),
                                      ptx::pack<T>(out[n + 1][0] * inverse[0], out[n + 1][1] * inverse[0]),
                                      ptx::pack<T>(out[n + 1][2] * inverse[1], out[n + 1][3] * inverse[1])};
      ptx::store_matrices(
          queries + n / kChunks * Tile::kQueryPanelBytes + own_row * kRowBytes + ((chunk ^ swizzle) << 4), words);
    }
    ptx::fence_async_proxy();
    ptx::wait_named(own, 128);  // (4)
    if (threadIdx.x % 128 == 0) {
#pragma unroll
      for (int panel = 0; panel < Tile::kPanels; ++panel) {
        ptx::store_box(p.out, panel * Tile::kPanelColumns, first_row, item.head, item.batch,
                       queries + panel * Tile::kQueryPanelBytes);
      }
      ptx::commit_stores();
    }
    if (Tile::kQueryStages == 1) give_back(q_at.stage);
    stored = true;
    q_at.advance();
  }
  // Shared memory must outlive the last store from it.
  if (threadIdx.x % 128 == 0) ptx::wait_stores_read();
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kShape.blocks)
    flash_wgmma_forward_kernel(const __grid_constant__ ForwardParams p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const std::uint32_t shared = ptx::shared_address(shared_memory);
  const Barriers<Tile> barriers{shared + Tile::kBarriersAt};
  if (threadIdx.x == 0) {
    for (int group = 0; group < Tile::kGroups; ++group) {
      for (int stage = 0; stage < Tile::kQueryStages; ++stage) {
        ptx::init_barrier(barriers.q_full(group, stage), 1);
        ptx::init_barrier(barriers.q_empty(group, stage), ptx::kArrivalsOfAGroup);
      }
    }
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      ptx::init_barrier(barriers.k_full(stage), 1);
      ptx::init_barrier(barriers.v_full(stage), 1);
      ptx::init_barrier(barriers.k_empty(stage), 4 * Tile::kGroups * ptx::kArrivalsOfAWarp);
      ptx::init_barrier(barriers.v_empty(stage), 4 * Tile::kGroups * ptx::kArrivalsOfAWarp);
    }
    ptx::fence_barrier_init();
  }
  ptx::barrier_of_block();  // (1)
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();

  const int group = ptx::uniform(static_cast<int>(threadIdx.x) / 128);
  if (group == 0) {
    ptx::give_registers<Tile::kLoaderRegisters>();
    if (threadIdx.x == 0) load<Tile>(p, shared, barriers);
  } else {
    ptx::take_registers<Tile::kRegisters>();
    // A name of a barrier that the compiler knows: else it takes all 16 of a multiprocessor's for each block.
    compute<T, Tile>(p, shared, barriers, Tile::kGroups == 1 ? 0 : group - 1);
  }
}

// Launches the tile of this index, which must be one of those named.
template <int... kIndices>
void launch_forward_of(int tile, DType dtype, const ForwardParams& params, int grid, device::Stream stream) {
  const auto launch = [&]<typename T, typename Tile>(T*, Tile*) {
    static device::OverlappedKernel kernel(flash_wgmma_forward_kernel<T, Tile>, Tile::kSharedBytes,
                                           "flash_wgmma forward");
    kernel.launch(dim3(static_cast<unsigned>(grid)), Tile::kThreads, stream, params);
  };
  const auto try_one = [&]<int kIndex>(std::integral_constant<int, kIndex>) {
    if (tile != kIndex) return false;
    using Tile = ForwardTile<kIndex>;
    if (dtype == DType::bf16) {
      launch(static_cast<__nv_bfloat16*>(nullptr), static_cast<Tile*>(nullptr));
    } else {
      launch(static_cast<__half*>(nullptr), static_cast<Tile*>(nullptr));
    }
    return true;
  };
  if (!(try_one(std::integral_constant<int, kIndices>{}) || ...)) {
    throw Error(ErrorKind::internal, "flash_wgmma: a tile of another head_dim");
  }
}

}  // namespace syslab::attention::wgmma
