#include "ops/adamw/adamw.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/split_float.hpp"
#include "core/text/named.hpp"
#include "ops/adamw/rungs.hpp"
#include "ops/expect_tensor.hpp"

namespace syslab::adamw {

namespace {

template <typename T>
StepNumbers<T> rounded(const StepNumbers<double>& n) {
  const auto to = [](double value) { return static_cast<T>(value); };
  return {to(n.beta1),       to(n.rest1), to(n.beta2),        to(n.rest2),       to(n.step),
          to(n.root_factor), to(n.eps),   to(n.decay_before), to(n.decay_after), to(n.grad_scale)};
}

void expect_number(std::string_view name, double value, double least, double end) {
  if (value >= least && value < end) return;
  throw Error(ErrorKind::usage,
              fmt::format("AdamW's {} is {}, must be at least {} and below {}", name, value, least, end));
}

// 1 − βᵗ without cancellation if βᵗ is nearly 1.
double one_minus_power(double beta, std::int64_t t) {
  return beta == 0 ? 1.0 : -std::expm1(static_cast<double>(t) * std::log(beta));
}

}  // namespace

Scalars scalars_of(const Options& options, std::int64_t t, double grad_scale, bool skip) {
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  if (t < 1) throw Error(ErrorKind::usage, fmt::format("AdamW's steps count from 1, found {}", t));
  expect_number("lr", options.lr, 0, kNoEnd);
  expect_number("eps", options.eps, 0, kNoEnd);
  expect_number("weight_decay", options.weight_decay, 0, kNoEnd);
  expect_number("beta1", options.beta1, 0, 1);
  expect_number("beta2", options.beta2, 0, 1);
  const double first = one_minus_power(options.beta1, t), second = std::sqrt(one_minus_power(options.beta2, t));
  const bool corrected = options.eps_mode == EpsMode::corrected;
  const double decay = options.lr * options.weight_decay;
  StepNumbers<double> n{};
  n.beta1 = options.beta1;
  n.rest1 = 1 - options.beta1;
  n.beta2 = options.beta2;
  n.rest2 = 1 - options.beta2;
  n.step = options.lr / first * (corrected ? 1.0 : second);
  n.root_factor = corrected ? 1 / second : 1.0;
  n.eps = options.eps;
  n.decay_before = options.decay_order == DecayOrder::before ? decay : 0.0;
  n.decay_after = options.decay_order == DecayOrder::after ? decay : 0.0;
  n.grad_scale = grad_scale;
  return {n, rounded<float>(n), skip ? 1 : 0, 0};
}

std::string to_string(const Problem& problem) {
  return fmt::format("elements={} dtype={}{}{}", problem.elements, syslab::to_string(problem.dtype),
                     problem.split ? " split" : "",
                     problem.copy_dtype ? fmt::format(" copy={}", syslab::to_string(*problem.copy_dtype)) : "");
}

double bytes(const Problem& problem) {
  const double copy = problem.copy_dtype ? static_cast<double>(size_of(*problem.copy_dtype)) : 0.0;
  return static_cast<double>(problem.elements) * (7 * static_cast<double>(size_of(problem.dtype)) + copy);
}

// Two products for the gradient's scale and square, three each for m and v, four for each decay and the update, a
// division and a root.
double flops(const Problem& problem) { return 18.0 * static_cast<double>(problem.elements); }

void validate(const Problem& problem) {
  if (problem.elements < 1) {
    throw Error(ErrorKind::usage, fmt::format("AdamW needs elements ≥ 1, found {}", to_string(problem)));
  }
  if (problem.dtype != DType::f32 && problem.dtype != DType::f64) {
    throw Error(ErrorKind::usage,
                fmt::format("AdamW keeps its weights in fp32 (fp64 for the reference), not in {}; ask "
                            "for a copy in half precision beside them",
                            syslab::to_string(problem.dtype)));
  }
  if (problem.copy_dtype && size_of(*problem.copy_dtype) != 2) {
    throw Error(ErrorKind::usage, fmt::format("AdamW's copy of the weights is bf16 or fp16, not {}",
                                              syslab::to_string(*problem.copy_dtype)));
  }
  if (problem.split && (problem.dtype != DType::f32 || problem.copy_dtype)) {
    throw Error(ErrorKind::usage, fmt::format("AdamW splits weights of fp32 whose upper halves are the copy, found {}",
                                              to_string(problem)));
  }
}

void validate(const Problem& problem, const Args& args) {
  validate(problem);
  const Shape shape{problem.elements};
  ops::expect_tensor("p", args.p, problem.p_dtype(), shape);
  if (problem.split) ops::expect_tensor("low", args.low, kLowHalf, shape);
  ops::expect_tensor("m", args.m, problem.dtype, shape);
  ops::expect_tensor("v", args.v, problem.dtype, shape);
  ops::expect_tensor("g", args.g, problem.dtype, shape);
  if (problem.copy_dtype) ops::expect_tensor("copy", args.copy, *problem.copy_dtype, shape);
  const bool in_place = args.old_p.data == nullptr;
  if ((args.old_m.data == nullptr) != in_place || (args.old_v.data == nullptr) != in_place) {
    throw Error(ErrorKind::usage, "AdamW takes old_p, old_m and old_v together, or none of them");
  }
  if (!in_place) {
    ops::expect_tensor("old_p", args.old_p, problem.p_dtype(), shape);
    if (problem.split) ops::expect_tensor("old_low", args.old_low, kLowHalf, shape);
    ops::expect_tensor("old_m", args.old_m, problem.dtype, shape);
    ops::expect_tensor("old_v", args.old_v, problem.dtype, shape);
  }
  if (args.scalars == nullptr) throw Error(ErrorKind::usage, "AdamW's scalars have no memory");
  if (reinterpret_cast<std::uintptr_t>(args.scalars) % 16 != 0) {
    throw Error(ErrorKind::usage, "AdamW's scalars must begin at a multiple of 16 bytes");
  }
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), eager_cuda_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of adamw", name); }

}  // namespace syslab::adamw
