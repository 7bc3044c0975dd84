#include <cmath>
#include <numbers>

#include "device/parallel.hpp"
#include "ops/attention/flash_pack.hpp"
#include "ops/attention/flash_tiled.hpp"

namespace syslab::attention {

namespace {

// One thread's memory for one task of either pass: two packed sides, two accumulators, scores and their gradient.
struct Scratch {
  float *left, *right, *first_sum, *second_sum, *scores, *ds;
};

// Where everything lies in the workspace. The two passes use the same memory one after the other.
struct Memory {
  std::int64_t width = 0;
  std::int64_t key_tiles = 0, query_tiles = 0;
  float *lse = nullptr, *dot = nullptr;  // one a query row, rows padded to whole tiles: L/log 2 and Σ O∘dO
  float *turned_k = nullptr, *turned_v = nullptr, *straight_k = nullptr;                               // for dQ
  float *turned_q = nullptr, *turned_dout = nullptr, *straight_q = nullptr, *straight_dout = nullptr;  // for dK, dV
  std::int64_t turned_tile = 0, straight_tile = 0;
  std::int64_t scratch_begin = 0, scratch_size = 0;
  std::int64_t floats = 0;
};

Scratch take_scratch(const FlashKernels& kernels, const Problem& p, std::int64_t width, Arena& arena) {
  Scratch scratch{};
  scratch.left = arena.take(kTaskRows * p.head_dim);
  scratch.right = arena.take(kTaskRows * p.head_dim);
  scratch.first_sum = arena.take(kTaskRows * width);
  scratch.second_sum = arena.take(kTaskRows * width);
  scratch.scores = arena.take(kernels.rows * kTile);
  scratch.ds = arena.take(kernels.rows * kTile);
  return scratch;
}

Memory plan(const FlashKernels& kernels, const Problem& p, float* base) {
  Memory memory;
  Arena arena(base);
  memory.width = round_up(p.head_dim, kernels.lanes);
  memory.key_tiles = ceil_div(p.seq_k, kTile);
  memory.query_tiles = ceil_div(p.seq_q, kTile);
  memory.turned_tile = kTile * p.head_dim;
  memory.straight_tile = kTile * memory.width;
  const std::int64_t heads = p.batch * p.heads_q, groups = p.batch * p.heads_kv;
  memory.lse = arena.take(heads * memory.query_tiles * kTile);
  memory.dot = arena.take(heads * memory.query_tiles * kTile);
  const std::int64_t shared = arena.used();
  memory.turned_k = arena.take(groups * memory.key_tiles * memory.turned_tile);
  memory.turned_v = arena.take(groups * memory.key_tiles * memory.turned_tile);
  memory.straight_k = arena.take(groups * memory.key_tiles * memory.straight_tile);
  const std::int64_t first_pass = arena.used();
  arena.rewind(shared);
  memory.turned_q = arena.take(heads * memory.query_tiles * memory.turned_tile);
  memory.turned_dout = arena.take(heads * memory.query_tiles * memory.turned_tile);
  memory.straight_q = arena.take(heads * memory.query_tiles * memory.straight_tile);
  memory.straight_dout = arena.take(heads * memory.query_tiles * memory.straight_tile);
  arena.rewind(std::max(first_pass, arena.used()));
  memory.scratch_begin = arena.used();
  take_scratch(kernels, p, memory.width, arena);
  memory.scratch_size = arena.used() - memory.scratch_begin;
  memory.floats = memory.scratch_begin + device::thread_count() * memory.scratch_size;
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
      : kernels_(kernels), p_(p), args_(args), base_(base), memory_(plan(kernels, p, base)) {}

  void run() const {
    using device::parallel_for;
    const std::int64_t heads = p_.batch * p_.heads_q, groups = p_.batch * p_.heads_kv;
    parallel_for(heads * memory_.query_tiles, [&](std::int64_t index, int) { row_facts(index); });

    parallel_for(groups * memory_.key_tiles, [&](std::int64_t index, int) { pack_keys(index); });
    const std::int64_t query_tasks = ceil_div(p_.seq_q, kTaskRows);
    parallel_for(heads * query_tasks, [&](std::int64_t index, int thread) {
      query_task(index / query_tasks, query_tasks - 1 - index % query_tasks, thread);  // costliest first
    });

    parallel_for(heads * memory_.query_tiles, [&](std::int64_t index, int) { pack_queries(index); });
    const std::int64_t key_tasks = ceil_div(p_.seq_k, kTaskRows);
    parallel_for(groups * key_tasks, [&](std::int64_t index, int thread) {
      key_task(index / key_tasks, index % key_tasks, thread);  // the first keys are seen by most queries
    });
  }

 private:
  float factor() const { return p_.effective_scale() * std::numbers::log2e_v<float>; }

  // L in units of log 2, and D_i = Σ_d O_id·dO_id.
  void row_facts(std::int64_t index) const {
    const std::int64_t head = index / memory_.query_tiles, first = index % memory_.query_tiles * kTile;
    const std::int64_t batch = head / p_.heads_q, h = head % p_.heads_q;
    const std::int64_t count = std::min(kTile, p_.seq_q - first);
    float *lse = memory_.lse + index * kTile, *dot = memory_.dot + index * kTile;
    const auto out = rows_of<T>(args_.out, batch, h, first, count),
               dout = rows_of<T>(args_.dout, batch, h, first, count);
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::int64_t d = 0; d < p_.head_dim; ++d) sum += double(to_float(out[i][d])) * to_float(dout[i][d]);
      dot[i] = static_cast<float>(sum);
      lse[i] = static_cast<float>(element_of<float>(args_.lse, batch, h, first + i) * std::numbers::log2e);
    }
    std::fill(lse + count, lse + kTile, 0.0F);
    std::fill(dot + count, dot + kTile, 0.0F);
  }

