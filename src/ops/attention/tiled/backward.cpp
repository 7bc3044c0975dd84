// Backward of flash_tiled: two passes over the same tiles, so that every sum has one owner (flash_tiled.cpp says how
// the tiles move).
//
//   facts   D_i = Σ O∘dO and L/log 2, a float each a row
//   dQ      a task owns 96 query rows: panels of Q and dO against tiles of 128 keys (Kᵀ, Vᵀ turned; K straight):
//           S and dP side by side in L1 (12 KiB), P = exp2(S − L), dS = P∘(dP − D) in place, dQ += dS·K
//   dK, dV  a task owns 96 keys: panels of K and V against tiles of 128 queries (Qᵀ, dOᵀ turned; Q, dO straight): the
//           same scores transposed, so L and D are vectors along the row; dV += Pᵀ·dO, dK += dSᵀ·Q, over the
//           query heads of the group in order
//
// Extra memory: the packed operands of the larger pass, 4·S·D floats a query head (the passes take turns), and 2·S.
#include <cmath>
#include <numbers>

#include "device/parallel.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/attention/tiled/flash_tiled.hpp"
#include "ops/attention/tiled/pack.hpp"

namespace syslab::attention {

namespace {

// One thread's memory for one task of either pass: two packed sides, two accumulators, scores and their gradient.
struct BackwardScratch {
  float *left, *right, *first_sum, *second_sum, *scores, *ds;
};

// The layout of the workspace. The two passes use the same memory one after the other.
struct BackwardMemory {
  std::int64_t width = 0;       // head_dim padded to whole vectors
  std::int64_t query_rows = 0;  // seq_q padded to whole strips
  int threads = 1;
  float *lse = nullptr, *dot = nullptr;                     // a query row each: L/log 2 and Σ O∘dO
  Packed turned_k, turned_v, straight_k;                    // read for dQ
  Packed turned_q, turned_dout, straight_q, straight_dout;  // read for dK, dV
  std::int64_t scratch_begin = 0, scratch_size = 0;
  std::int64_t floats = 0;
};

BackwardScratch take_backward_scratch(const FlashKernels& kernels, const Problem& p, std::int64_t width, Arena& arena) {
  BackwardScratch scratch{};
  scratch.left = arena.take(kTaskRows * p.head_dim);
  scratch.right = arena.take(kTaskRows * p.head_dim);
  scratch.first_sum = arena.take(kTaskRows * width);
  scratch.second_sum = arena.take(kTaskRows * width);
  scratch.scores = arena.take(kernels.rows * kTile);
  scratch.ds = arena.take(kernels.rows * kTile);
  return scratch;
}

BackwardMemory plan_backward(const FlashKernels& kernels, const Problem& p, float* base) {
  BackwardMemory memory;
  Arena arena(base);
  memory.width = round_up(p.head_dim, kernels.lanes);
  memory.threads = threads_worth(p, Pass::backward);
  const std::int64_t heads = p.batch * p.heads_q, groups = p.batch * p.heads_kv;
  const std::int64_t key_rows = round_up(p.seq_k, kernels.strip);
  memory.query_rows = round_up(p.seq_q, kernels.strip);
  memory.lse = arena.take(heads * memory.query_rows);
  memory.dot = arena.take(heads * memory.query_rows);
  const std::int64_t shared = arena.used();
  memory.turned_k = arena.take_packed(groups, key_rows, p.head_dim);
  memory.turned_v = arena.take_packed(groups, key_rows, p.head_dim);
  memory.straight_k = arena.take_packed(groups, p.seq_k, memory.width);
  const std::int64_t first_pass = arena.used();
  arena.rewind(shared);
  memory.turned_q = arena.take_packed(heads, memory.query_rows, p.head_dim);
  memory.turned_dout = arena.take_packed(heads, memory.query_rows, p.head_dim);
  memory.straight_q = arena.take_packed(heads, p.seq_q, memory.width);
  memory.straight_dout = arena.take_packed(heads, p.seq_q, memory.width);
  arena.rewind(std::max(first_pass, arena.used()));
  memory.scratch_begin = arena.used();
  take_backward_scratch(kernels, p, memory.width, arena);
  memory.scratch_size = arena.used() - memory.scratch_begin;
  memory.floats = memory.scratch_begin + memory.threads * memory.scratch_size;
  return memory;
}

// First query row that sees `key`, seq_q if none does.
std::int64_t first_query(const Problem& p, std::int64_t key) {
  switch (p.mask) {
    case Mask::none:
      return 0;
    case Mask::top_left:
      return std::min(key, p.seq_q);
    case Mask::bottom_right:
      return std::clamp<std::int64_t>(key - (p.seq_k - p.seq_q), 0, p.seq_q);
  }
  return 0;
}

template <typename T>
class Backward {
 public:
  Backward(const FlashKernels& kernels, const Problem& p, const BackwardArgs& args, float* base)
      : kernels_(kernels), p_(p), args_(args), base_(base), memory_(plan_backward(kernels, p, base)) {}

