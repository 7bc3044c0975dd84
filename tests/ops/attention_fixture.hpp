// Tensors of one attention problem for tests: random inputs, poisoned guarded outputs, chosen layouts.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "check/compare.hpp"
#include "check/guard.hpp"
#include "core/random.hpp"
#include "device/buffer.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "ops/attention/oracle/reference.hpp"

namespace syslab::attention {

// How rows lie in memory: (B, H, S, D) contiguous; (B, S, H, D), the other common order; or rows with gaps.
enum class Layout { heads_outer, heads_inner, padded };

inline Strides strides_of(const Shape& shape, Layout layout) {
  if (layout == Layout::heads_outer || shape.rank() < 4) return contiguous_strides(shape);
  if (layout == Layout::heads_inner) return {shape[1] * shape[2] * shape[3], shape[3], shape[1] * shape[3], 1};
  const std::int64_t row = shape[3] + 5;
  return {(shape[1] * (shape[2] + 1) + 2) * row, (shape[2] + 1) * row, row, 1};
}

class Tensors {
 public:
  Tensors(const Problem& problem, std::uint64_t seed, float scale = 1.0F, Layout layout = Layout::heads_outer)
      : problem_(problem),
        q_(make("q", query(), layout)),
        k_(make("k", key(), layout)),
        v_(make("v", key(), layout)),
        out_(make("out", query(), layout)),
        lse_(TensorSpec{"lse", lse_dtype(), {problem.batch, problem.heads_q, problem.seq_q}}),
        dout_(make("dout", query(), layout)),
        dq_(make("dq", query(), layout)),
        dk_(make("dk", key(), layout)),
        dv_(make("dv", key(), layout)) {
    fill(q_.view(), RandomStream(seed * 4), Distribution::normal, scale);
    fill(k_.view(), RandomStream(seed * 4 + 1), Distribution::normal, scale);
    fill(v_.view(), RandomStream(seed * 4 + 2), Distribution::normal);
    fill(dout_.view(), RandomStream(seed * 4 + 3), Distribution::normal);
    poison();
  }

  void poison() {
    for (auto* output : {&out_, &lse_, &dq_, &dk_, &dv_}) output->poison();
  }

  const Problem& problem() const { return problem_; }
  ForwardArgs forward() const { return {q_.view(), k_.view(), v_.view(), out_.view(), lse_.view()}; }
  BackwardArgs backward() const {
    return {q_.view(),    k_.view(),  v_.view(),  out_.view(), lse_.view(),
            dout_.view(), dq_.view(), dk_.view(), dv_.view()};
  }

  void run_forward(const Rung& rung, ops::Workspace workspace = {}) {
    validate(problem_, forward());
    rung.forward(problem_, forward(), workspace, {});
  }
  void run_backward(const Rung& rung, ops::Workspace workspace = {}) {
    validate(problem_, backward());
    rung.backward(problem_, backward(), workspace, {});
  }

  // Writes O and L as an exact forward pass would leave them: rounded once.
  void store_exact_forward() {
    const ForwardOracle oracle = forward_oracle(problem_, q_.view(), k_.view(), v_.view(), {.budget = 1e18});
    store(out_.view(), oracle.out.value);
    store(lse_.view(), oracle.lse.value);
  }

  // Largest error / bound over outputs; adds a test failure for each output that is wrong or wrote beyond itself.
  double check_forward() const {
    const ForwardOracle oracle = forward_oracle(problem_, q_.view(), k_.view(), v_.view(), {.budget = 1e18});
    return std::max(check(out_, oracle.out), check(lse_, oracle.lse));
  }
  double check_backward() const {
    const BackwardOracle oracle =
        backward_oracle(problem_, q_.view(), k_.view(), v_.view(), dout_.view(), {.budget = 1e18});
    return std::max({check(dq_, oracle.dq), check(dk_, oracle.dk), check(dv_, oracle.dv)});
  }

  static double check(const check::GuardedTensor& output, const Expected& expected) {
    const check::Comparison comparison =
        check::compare(ConstTensorView(output.view()), expected.value, expected.tolerance);
    EXPECT_TRUE(comparison.passed) << comparison.describe(output.spec().name);
    EXPECT_EQ(output.violation(), std::nullopt);
    return comparison.worst_ratio;
  }

  static void store(const TensorView& view, const std::vector<double>& values);

  check::GuardedTensor& q() { return q_; }
  check::GuardedTensor& k() { return k_; }
  check::GuardedTensor& v() { return v_; }
  check::GuardedTensor& out() { return out_; }
  check::GuardedTensor& lse() { return lse_; }
  check::GuardedTensor& dout() { return dout_; }
  check::GuardedTensor& dq() { return dq_; }
  check::GuardedTensor& dk() { return dk_; }
  check::GuardedTensor& dv() { return dv_; }

 private:
  Shape query() const { return {problem_.batch, problem_.heads_q, problem_.seq_q, problem_.head_dim}; }
  Shape key() const { return {problem_.batch, problem_.heads_kv, problem_.seq_k, problem_.head_dim}; }
  DType lse_dtype() const { return problem_.dtype == DType::f64 ? DType::f64 : DType::f32; }
  check::GuardedTensor make(std::string name, const Shape& shape, Layout layout) const {
    return check::GuardedTensor(TensorSpec{std::move(name), problem_.dtype, shape}, strides_of(shape, layout));
  }

  Problem problem_;
  check::GuardedTensor q_, k_, v_, out_, lse_, dout_, dq_, dk_, dv_;
};

template <typename T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

inline void Tensors::store(const TensorView& view, const std::vector<double>& values) {
  auto put = [&]<typename T>(T) {
    const int rank = view.shape.rank();
    for (std::size_t n = 0; n < values.size(); ++n) {
      auto rest = static_cast<std::int64_t>(n);
      std::int64_t offset = 0;
      for (int dim = rank - 1; dim >= 0; --dim) {
        offset += rest % view.size(dim) * view.stride(dim);
        rest /= view.size(dim);
      }
      view.as<T>()[offset] = from_double<T>(values[n]);
    }
  };
  switch (view.dtype) {
    case DType::f64:
      return put(double{});
    case DType::f32:
      return put(float{});
    case DType::f16:
      return put(f16{});
    case DType::bf16:
      return put(bf16{});
  }
}

}  // namespace syslab::attention