  void pack_keys(std::int64_t index) const {
    const std::int64_t group = index / memory_.key_tiles, first = index % memory_.key_tiles * kTile;
    const std::int64_t batch = group / p_.heads_kv, head = group % p_.heads_kv;
    const std::int64_t count = std::min(kTile, p_.seq_k - first);
    const auto k = rows_of<T>(args_.k, batch, head, first, count), v = rows_of<T>(args_.v, batch, head, first, count);
    pack_turned(k, kernels_.strip, memory_.turned_k + index * memory_.turned_tile);
    pack_turned(v, kernels_.strip, memory_.turned_v + index * memory_.turned_tile);
    pack_straight(k, memory_.width, memory_.straight_k + index * memory_.straight_tile);
  }

  void pack_queries(std::int64_t index) const {
    const std::int64_t head = index / memory_.query_tiles, first = index % memory_.query_tiles * kTile;
    const std::int64_t batch = head / p_.heads_q, h = head % p_.heads_q;
    const std::int64_t count = std::min(kTile, p_.seq_q - first);
    const auto q = rows_of<T>(args_.q, batch, h, first, count), dout = rows_of<T>(args_.dout, batch, h, first, count);
    pack_turned(q, kernels_.strip, memory_.turned_q + index * memory_.turned_tile);
    pack_turned(dout, kernels_.strip, memory_.turned_dout + index * memory_.turned_tile);
    pack_straight(q, memory_.width, memory_.straight_q + index * memory_.straight_tile);
    pack_straight(dout, memory_.width, memory_.straight_dout + index * memory_.straight_tile);
  }

