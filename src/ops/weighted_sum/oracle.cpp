// The reference rung runs twice: on the inputs, and on their absolute values, which gives for each element the sum of
// its terms' sizes, the scale of its rounding errors. y sums dim products, dw one a row, dx is one product.
#include "ops/weighted_sum/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "ops/sum_of_products.hpp"

namespace syslab::weighted_sum {
namespace {

std::vector<double> absolute(std::vector<double> values) {
  std::transform(values.begin(), values.end(), values.begin(), [](double value) { return std::abs(value); });
  return values;
}

ConstTensorView as_tensor(const std::vector<double>& values, const Shape& shape) {
  return {values.data(), DType::f64, shape};
}

Problem in_fp64(Problem problem) {
  problem.dtype = DType::f64;
  return problem;
}

std::vector<double> exact_y(const Problem& problem, const std::vector<double>& x, const std::vector<double>& w) {
  std::vector<double> y(static_cast<std::size_t>(problem.rows));
  const ForwardArgs args{as_tensor(x, {problem.rows, problem.dim}), as_tensor(w, {problem.dim}),
                         TensorView(y.data(), DType::f64, {problem.rows})};
  find_rung("reference").forward(in_fp64(problem), args, {}, {});
  return y;
}

struct Gradients {
  std::vector<double> dx, dw;
};

Gradients exact_gradients(const Problem& problem, const std::vector<double>& x, const std::vector<double>& w,
                          const std::vector<double>& dy) {
  const Shape x_shape{problem.rows, problem.dim}, w_shape{problem.dim};
  Gradients exact{std::vector<double>(x.size()), std::vector<double>(w.size())};
  const BackwardArgs args{as_tensor(x, x_shape), as_tensor(w, w_shape), as_tensor(dy, {problem.rows}),
                          TensorView(exact.dx.data(), DType::f64, x_shape),
                          TensorView(exact.dw.data(), DType::f64, w_shape)};
  find_rung("reference").backward(in_fp64(problem), args, {}, {});
  return exact;
}

Expected expected(const Problem& problem, std::int64_t terms, std::vector<double> value,
                  std::vector<double> magnitude) {
  for (std::size_t i = 0; i < value.size(); ++i)
    magnitude[i] = ops::sum_of_products_bound(problem.dtype, terms, value[i], magnitude[i]);
  return {std::move(value), std::move(magnitude)};
}

}  // namespace

Expected forward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& w) {
  const std::vector<double> x_values = to_doubles(x), w_values = to_doubles(w);
  return expected(problem, problem.dim, exact_y(problem, x_values, w_values),
                  exact_y(problem, absolute(x_values), absolute(w_values)));
}

BackwardOracle backward_oracle(const Problem& problem, const ConstTensorView& x, const ConstTensorView& w,
                               const ConstTensorView& dy) {
  const std::vector<double> x_values = to_doubles(x), w_values = to_doubles(w), dy_values = to_doubles(dy);
  Gradients exact = exact_gradients(problem, x_values, w_values, dy_values);
  Gradients sizes = exact_gradients(problem, absolute(x_values), absolute(w_values), absolute(dy_values));
  return {expected(problem, 1, std::move(exact.dx), std::move(sizes.dx)),
          expected(problem, problem.rows, std::move(exact.dw), std::move(sizes.dw))};
}

}  // namespace syslab::weighted_sum
