// `reference`: the formulas in double precision, element by element. A copy in half precision is rounded from double
// through fp32, since a half-precision kernel is given fp32.
#include "ops/adamw/rungs.hpp"
#include "ops/storage.hpp"

namespace syslab::adamw {
namespace {

void reference_step(const Problem& problem, const Args& args, device::Stream) {
  if (args.scalars->skip != 0 || (args.non_finite != nullptr && *args.non_finite != 0)) return;
  const StepNumbers<double>& numbers = args.scalars->in_f64;
  const double g_scale = numbers.grad_scale * (args.clip == nullptr ? 1.0 : static_cast<double>(*args.clip));
  const OldState old = old_state(args);
  double *p = args.p.as<double>(), *m = args.m.as<double>(), *v = args.v.as<double>();
  for (std::int64_t i = 0; i < problem.elements; ++i) {
    p[i] = old.p.as<double>()[i];
    m[i] = old.m.as<double>()[i];
    v[i] = old.v.as<double>()[i];
    step_element(numbers, g_scale, p[i], m[i], v[i], args.g.as<double>()[i]);
  }
  if (!problem.copy_dtype) return;
  ops::with_storage(*problem.copy_dtype, [&]<typename Copy>() {
    Copy* copy = args.copy.as<Copy>();
    for (std::int64_t i = 0; i < problem.elements; ++i) copy[i] = from_float<Copy>(static_cast<float>(p[i]));
  });
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>();
  rung.supports = supports_whole_weights(rung);
  rung.step = reference_step;
  return rung;
}

}  // namespace syslab::adamw