  Scratch scratch_of(int thread) const {
    Arena arena(base_);
    arena.rewind(memory_.scratch_begin + thread * memory_.scratch_size);
    const Scratch scratch = take_scratch(kernels_, p_, memory_.width, arena);
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
    const Scratch scratch = scratch_of(thread);
    const std::int64_t batch = head / p_.heads_q, h = head % p_.heads_q;
    const std::int64_t group = batch * p_.heads_kv + h / (p_.heads_q / p_.heads_kv);
    const std::int64_t first = task * kTaskRows, count = std::min(kTaskRows, p_.seq_q - first);
    pack_panels(args_.q, batch, h, first, count, factor(), scratch.left);
    pack_panels(args_.dout, batch, h, first, count, 1.0F, scratch.right);
    const std::int64_t row_offset = head * memory_.query_tiles * kTile + first;

    const std::int64_t keys = p_.visible_keys(first + count - 1);
    for (std::int64_t key = 0; key < keys; key += kTile) {
      const std::int64_t tile = group * memory_.key_tiles + key / kTile;
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
        kernels_.scores(scratch.left + panel, memory_.turned_k + tile * memory_.turned_tile, p_.head_dim, 0, end,
                        scratch.scores);
        kernels_.scores(scratch.right + panel, memory_.turned_v + tile * memory_.turned_tile, p_.head_dim, 0, end,
                        scratch.ds);
        kernels_.gradient_by_row(scratch.scores, scratch.ds, lse, dot, visible, 0, end);
        kernels_.accumulate(scratch.ds, 0, end, memory_.straight_k + tile * memory_.straight_tile, memory_.width,
                            nullptr, scratch.first_sum + r * memory_.width);
      }
    }
    store_rows(args_.dq, batch, h, first, count, p_.effective_scale(), scratch.first_sum);
  }

  // dK and dV of kTaskRows keys: the same scores lying on their side, so that keys are rows: dV += Pᵀ·dO, dK += dSᵀ·Q
  // over the query heads of the group, in order, and the tiles of queries that see the keys.
  void key_task(std::int64_t group, std::int64_t task, int thread) const {
    const Scratch scratch = scratch_of(thread);
    const std::int64_t batch = group / p_.heads_kv, head = group % p_.heads_kv, per_group = p_.heads_q / p_.heads_kv;
    const std::int64_t first = task * kTaskRows, count = std::min(kTaskRows, p_.seq_k - first);
    pack_panels(args_.k, batch, head, first, count, factor(), scratch.left);
    pack_panels(args_.v, batch, head, first, count, 1.0F, scratch.right);

    const std::int64_t begin_tile = first_query(p_, first) / kTile;
    for (std::int64_t h = 0; h < per_group; ++h) {
      const std::int64_t head_tile = (batch * p_.heads_q + head * per_group + h) * memory_.query_tiles;
      for (std::int64_t t = begin_tile; t < memory_.query_tiles; ++t) {
        const std::int64_t query = t * kTile, tile = head_tile + t;
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
          kernels_.scores(scratch.left + panel, memory_.turned_q + tile * memory_.turned_tile, p_.head_dim, begin, end,
                          scratch.scores);
          kernels_.scores(scratch.right + panel, memory_.turned_dout + tile * memory_.turned_tile, p_.head_dim, begin,
                          end, scratch.ds);
          kernels_.gradient_by_column(scratch.scores, scratch.ds, memory_.lse + tile * kTile,
                                      memory_.dot + tile * kTile, visible, begin, end);
          kernels_.accumulate(scratch.scores, begin, end, memory_.straight_dout + tile * memory_.straight_tile,
                              memory_.width, nullptr, scratch.second_sum + sums);
          kernels_.accumulate(scratch.ds, begin, end, memory_.straight_q + tile * memory_.straight_tile, memory_.width,
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
  Memory memory_;
};

}  // namespace

std::size_t flash_backward_workspace(const FlashKernels& kernels, const Problem& problem) {
  return Arena::bytes_for(plan(kernels, problem, nullptr).floats);
}

void flash_backward(const FlashKernels& kernels, const Problem& problem, const BackwardArgs& args,
                    ops::Workspace workspace) {
  const WorkMemory memory(workspace, flash_backward_workspace(kernels, problem));
  with_storage(problem.dtype, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, double>) Backward<T>(kernels, problem, args, memory.base()).run();
  });
}

}  // namespace syslab::attention
