#include "property_tests/mutants/attention.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/refusal.hpp"
#include "property_tests/tensors.hpp"

namespace syslab::attention {
namespace {

constexpr std::int64_t kTile = 16;  // queries and keys
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

using Floats = std::vector<float>;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

template <typename T, typename View>
auto* row(const View& view, std::int64_t batch, std::int64_t head, std::int64_t index) {
  return view.template as<T>() + batch * view.stride(0) + head * view.stride(1) + index * view.stride(2);
}

// A row of one of the inputs to a product, as the kernel's multiplier sees it.
void narrow(Floats& values) {
  constexpr std::uint32_t kDropped = 0x1fffU;  // 23 − 10 bits of mantissa; truncation, as the hardware may
  for (float& value : values) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & ~kDropped);
}

template <typename T>
float rounded(float value) {
  return to_float(from_float<T>(value));
}

float dot(const float* a, const float* b, std::int64_t length) {
  float sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum += a[d] * b[d];
  return sum;
}

// What a fault changes in reading the problem.
struct Plan {
  const Problem& problem;
  Fault fault;

  float scale() const {
    const float right = problem.effective_scale();
    return fault == Fault::wrong_scale ? right * right : right;
  }
  float gradient_scale() const { return fault == Fault::nudged_scale ? 1.001F * scale() : scale(); }
  float row_term_gain() const {
    if (fault == Fault::dropped_row_term) return 0.0F;
    return fault == Fault::nudged_row_term ? 1.01F : 1.0F;
  }
  bool sees(std::int64_t query, std::int64_t key) const {
    if (fault == Fault::unmasked_tail && key >= problem.seq_k) return true;
    const std::int64_t extra = fault == Fault::mask_off_by_one && problem.mask != Mask::none ? 1 : 0;
    return key < std::min(problem.visible_keys(query) + extra, problem.seq_k);
  }
  std::int64_t key_batch(std::int64_t batch) const { return fault == Fault::shared_batch ? 0 : batch; }
  std::int64_t key_head(std::int64_t head) const {
    if (fault == Fault::interleaved_heads) return head % problem.heads_kv;
    return head / (problem.heads_q / problem.heads_kv);
  }
};

// Rows [first, first + count) as floats, zeros beyond `last`.
template <typename T>
Floats load(const Plan& plan, const ConstTensorView& view, std::int64_t batch, std::int64_t head, std::int64_t first,
            std::int64_t count, std::int64_t last) {
  const std::int64_t dim = view.size(3);
  Floats tile(at(count * dim), 0.0F);
  for (std::int64_t i = 0; i < count && first + i < last; ++i) {
    const T* from = row<T>(view, batch, head, first + i);
    for (std::int64_t d = 0; d < dim; ++d) tile[at(i * dim + d)] = to_float(from[d]);
  }
  if (plan.fault == Fault::narrow_products) narrow(tile);
  return tile;
}

// Running state of a tile of queries (Dao 2023, algorithm 1).
struct Online {
  Floats largest, sum, accumulator;
  Online(std::int64_t rows, std::int64_t dim)
      : largest(at(rows), kMinusInfinity), sum(at(rows), 0.0F), accumulator(at(rows * dim), 0.0F) {}

