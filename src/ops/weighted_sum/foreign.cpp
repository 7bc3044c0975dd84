#include "ops/weighted_sum/foreign.hpp"

#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = supports_dtypes(rung);
  rung.forward = [channel = mine.channel](const Problem&, const ForwardArgs& args, ops::Workspace, device::Stream) {
    ops::ForeignCall(channel, "weighted_sum_forward").in("x", args.x).in("w", args.w).out("y", args.y).run();
  };
  rung.backward = [channel = mine.channel](const Problem&, const BackwardArgs& args, ops::Workspace, device::Stream) {
    ops::ForeignCall call(channel, "weighted_sum_backward");
    call.in("x", args.x).in("w", args.w).in("dy", args.dy).out("dx", args.dx).out("dw", args.dw).run();
  };
  return rung;
}

}  // namespace syslab::weighted_sum
