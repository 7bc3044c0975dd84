// Tensors of a weighted sum in any dtype, with their exact values in double beside them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/weighted_sum/oracle.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

// Owns memory for `shape` in `dtype`; rows (of rank 2) lie `row_stride` elements apart.
struct Tensor {
  DType dtype;
  Shape shape;
  Strides strides;
  std::vector<std::byte> bytes;

  Tensor(DType dtype_, const Shape& shape_) : Tensor(dtype_, shape_, contiguous_strides(shape_)) {}
  Tensor(DType dtype_, const Shape& shape_, const Strides& strides_)
      : dtype(dtype_),
        shape(shape_),
        strides(strides_),
        bytes(static_cast<std::size_t>(extent_elements(shape_, strides_)) * size_of(dtype_), std::byte{0xff}) {}

  TensorView view() { return TensorView(bytes.data(), dtype, shape, strides); }
  ConstTensorView view() const { return ConstTensorView(bytes.data(), dtype, shape, strides); }
  std::vector<double> values() const { return to_doubles(view()); }

  // Sets element `offset` (in memory order, not by index) to `value`, rounded once.
  void store(std::int64_t offset, double value) {
    std::byte* at = bytes.data() + static_cast<std::size_t>(offset) * size_of(dtype);
    const auto put = [at](auto element) { std::memcpy(at, &element, sizeof(element)); };
    switch (dtype) {
      case DType::f64:
        return put(value);
      case DType::f32:
        return put(static_cast<float>(value));
      case DType::f16:
        return put(to_f16(static_cast<float>(value)));
      case DType::bf16:
        return put(to_bf16(static_cast<float>(value)));
    }
  }

  void fill_normal(std::mt19937& random) {
    std::normal_distribution<double> normal;
    const auto slots = static_cast<std::int64_t>(bytes.size() / size_of(dtype));
    for (std::int64_t offset = 0; offset < slots; ++offset) store(offset, normal(random));
  }
};

// A problem with random inputs and outputs of its dtype.
struct Instance {
  Problem problem;
  Tensor x, w, dy, y, dx, dw;

  explicit Instance(const Problem& p, unsigned seed = 1, std::int64_t gap = 0)
      : problem(p),
        x(p.dtype, {p.rows, p.dim}, {p.dim + gap, 1}),
        w(p.dtype, {p.dim}),
        dy(p.dtype, {p.rows}),
        y(p.dtype, {p.rows}),
        dx(p.dtype, {p.rows, p.dim}, {p.dim + gap, 1}),
        dw(p.dtype, {p.dim}) {
    std::mt19937 random(seed);
    for (Tensor* input : {&x, &w, &dy}) input->fill_normal(random);
  }

  ForwardArgs forward_args() { return {x.view(), w.view(), y.view()}; }
  BackwardArgs backward_args() { return {x.view(), w.view(), dy.view(), dx.view(), dw.view()}; }

  void run(const Rung& rung, ops::Workspace workspace = {}) {
    validate(problem, forward_args());
    validate(problem, backward_args());
    rung.forward(problem, forward_args(), workspace, {});
    rung.backward(problem, backward_args(), workspace, {});
  }
};

// Largest error ÷ bound over all elements of one output.
inline double worst_ratio(const Tensor& found, const Expected& expected) {
  const std::vector<double> values = found.values();
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double ratio = std::abs(values[i] - expected.value[i]) / expected.tolerance[i];
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  return worst;
}

inline double worst_ratio(Instance& found) {
  const ForwardArgs forward = found.forward_args();
  const BackwardArgs backward = found.backward_args();
  const Expected y = forward_oracle(found.problem, forward.x, forward.w);
  const BackwardOracle gradients = backward_oracle(found.problem, backward.x, backward.w, backward.dy);
  return std::max({worst_ratio(found.y, y), worst_ratio(found.dx, gradients.dx), worst_ratio(found.dw, gradients.dw)});
}

}  // namespace syslab::weighted_sum