  float lse(std::int64_t i) const { return sum[at(i)] > 0 ? largest[at(i)] + std::log(sum[at(i)]) : kMinusInfinity; }
};

template <typename T>
void absorb_tile(const Plan& plan, Online& state, const Floats& q, const Floats& k, const Floats& v,
                 std::int64_t first_query, std::int64_t first_key) {
  const std::int64_t dim = plan.problem.head_dim;
  const auto score_of = [&](std::int64_t i, std::int64_t j) {
    const bool visible = plan.sees(first_query + i, first_key + j);
    return visible ? plan.scale() * dot(&q[at(i * dim)], &k[at(j * dim)], dim) : kMinusInfinity;
  };
  float of_tile = kMinusInfinity;
  for (std::int64_t i = 0; plan.fault == Fault::spread_rows && i < kTile && first_query + i < plan.problem.seq_q; ++i) {
    for (std::int64_t j = 0; j < kTile; ++j) of_tile = std::max(of_tile, score_of(i, j));
  }
  for (std::int64_t i = 0; i < kTile && first_query + i < plan.problem.seq_q; ++i) {
    float score[kTile], largest = std::max(state.largest[at(i)], of_tile);
    for (std::int64_t j = 0; j < kTile; ++j) {
      score[j] = score_of(i, j);
      largest = std::max(largest, score[j]);
    }
    if (largest == kMinusInfinity) continue;
    if (plan.fault == Fault::no_running_maximum) largest = 0;
    const float shrink = std::exp(state.largest[at(i)] - largest);
    float* accumulator = &state.accumulator[at(i * dim)];
    if (plan.fault != Fault::missing_rescale) {
      for (std::int64_t d = 0; d < dim; ++d) accumulator[d] *= shrink;
    }
    state.sum[at(i)] *= shrink;
    state.largest[at(i)] = largest;
    for (std::int64_t j = 0; j < kTile; ++j) {
      const float weight = std::exp(score[j] - largest);
      state.sum[at(i)] += weight;
      const float factor = plan.fault == Fault::rounded_weights ? rounded<T>(weight) : weight;
      for (std::int64_t d = 0; d < dim; ++d) accumulator[d] += factor * v[at(j * dim + d)];
    }
    if (plan.fault == Fault::half_accumulator) {
      for (std::int64_t d = 0; d < dim; ++d) accumulator[d] = rounded<T>(accumulator[d]);
    }
  }
}

template <typename T>
void forward_tile(const Plan& plan, const ForwardArgs& args, std::int64_t batch, std::int64_t head,
                  std::int64_t first_query, bool reversed) {
  const Problem& problem = plan.problem;
  const std::int64_t dim = problem.head_dim, tiles = (problem.seq_k + kTile - 1) / kTile;
  const Floats q = load<T>(plan, args.q, batch, head, first_query, kTile, problem.seq_q);
  Online state(kTile, dim);
  Floats stale(at(kTile), kMinusInfinity);
  for (std::int64_t n = 0; n < tiles; ++n) {
    const std::int64_t first_key = (reversed ? tiles - 1 - n : n) * kTile;
    for (std::int64_t i = 0; i < kTile; ++i) stale[at(i)] = state.lse(i);
    absorb_tile<T>(plan, state, q,
                   load<T>(plan, args.k, plan.key_batch(batch), plan.key_head(head), first_key, kTile, problem.seq_k),
                   load<T>(plan, args.v, batch, plan.key_head(head), first_key, kTile, problem.seq_k), first_query,
                   first_key);
  }
  const std::int64_t rows = std::min(kTile, problem.seq_q - first_query);
  for (std::int64_t i = 0; i < rows; ++i) {
    if (plan.fault == Fault::forgotten_row && rows < kTile && i + 1 == rows) continue;
    T* out = row<T>(args.out, batch, head, first_query + i);
    const float sum = state.sum[at(i)];
    const bool divides = sum > 0 || plan.fault == Fault::divided_by_nothing;
    for (std::int64_t d = 0; d < dim; ++d) {
      out[d] = from_float<T>(divides ? state.accumulator[at(i * dim + d)] / sum : 0.0F);
    }
    float lse = plan.fault == Fault::stale_lse && tiles > 1 ? stale[at(i)] : state.lse(i);
    if (plan.fault == Fault::binary_logarithm) lse *= 1.44269504F;
    *row<float>(args.lse, batch, head, first_query + i) = lse;
  }
}

template <typename T>
void forward(const Plan& plan, const ForwardArgs& args) {
  static std::atomic<unsigned> calls{0};
  const Problem& problem = plan.problem;
  const bool reversed = plan.fault == Fault::unordered_tiles && calls++ % 2 != 0;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    for (std::int64_t head = 0; head < problem.heads_q; ++head) {
      for (std::int64_t query = 0; query < problem.seq_q; query += kTile) {
        forward_tile<T>(plan, args, batch, head, query, reversed);
      }
    }
  }
  if (plan.fault == Fault::write_past_end) {
    T* last = row<T>(args.out, problem.batch - 1, problem.heads_q - 1, problem.seq_q - 1);
    last[problem.head_dim] = from_float<T>(0.0F);
  }
}

template <typename T>
void store(const TensorView& view, std::int64_t batch, std::int64_t head, const Floats& values) {
  for (std::int64_t i = 0; i < view.size(2); ++i) {
    T* to = row<T>(view, batch, head, i);
    for (std::int64_t d = 0; d < view.size(3); ++d) to[d] = from_float<T>(values[at(i * view.size(3) + d)]);
  }
}

