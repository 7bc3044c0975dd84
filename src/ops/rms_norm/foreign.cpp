#include "ops/rms_norm/foreign.hpp"

#include <algorithm>

namespace syslab::rms_norm {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.takes_any_delta = false;
  rung.supports = [mine](const Problem& problem, Pass) -> std::optional<std::string> {
    const bool alike = problem.x_dtype == problem.y_dtype && problem.w_dtype == DType::f32;
    if (!alike) return mine.name + " takes x and y of one dtype and an fp32 weight";
    if (std::ranges::count(mine.dtypes, problem.x_dtype) > 0) return std::nullopt;
    return mine.name + " does not promise " + std::string(syslab::to_string(problem.x_dtype));
  };
  const auto channel = mine.channel;
  rung.forward = [channel](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    ops::ForeignCall call(channel, "rms_norm_forward");
    call.in("x", args.x).in("delta", problem.add ? args.delta : ConstTensorView{}).in("w", args.w);
    call.out("h", problem.add ? args.h : TensorView{}).out("y", args.y).out("rstd", args.rstd);
    call.number("eps", problem.eps).run();
  };
  rung.backward = [channel, name = mine.name](const Problem& problem, const BackwardArgs& args, ops::Workspace,
                                              device::Stream) {
    if (args.accumulate) throw Unsupported(name + " is not asked to add to a gradient");
    ops::ForeignCall call(channel, "rms_norm_backward");
    call.in("dy", args.dy).in("h", args.h).in("w", args.w).in("rstd", args.rstd).in("dh", args.dh);
    call.out("dx", args.dx).out("dw", args.dw).number("eps", problem.eps).run();
  };
  return rung;
}

}  // namespace syslab::rms_norm