  void run() const {
    const std::int64_t heads = p_.batch * p_.heads_q, groups = p_.batch * p_.heads_kv;
    for_tiles(heads, p_.seq_q, [&](std::int64_t head, std::int64_t first) { row_facts(head, first); });
    for_tiles(groups, p_.seq_k, [&](std::int64_t group, std::int64_t first) { pack_keys(group, first); });
    const std::int64_t query_tasks = ceil_div(p_.seq_q, kTaskRows);
    device::parallel_for(
        heads * query_tasks,
        [&](std::int64_t index, int thread) {
          query_task(index / query_tasks, query_tasks - 1 - index % query_tasks, thread);  // costliest first
        },
        memory_.threads);
    for_tiles(heads, p_.seq_q, [&](std::int64_t head, std::int64_t first) { pack_queries(head, first); });
    const std::int64_t key_tasks = ceil_div(p_.seq_k, kTaskRows);
    device::parallel_for(
        groups * key_tasks,
        [&](std::int64_t index, int thread) {
          key_task(index / key_tasks, index % key_tasks, thread);  // the first keys are seen by most queries
        },
        memory_.threads);
  }

 private:
  template <typename Body>
  void for_tiles(std::int64_t heads, std::int64_t rows, Body body) const {
    const std::int64_t tiles = ceil_div(rows, kTile);
    device::parallel_for(
        heads * tiles, [&](std::int64_t index, int) { body(index / tiles, index % tiles * kTile); }, memory_.threads);
  }

  float factor() const { return p_.effective_scale() * std::numbers::log2e_v<float>; }

  // L in units of log 2, and D_i = Σ_d O_id·dO_id.
  void row_facts(std::int64_t head, std::int64_t first) const {
    const std::int64_t batch = head / p_.heads_q, h = head % p_.heads_q;
    const std::int64_t count = std::min(kTile, p_.seq_q - first);
    float *lse = memory_.lse + head * memory_.query_rows + first,
          *dot = memory_.dot + head * memory_.query_rows + first;
    const auto out = rows_of<T>(args_.out, batch, h, first, count),
               dout = rows_of<T>(args_.dout, batch, h, first, count);
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::int64_t d = 0; d < p_.head_dim; ++d) sum += double(to_float(out[i][d])) * to_float(dout[i][d]);
      dot[i] = static_cast<float>(sum);
      lse[i] = static_cast<float>(element_of<float>(args_.lse, batch, h, first + i) * std::numbers::log2e);
    }
    // Vectors are read whole: what lies beyond the last row must be a number, whatever number.
    const std::int64_t padded = round_up(count, kernels_.strip);
    std::fill(lse + count, lse + padded, 0.0F);
    std::fill(dot + count, dot + padded, 0.0F);
  }

  void pack_keys(std::int64_t group, std::int64_t first) const {
    const std::int64_t batch = group / p_.heads_kv, head = group % p_.heads_kv;
    const std::int64_t count = std::min(kTile, p_.seq_k - first);
    const auto k = rows_of<T>(args_.k, batch, head, first, count), v = rows_of<T>(args_.v, batch, head, first, count);
    pack_turned(k, kernels_.strip, memory_.turned_k.tile(group, first));
    pack_turned(v, kernels_.strip, memory_.turned_v.tile(group, first));
    pack_straight(k, memory_.width, memory_.straight_k.tile(group, first));
  }