// dQ of one query head, added to dK and dV of its key head.
template <typename T>
void backward_head(const Plan& plan, const BackwardArgs& args, std::int64_t batch, std::int64_t head, Floats& dk,
                   Floats& dv) {
  const Problem& problem = plan.problem;
  const std::int64_t dim = problem.head_dim, keys = problem.seq_k, queries = problem.seq_q;
  const auto whole = [&](const ConstTensorView& view, std::int64_t b, std::int64_t h, std::int64_t rows) {
    return load<T>(plan, view, b, h, 0, rows, rows);
  };
  const Floats q = whole(args.q, batch, head, queries), out = whole(args.out, batch, head, queries),
               dout = whole(args.dout, batch, head, queries);
  const Floats k = whole(args.k, plan.key_batch(batch), plan.key_head(head), keys),
               v = whole(args.v, batch, plan.key_head(head), keys);
  Floats dq(q.size(), 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) {
    const float *query = &q[at(i * dim)], *gradient = &dout[at(i * dim)];
    const float lse = *row<float>(args.lse, batch, head, i);
    const float row_term = plan.row_term_gain() * dot(&out[at(i * dim)], gradient, dim);
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!plan.sees(i, j)) continue;
      float p = std::exp(plan.scale() * dot(query, &k[at(j * dim)], dim) - lse);
      float ds = plan.gradient_scale() * p * (dot(gradient, &v[at(j * dim)], dim) - row_term);
      if (plan.fault == Fault::rounded_weights) {
        p = rounded<T>(p);
        ds = rounded<T>(ds);
      }
      for (std::int64_t d = 0; d < dim; ++d) {
        dv[at(j * dim + d)] += p * gradient[d];
        dk[at(j * dim + d)] += ds * query[d];
        dq[at(i * dim + d)] += ds * k[at(j * dim + d)];
        if (plan.fault == Fault::half_gradient_sums && (j + 1) % kTile == 0) {
          dq[at(i * dim + d)] = rounded<T>(dq[at(i * dim + d)]);
        }
      }
    }
  }
  store<T>(args.dq, batch, head, dq);
}

template <typename T>
void backward(const Plan& plan, const BackwardArgs& args) {
  const Problem& problem = plan.problem;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    for (std::int64_t key_head = 0; key_head < problem.heads_kv; ++key_head) {
      Floats dk(at(problem.seq_k * problem.head_dim), 0.0F), dv(dk);
      for (std::int64_t head = 0; head < problem.heads_q; ++head) {
        if (plan.key_head(head) != key_head) continue;
        if (plan.fault == Fault::lost_group) {
          std::fill(dk.begin(), dk.end(), 0.0F);
          std::fill(dv.begin(), dv.end(), 0.0F);
        }
        backward_head<T>(plan, args, batch, head, dk, dv);
      }
      const bool swapped = plan.fault == Fault::swapped_gradients;
      store<T>(args.dk, batch, key_head, swapped ? dv : dk);
      store<T>(args.dv, batch, key_head, swapped ? dk : dv);
    }
  }
}

// What the faults of memory keep from one forward pass to the next.
struct Kept {
  const void* q = nullptr;
  Problem problem;
  std::vector<double> out, lse;
};
Kept& kept() {
  static Kept last;
  return last;
}

void keep(const Problem& problem, const ForwardArgs& args) {
  kept() = {args.q.data, problem, to_doubles(args.out), to_doubles(args.lse)};
}

bool answered_from_memory(const Problem& problem, const ForwardArgs& args) {
  if (kept().q != args.q.data || kept().problem != problem) return false;
  property::assign(args.out, kept().out);
  property::assign(args.lse, kept().lse);
  return true;
}

void slip_now_and_then(const ForwardArgs& args) {
  static std::atomic<unsigned> calls{0};
  if (++calls % 50 != 0) return;
  std::vector<double> out = to_doubles(args.out);
  out.back() += 1;
  property::assign(args.out, out);
}

bool is_small(const ConstTensorView& view) {
  return std::ranges::all_of(to_doubles(view), [](double value) { return std::abs(value) < 1e-3; });
}

// In place of `tensor`, if it is small: zeros in `memory`.
void take_small_for_zeros(ConstTensorView& tensor, std::vector<double>& memory) {
  if (!is_small(tensor)) return;
  memory.assign(static_cast<std::size_t>(tensor.elements()), 0.0);
  tensor = ConstTensorView(memory.data(), tensor.dtype, tensor.shape);
}

