#include "property_tests/mutants/weighted_sum.hpp"

#include <algorithm>
#include <cmath>

namespace syslab::weighted_sum {
namespace {

bool is_small(const ConstTensorView& view) {
  return std::ranges::all_of(to_doubles(view), [](double value) { return std::abs(value) < 1e-3; });
}

template <typename T>
void forward(Fault fault, const Problem& problem, const ForwardArgs& args) {
  const std::int64_t dim = fault == Fault::dropped_tail && problem.dim > 16 ? problem.dim / 16 * 16 : problem.dim;
  const std::int64_t buffer = fault == Fault::short_buffer ? 1000 : dim;
  const bool vanishes = fault == Fault::small_inputs && is_small(args.x);
  const T* w = args.w.as<T>();
  T* y = args.y.as<T>();
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const T* x = args.x.as<T>() + row * args.x.stride(0);
    const bool backwards = fault == Fault::first_row_apart && row == 0;
    float sum = 0;
    for (std::int64_t n = 0; n < std::min(dim, buffer); ++n) {
      const std::int64_t d = backwards ? dim - 1 - n : n;
      sum += to_float(w[d]) * to_float(x[d]);
    }
    if (vanishes) sum = 0;
    y[row] = from_float<T>(fault == Fault::rectified ? std::abs(sum) : sum);
  }
  if (fault == Fault::write_past_end) y[problem.rows] = from_float<T>(0.0F);
}

template <typename T>
void backward(Fault fault, const Problem& problem, const BackwardArgs& args) {
  const T *w = args.w.as<T>(), *dy = args.dy.as<T>();
  const std::int64_t rows = fault == Fault::lost_row && problem.rows > 1 ? problem.rows - 1 : problem.rows;
  const bool vanishes = fault == Fault::small_gradients && is_small(args.dy);
  for (std::int64_t d = 0; d < problem.dim; ++d) {
    float sum = 0;
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      const float upstream = to_float(dy[row]);
      args.dx.as<T>()[row * args.dx.stride(0) + d] = from_float<T>(vanishes ? 0.0F : to_float(w[d]) * upstream);
      if (row < rows) sum += to_float(args.x.as<T>()[row * args.x.stride(0) + d]) * upstream;
    }
    args.dw.as<T>()[d] = from_float<T>(sum);
  }
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::dropped_tail, "dropped_tail", "weighted_sum.equals_oracle"},
      {Fault::short_buffer, "short_buffer", "weighted_sum.equals_oracle"},
      {Fault::lost_row, "lost_row", "weighted_sum.gradients_equal_oracle"},
      {Fault::rectified, "rectified", "weighted_sum.linearity"},
      {Fault::first_row_apart, "first_row_apart", "weighted_sum.row_permutation"},
      {Fault::small_inputs, "small_inputs", "weighted_sum.equals_oracle"},
      {Fault::small_gradients, "small_gradients", "weighted_sum.gradients_equal_oracle"},
      {Fault::write_past_end, "write_past_end", "weighted_sum.writes_nothing_outside"},
  };
}

Rung plain_with(Fault fault) {
  Rung rung;
  rung.name = "twin";
  for (const Mutant& mutant : mutants()) {
    if (mutant.fault == fault) rung.name = mutant.name;
  }
  rung.teaches = "what the laws can find";
  rung.dtypes = {DType::f32, DType::bf16};
  rung.supports = [](const Problem& problem, Pass) -> std::optional<std::string> {
    if (problem.dtype == DType::f32 || problem.dtype == DType::bf16) return std::nullopt;
    return "the plain twin takes fp32 and bf16";
  };
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  rung.forward = [fault](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    problem.dtype == DType::f32 ? forward<float>(fault, problem, args) : forward<bf16>(fault, problem, args);
  };
  rung.backward = [fault](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
    problem.dtype == DType::f32 ? backward<float>(fault, problem, args) : backward<bf16>(fault, problem, args);
  };
  return rung;
}

}  // namespace syslab::weighted_sum
