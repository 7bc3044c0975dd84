// flash_tiled: FlashAttention-2 on the CPU (Dao 2023, algorithms 1 and 2). Forward here, backward in
// tiled/backward.cpp, inner loops in tiled/micro.hpp. Numbers below: fp32, D = 64, S = 2048, AVX-512, one core.
//
// HOW DATA MOVES (forward)
//
//   memory ──pack once──▶ Kᵀ turned, V straight (fp32, workspace)        every head, all threads
//     Q ──pack──▶ panels of 12 rows, times scale·log₂e (24 KiB, L2)      a task: 96 query rows of one head
//       for each tile of 128 keys (Kᵀ 32 KiB + V 32 KiB: L3 → L2 once a task, then 8 panels read it from L2)
//         for each panel of 12 rows:
//           scores     12×32 sums in 24 registers over D: 2 loads of Kᵀ, 12 broadcasts of Q, 24 multiply-adds a step
//           softmax    the 12×128 scores (6 KiB, L1) become weights in place; m, l and the rescaling factor of each row
//           accumulate 12×32 sums of O (24 KiB a task, L2) over 128 keys: rescale, 24 multiply-adds a step, store
//     O/l, m·log 2 + log l ──▶ out, lse
//
// Scores never leave L1; nothing of size S×S exists. Extra memory: Kᵀ and V packed (2·S·D floats a head) and 60 KiB a
// thread. Any dtype becomes fp32 when it is packed, so half precision costs one conversion an element and no more.
//
// NAPKIN MATHS (a core does one 16-lane multiply-add a cycle)
//
//   products         4·D flop a pair = 256/32                           8.0 cycles a pair
//   loop overhead    first and last steps, loads of sums: ~10 %         0.9
//   softmax          load, max; subtract, exp2 (11), add, store: 1/16   1.1, 1.5 with the reductions
//   packing          2·S·D elements a head, each used S/96 times        0.1
//                                                                       10.5 cycles a pair
//   sgemm at its usual 90 % would take 8.9 for the same products: predicted forward/sgemm 0.85 at most, 0.75 to be sure
//   of. Backward (two passes): 7 products done, 5 counted, two exp2: 31 + 2·2.2 = 35.5 against 22.2: predicted 0.62 at
//   most, 0.60 to be sure of. Measured: docs/performance.md.
//
// MASKS. A tile that no row of the task sees is never visited; on the diagonal a panel stops at the last key that its
// last row sees. So a causal mask wastes about half a panel and half a strip of keys a row, (6 + 16)/1024 of the work
// at 2048. A masked key inside that range has weight 0: an infinite or NaN value there would still reach the row, as it
// does in every kernel that multiplies by a mask.
//
// DETERMINISM. A row of O, dQ, dK or dV belongs to one task and is summed in one order, whatever the number of threads.
// Tasks share no output, so there are no atomics; the price is that backward computes S and dP twice.

#include "ops/attention/tiled/flash_tiled.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "device/parallel.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/attention/tiled/pack.hpp"