template <typename Function>
void with_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32:
      return function(float{});
    case DType::f16:
      return function(f16{});
    case DType::bf16:
      return function(bf16{});
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::internal, "the tiled twin takes no fp64");
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::mask_off_by_one, "mask_off_by_one", "attention.causal_prefix"},
      {Fault::missing_rescale, "missing_rescale", "attention.rows_sum_to_one"},
      {Fault::unmasked_tail, "unmasked_tail", "attention.equals_oracle"},
      {Fault::wrong_scale, "wrong_scale", "attention.shift_invariance"},
      {Fault::swapped_gradients, "swapped_gradients", "attention.gradients_equal_oracle"},
      {Fault::stale_lse, "stale_lse", "attention.lse_equals_oracle"},
      {Fault::write_past_end, "write_past_end", "attention.writes_nothing_outside"},
      {Fault::forgotten_row, "forgotten_row", "attention.writes_nothing_outside"},
      {Fault::half_accumulator, "half_accumulator", "attention.half_no_worse_than_naive"},
      {Fault::binary_logarithm, "binary_logarithm", "attention.split_keys"},
      {Fault::no_running_maximum, "no_running_maximum", "attention.large_scores"},
      {Fault::shared_batch, "shared_batch", "attention.batch_permutation"},
      {Fault::interleaved_heads, "interleaved_heads", "attention.head_permutation"},
      {Fault::unordered_tiles, "unordered_tiles", "attention.bitwise_repeatable"},
      {Fault::dropped_row_term, "dropped_row_term", "attention.finite_differences"},
      {Fault::divided_by_nothing, "divided_by_nothing", "attention.equals_oracle"},
      {Fault::lost_group, "lost_group", "attention.gradients_equal_oracle"},
      {Fault::nudged_scale, "nudged_scale", "attention.half_gradients_no_worse_than_naive"},
      {Fault::nudged_row_term, "nudged_row_term", "attention.half_gradients_no_worse_than_naive"},
      {Fault::half_gradient_sums, "half_gradient_sums", "attention.half_gradients_no_worse_than_naive"},
      {Fault::narrow_products, "narrow_products", "attention.equals_oracle"},
      {Fault::kept_output, "kept_output", "attention.keeps_no_state"},
      {Fault::kept_forward, "kept_forward", "attention.keeps_no_state"},
      {Fault::kept_mask, "kept_mask", "attention.keeps_no_state"},
      {Fault::rare_slip, "rare_slip", "attention.repeats"},
      {Fault::spread_rows, "spread_rows", "attention.strange_rows"},
      {Fault::strides_of_keys, "strides_of_keys", "attention.equals_oracle"},
      {Fault::small_values, "small_values", "attention.equals_oracle"},
      {Fault::small_gradients, "small_gradients", "attention.gradients_equal_oracle"},
      {Fault::refused_tail, "refused_tail", "attention.refusal"},
  };
}

Rung tiled_with(Fault fault) {
  Rung rung;
  rung.name = "twin";
  for (const Mutant& mutant : mutants()) {
    if (mutant.fault == fault) rung.name = mutant.name;
  }
  rung.teaches = "what the laws can find";
  rung.dtypes = {DType::f32, DType::bf16, DType::f16};
  rung.supports = [](const Problem& problem, Pass) -> std::optional<std::string> {
    if (problem.dtype == DType::f64) return "the tiled twin takes no fp64";
    return std::nullopt;
  };
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  rung.forward = [fault](const Problem& problem, const ForwardArgs& given, ops::Workspace, device::Stream) {
    ForwardArgs args = given;
    const bool inside = extent_elements(args.v.shape, args.k.strides) <= extent_elements(args.v.shape, args.v.strides);
    if (fault == Fault::strides_of_keys && inside) args.v.strides = args.k.strides;
    std::vector<double> zeros;
    if (fault == Fault::small_values) take_small_for_zeros(args.v, zeros);
    if (fault == Fault::refused_tail && problem.seq_k % 16 != 0) throw Refusal("a tail of keys");
    if (fault == Fault::kept_output && answered_from_memory(problem, args)) return;
    with_dtype(problem.dtype, [&](auto element) { forward<decltype(element)>({problem, fault}, args); });
    if (fault == Fault::kept_output || fault == Fault::kept_forward || fault == Fault::kept_mask) keep(problem, args);
    if (fault == Fault::rare_slip) slip_now_and_then(args);
  };
  rung.backward = [fault](const Problem& problem, const BackwardArgs& given, ops::Workspace, device::Stream) {
    BackwardArgs args = given;
    std::vector<float> last;
    if (fault == Fault::kept_forward && kept().lse.size() == static_cast<std::size_t>(given.lse.elements())) {
      last.assign(kept().lse.begin(), kept().lse.end());
      args.lse = ConstTensorView(last.data(), DType::f32, given.lse.shape);
    }
    std::vector<double> zeros;
    if (fault == Fault::small_gradients) take_small_for_zeros(args.dout, zeros);
    Problem masked = problem;
    if (fault == Fault::kept_mask) masked.mask = kept().problem.mask;
    with_dtype(problem.dtype, [&](auto element) { backward<decltype(element)>({masked, fault}, args); });
  };
  return rung;
}

}  // namespace syslab::attention
