#include "ops/cross_entropy/foreign.hpp"

#include "ops/supports_dtypes.hpp"

namespace syslab::cross_entropy {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = ops::supports_dtypes(rung, &Problem::dtype);
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  const auto forward = [channel = mine.channel](const Problem& problem, const ForwardArgs& args) {
    ops::ForeignCall call(channel, "cross_entropy_forward");
    call.in("logits", args.logits).whole_numbers("targets", args.targets, problem.rows);
    call.out("row_loss", args.row_loss).out("lse", args.lse).out("loss", args.loss).run();
  };
  const auto backward = [channel = mine.channel](const Problem& problem, const BackwardArgs& args) {
    ops::ForeignCall call(channel, "cross_entropy_backward");
    call.in("logits", args.logits).whole_numbers("targets", args.targets, problem.rows).in("lse", args.lse);
    call.number("scale", args.scale.data == nullptr ? 1.0 : to_doubles(args.scale).front());
    call.out("dlogits", args.dlogits).run();
  };
  rung.forward = [forward](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    forward(problem, args);
  };
  rung.backward = [backward](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
    backward(problem, args);
  };
  rung.forward_backward = [forward, backward](const Problem& problem, const ForwardBackwardArgs& args, ops::Workspace,
                                              device::Stream) {
    forward(problem, {args.logits, args.targets, args.row_loss, args.lse, args.loss});
    backward(problem, {args.logits, args.targets, args.lse, args.scale, args.dlogits});
  };
  return rung;
}

}  // namespace syslab::cross_entropy