namespace syslab::attention {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The memory of one thread for one task.
struct ForwardScratch {
  float *queries, *out, *m, *l, *scores, *rescale;
};

// The layout of the workspace.
struct ForwardMemory {
  std::int64_t width = 0;  // head_dim padded to whole vectors
  std::int64_t keys = 0;   // that some query sees
  int threads = 1;
  Packed turned_k, straight_v;
  std::int64_t scratch_begin = 0, scratch_size = 0;
  std::int64_t floats = 0;
};

ForwardScratch take_forward_scratch(const FlashKernels& kernels, const Problem& p, std::int64_t width, Arena& arena) {
  ForwardScratch scratch{};
  scratch.queries = arena.take(kTaskRows * p.head_dim);
  scratch.out = arena.take(kTaskRows * width);
  scratch.m = arena.take(kTaskRows);
  scratch.l = arena.take(kTaskRows * kernels.lanes);
  scratch.scores = arena.take(kernels.rows * kTile);
  scratch.rescale = arena.take(kernels.rows);
  return scratch;
}

ForwardMemory plan_forward(const FlashKernels& kernels, const Problem& p, float* base) {
  ForwardMemory memory;
  Arena arena(base);
  const std::int64_t groups = p.batch * p.heads_kv;
  memory.width = round_up(p.head_dim, kernels.lanes);
  memory.keys = p.visible_keys(p.seq_q - 1);
  memory.threads = threads_worth(p, Pass::forward);
  memory.turned_k = arena.take_packed(groups, round_up(memory.keys, kernels.strip), p.head_dim);
  memory.straight_v = arena.take_packed(groups, memory.keys, memory.width);
  memory.scratch_begin = arena.used();
  take_forward_scratch(kernels, p, memory.width, arena);
  memory.scratch_size = arena.used() - memory.scratch_begin;
  memory.floats = memory.scratch_begin + memory.threads * memory.scratch_size;
  return memory;
}

template <typename T>
class Forward {
 public:
  Forward(const FlashKernels& kernels, const Problem& p, const ForwardArgs& args, float* base)
      : kernels_(kernels), p_(p), args_(args), base_(base), memory_(plan_forward(kernels, p, base)) {}

  void run() const {
    const std::int64_t tiles = ceil_div(memory_.keys, kTile);
    device::parallel_for(
        p_.batch * p_.heads_kv * tiles,
        [&](std::int64_t index, int) { pack_keys(index / tiles, index % tiles * kTile); }, memory_.threads);
    const std::int64_t tasks = ceil_div(p_.seq_q, kTaskRows);
    // The last rows first: with a causal mask they cost the most, and short tasks at the end balance the threads.
    device::parallel_for(
        p_.batch * p_.heads_q * tasks,
        [&](std::int64_t index, int thread) { query_task(index / tasks, tasks - 1 - index % tasks, thread); },
        memory_.threads);
  }

 private:
  void pack_keys(std::int64_t group, std::int64_t first) const {
    const std::int64_t batch = group / p_.heads_kv, head = group % p_.heads_kv;
    const std::int64_t count = std::min(kTile, memory_.keys - first);
    pack_turned(rows_of<T>(args_.k, batch, head, first, count), kernels_.strip, memory_.turned_k.tile(group, first));
    pack_straight(rows_of<T>(args_.v, batch, head, first, count), memory_.width, memory_.straight_v.tile(group, first));
  }