  void pack_queries(std::int64_t head, std::int64_t first) const {
    const std::int64_t batch = head / p_.heads_q, h = head % p_.heads_q;
    const std::int64_t count = std::min(kTile, p_.seq_q - first);
    const auto q = rows_of<T>(args_.q, batch, h, first, count), dout = rows_of<T>(args_.dout, batch, h, first, count);
    pack_turned(q, kernels_.strip, memory_.turned_q.tile(head, first));
    pack_turned(dout, kernels_.strip, memory_.turned_dout.tile(head, first));
    pack_straight(q, memory_.width, memory_.straight_q.tile(head, first));
    pack_straight(dout, memory_.width, memory_.straight_dout.tile(head, first));
  }

  BackwardScratch scratch_of(int thread) const {
    Arena arena(base_);
    arena.rewind(memory_.scratch_begin + thread * memory_.scratch_size);
    const BackwardScratch scratch = take_backward_scratch(kernels_, p_, memory_.width, arena);
    std::fill_n(scratch.first_sum, kTaskRows * memory_.width, 0.0F);
    std::fill_n(scratch.second_sum, kTaskRows * memory_.width, 0.0F);
    return scratch;
  }

  // Rows [first, first + count) of one head as panels.
  void pack_panels(const ConstTensorView& view, std::int64_t batch, std::int64_t head, std::int64_t first,
                   std::int64_t count, float scale, float* to) const {
    for (std::int64_t r = 0; r < count; r += kernels_.rows) {
      pack_panel(rows_of<T>(view, batch, head, first + r, std::min(kernels_.rows, count - r)), kernels_.rows, scale,
                 to + r * p_.head_dim);
    }
  }

  void store_rows(const TensorView& view, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count,
                  float scale, const float* sums) const {
    for (std::int64_t i = 0; i < count; ++i, sums += memory_.width) {
      T* row = row_of<T>(view, batch, head, first + i);
      for (std::int64_t d = 0; d < p_.head_dim; ++d) row[d] = from_float<T>(scale * sums[d]);
    }
  }

  // dQ of kTaskRows query rows: dQ += dS·K over the tiles of keys they see.
  void query_task(std::int64_t head, std::int64_t task, int thread) const {
    const BackwardScratch scratch = scratch_of(thread);
    const std::int64_t batch = head / p_.heads_q, h = head % p_.heads_q;
    const std::int64_t group = batch * p_.heads_kv + h / (p_.heads_q / p_.heads_kv);
    const std::int64_t first = task * kTaskRows, count = std::min(kTaskRows, p_.seq_q - first);
    pack_panels(args_.q, batch, h, first, count, factor(), scratch.left);
    pack_panels(args_.dout, batch, h, first, count, 1.0F, scratch.right);
    const std::int64_t row_offset = head * memory_.query_rows + first;

    const std::int64_t keys = p_.visible_keys(first + count - 1);
    for (std::int64_t key = 0; key < keys; key += kTile) {
      for (std::int64_t r = 0; r < count; r += kernels_.rows) {
        Visible visible{};
        float lse[kMaxRows], dot[kMaxRows];
        for (std::int64_t i = 0; i < kernels_.rows; ++i) {
          const std::int64_t row = std::min(r + i, count - 1);  // rows past the last repeat it; their sums are dropped
          visible.last[i] = std::clamp<std::int64_t>(p_.visible_keys(first + row) - key, 0, kTile);
          lse[i] = memory_.lse[row_offset + row];
          dot[i] = memory_.dot[row_offset + row];
        }
        const std::int64_t end = visible.last[kernels_.rows - 1], panel = r * p_.head_dim;
        if (end == 0) continue;
        kernels_.scores(scratch.left + panel, memory_.turned_k.tile(group, key), p_.head_dim, 0, end, scratch.scores);
        kernels_.scores(scratch.right + panel, memory_.turned_v.tile(group, key), p_.head_dim, 0, end, scratch.ds);
        kernels_.gradient_by_row(scratch.scores, scratch.ds, lse, dot, visible, 0, end);
        kernels_.accumulate(scratch.ds, 0, end, memory_.straight_k.tile(group, key), memory_.width, nullptr,
                            scratch.first_sum + r * memory_.width);
      }
    }
    store_rows(args_.dq, batch, h, first, count, p_.effective_scale(), scratch.first_sum);
  }

