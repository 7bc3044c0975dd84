#include "ops/adamw/foreign.hpp"

#include "ops/supports_dtypes.hpp"

namespace syslab::adamw {
namespace {

// The scalars are in host memory: a foreign rung works there.
void tell(ops::ForeignCall& call, const StepNumbers<double>& step) {
  call.number("beta1", step.beta1).number("rest1", step.rest1).number("beta2", step.beta2).number("rest2", step.rest2);
  call.number("step", step.step).number("root_factor", step.root_factor).number("eps", step.eps);
  call.number("decay_before", step.decay_before).number("decay_after", step.decay_after);
  call.number("grad_scale", step.grad_scale);
}

}  // namespace

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.dtypes = {DType::f32};  // of the state; a copy may be narrower
  rung.supports = [info = rung](const Problem& problem) -> std::optional<std::string> {
    if (problem.split) return info.name + " takes whole weights, not halves";
    if (problem.copy_dtype) return info.name + " is not asked for a copy in half precision";
    return ops::refused_dtype(info, problem.dtype);
  };
  rung.step = [channel = mine.channel](const Problem&, const Args& args, device::Stream) {
    if (args.scalars->skip != 0 || (args.non_finite != nullptr && *args.non_finite != 0)) return;
    const bool apart = args.old_p.data != nullptr;
    ops::ForeignCall call(channel, "adamw_step");
    call.in("p", apart ? args.old_p : ConstTensorView(args.p)).in("m", apart ? args.old_m : ConstTensorView(args.m));
    call.in("v", apart ? args.old_v : ConstTensorView(args.v)).in("g", args.g);
    call.out("new_p", args.p).out("new_m", args.m).out("new_v", args.v);
    tell(call, args.scalars->in_f64);
    call.number("clip", args.clip == nullptr ? 1.0 : static_cast<double>(*args.clip)).run();
  };
  return rung;
}

}  // namespace syslab::adamw