  void query_task(std::int64_t head, std::int64_t task, int thread) const {
    Arena arena(base_);
    arena.rewind(memory_.scratch_begin + thread * memory_.scratch_size);
    const ForwardScratch scratch = take_forward_scratch(kernels_, p_, memory_.width, arena);
    const std::int64_t batch = head / p_.heads_q, query_head = head % p_.heads_q;
    const std::int64_t group = batch * p_.heads_kv + query_head / (p_.heads_q / p_.heads_kv);
    const std::int64_t first = task * kTaskRows, count = std::min(kTaskRows, p_.seq_q - first);

    // Scores in units of log 2: exp(x) becomes exp2, and the factor costs nothing here.
    const float factor = p_.effective_scale() * std::numbers::log2e_v<float>;
    for (std::int64_t r = 0; r < count; r += kernels_.rows) {
      pack_panel(rows_of<T>(args_.q, batch, query_head, first + r, std::min(kernels_.rows, count - r)), kernels_.rows,
                 factor, scratch.queries + r * p_.head_dim);
    }
    std::fill_n(scratch.out, kTaskRows * memory_.width, 0.0F);
    std::fill_n(scratch.m, kTaskRows, kNever);
    std::fill_n(scratch.l, kTaskRows * kernels_.lanes, 0.0F);

    const std::int64_t keys = p_.visible_keys(first + count - 1);
    for (std::int64_t key = 0; key < keys; key += kTile) {
      const float* turned_k = memory_.turned_k.tile(group, key);
      const float* straight_v = memory_.straight_v.tile(group, key);
      for (std::int64_t r = 0; r < count; r += kernels_.rows) {
        const Visible visible = visible_keys(first, r, count, key);
        const std::int64_t end = visible.last[kernels_.rows - 1];
        if (end == 0) continue;
        kernels_.scores(scratch.queries + r * p_.head_dim, turned_k, p_.head_dim, 0, end, scratch.scores);
        kernels_.softmax(scratch.scores, visible, end, scratch.m + r, scratch.l + r * kernels_.lanes, scratch.rescale);
        kernels_.accumulate(scratch.scores, 0, end, straight_v, memory_.width, scratch.rescale,
                            scratch.out + r * memory_.width);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) store_row(scratch, i, batch, query_head, first + i);
  }

  // Which columns of the tile that begins at `key` each row of the panel at first + r sees. Rows past the last see the
  // same as the last, and their results are dropped.
  Visible visible_keys(std::int64_t first, std::int64_t r, std::int64_t count, std::int64_t key) const {
    Visible visible{};
    for (std::int64_t i = 0; i < kernels_.rows; ++i) {
      const std::int64_t row = first + std::min(r + i, count - 1);
      visible.last[i] = std::clamp<std::int64_t>(p_.visible_keys(row) - key, 0, kTile);
    }
    return visible;
  }

  void store_row(const ForwardScratch& scratch, std::int64_t i, std::int64_t batch, std::int64_t head,
                 std::int64_t row) const {
    double sum = 0;
    for (std::int64_t lane = 0; lane < kernels_.lanes; ++lane) sum += scratch.l[i * kernels_.lanes + lane];
    T* out = row_of<T>(args_.out, batch, head, row);
    float& lse = element_of<float>(args_.lse, batch, head, row);
    if (p_.visible_keys(row) == 0) {
      std::fill_n(out, p_.head_dim, from_float<T>(0.0F));
      lse = kNever;
      return;
    }
    const auto inverse = static_cast<float>(1.0 / sum);
    const float* accumulated = scratch.out + i * memory_.width;
    for (std::int64_t d = 0; d < p_.head_dim; ++d) out[d] = from_float<T>(accumulated[d] * inverse);
    lse = static_cast<float>(scratch.m[i] * std::numbers::ln2 + std::log(sum));
  }

  const FlashKernels& kernels_;
  const Problem& p_;
  const ForwardArgs& args_;
  float* base_;
  ForwardMemory memory_;
};

}  // namespace

std::size_t flash_forward_workspace(const FlashKernels& kernels, const Problem& problem) {
  return Arena::bytes_for(plan_forward(kernels, problem, nullptr).floats);
}

void flash_forward(const FlashKernels& kernels, const Problem& problem, const ForwardArgs& args,
                   ops::Workspace workspace) {
  const WorkMemory memory(workspace, flash_forward_workspace(kernels, problem));
  with_storage(problem.dtype, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, double>) Forward<T>(kernels, problem, args, memory.base()).run();
  });
}

Rung flash_tiled_rung() {
  Rung rung;
  rung.name = "flash_tiled";
  rung.teaches = "FlashAttention-2: tiles of scores stay in cache, softmax runs along, memory is O(S·D)";
  rung.dtypes = {DType::f32, DType::bf16, DType::f16};
  rung.facts = {{"works", "plain loops", ""}, forward_tile_fact(0, kTaskRows, kTile)};
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Pass) { return refuse_dtype(dtypes, problem); };
  rung.workspace_bytes = [](const Problem& problem, Pass pass) {
    const FlashKernels& kernels = *flash_kernels().back();
    return pass == Pass::forward ? flash_forward_workspace(kernels, problem)
                                 : flash_backward_workspace(kernels, problem);
  };
  rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace workspace, device::Stream) {
    flash_forward(*flash_kernels().back(), problem, args, workspace);
  };
  rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream) {
    flash_backward(*flash_kernels().back(), problem, args, workspace);
  };
  return rung;
}

}  // namespace syslab::attention