  // dK and dV of kTaskRows keys, from the transposed scores, in which keys are rows: dV += Pᵀ·dO, dK += dSᵀ·Q over the
  // query heads of the group, in order, and the tiles of queries that see the keys.
  void key_task(std::int64_t group, std::int64_t task, int thread) const {
    const BackwardScratch scratch = scratch_of(thread);
    const std::int64_t batch = group / p_.heads_kv, head = group % p_.heads_kv, per_group = p_.heads_q / p_.heads_kv;
    const std::int64_t first = task * kTaskRows, count = std::min(kTaskRows, p_.seq_k - first);
    pack_panels(args_.k, batch, head, first, count, factor(), scratch.left);
    pack_panels(args_.v, batch, head, first, count, 1.0F, scratch.right);

    for (std::int64_t h = 0; h < per_group; ++h) {
      const std::int64_t query_head = batch * p_.heads_q + head * per_group + h;
      for (std::int64_t query = first_query(p_, first) / kTile * kTile; query < p_.seq_q; query += kTile) {
        const std::int64_t end = std::min(kTile, p_.seq_q - query);
        for (std::int64_t r = 0; r < count; r += kernels_.rows) {
          Visible visible{};
          for (std::int64_t i = 0; i < kernels_.rows; ++i) {
            const std::int64_t key = first + std::min(r + i, count - 1);
            visible.first[i] = std::clamp<std::int64_t>(first_query(p_, key) - query, 0, end);
            visible.last[i] = end;
          }
          const std::int64_t begin = visible.first[0], panel = r * p_.head_dim, sums = r * memory_.width;
          if (begin == end) continue;
          kernels_.scores(scratch.left + panel, memory_.turned_q.tile(query_head, query), p_.head_dim, begin, end,
                          scratch.scores);
          kernels_.scores(scratch.right + panel, memory_.turned_dout.tile(query_head, query), p_.head_dim, begin, end,
                          scratch.ds);
          kernels_.gradient_by_column(scratch.scores, scratch.ds, memory_.lse + query_head * memory_.query_rows + query,
                                      memory_.dot + query_head * memory_.query_rows + query, visible, begin, end);
          kernels_.accumulate(scratch.scores, begin, end, memory_.straight_dout.tile(query_head, query), memory_.width,
                              nullptr, scratch.second_sum + sums);
          kernels_.accumulate(scratch.ds, begin, end, memory_.straight_q.tile(query_head, query), memory_.width,
                              nullptr, scratch.first_sum + sums);
        }
      }
    }
    store_rows(args_.dk, batch, head, first, count, p_.effective_scale(), scratch.first_sum);
    store_rows(args_.dv, batch, head, first, count, 1.0F, scratch.second_sum);
  }

  const FlashKernels& kernels_;
  const Problem& p_;
  const BackwardArgs& args_;
  float* base_;
  BackwardMemory memory_;
};

}  // namespace

std::size_t flash_backward_workspace(const FlashKernels& kernels, const Problem& problem) {
  return Arena::bytes_for(plan_backward(kernels, problem, nullptr).floats);
}

void flash_backward(const FlashKernels& kernels, const Problem& problem, const BackwardArgs& args,
                    ops::Workspace workspace) {
  const WorkMemory memory(workspace, flash_backward_workspace(kernels, problem));
  with_storage(problem.dtype, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, double>) Backward<T>(kernels, problem, args, memory.base()).run();
  });
}

}  // namespace syslab::attention
