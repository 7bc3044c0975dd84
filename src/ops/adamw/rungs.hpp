// The rungs of AdamW and their common formula; private to this folder.
#pragma once

#include <cmath>

#include "ops/adamw/adamw.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::adamw {

Rung reference_rung();
Rung naive_rung();
Rung eager_cuda_rung();
Rung fused_cuda_rung();

// The state before a step.
struct OldState {
  ConstTensorView p, m, v, low;
};
inline OldState old_state(const Args& args) {
  if (args.old_p.data == nullptr) return {args.p, args.m, args.v, args.low};
  return {args.old_p, args.old_m, args.old_v, args.old_low};
}

// For a rung that supports only unsplit weights.
inline std::function<std::optional<std::string>(const Problem&)> supports_whole_weights(const RungInfo& info) {
  return
      [of_dtype = ops::supports_dtypes(info, &Problem::dtype)](const Problem& problem) -> std::optional<std::string> {
        if (problem.split) return "it takes weights that are whole, not in halves";
        return of_dtype(problem);
      };
}

// a·b + c, rounded once on a GPU: otherwise the compiler would contract different products and sums in each kernel, and
// a step's bits would depend on where its weights are stored.
template <typename T>
constexpr T multiply_add(T a, T b, T c) {
#ifdef __CUDA_ARCH__
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

// One element's step. `g_scale` is grad_scale · clip. Compiled for GPUs too (--expt-relaxed-constexpr).
template <typename T>
constexpr void step_element(const StepNumbers<T>& n, T g_scale, T& p, T& m, T& v, T g) {
  g *= g_scale;
  m = multiply_add(n.beta1, m, n.rest1 * g);
  v = multiply_add(n.beta2, v, n.rest2 * (g * g));
  p = multiply_add(-n.decay_before, p, p);
  p = multiply_add(-n.step, m / multiply_add(std::sqrt(v), n.root_factor, n.eps), p);
  p = multiply_add(-n.decay_after, p, p);
}

}  // namespace syslab::adamw
