#include "ops/swiglu/foreign.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::swiglu {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = ops::supports_dtypes(rung, &Problem::dtype);
  const auto forward = [channel = mine.channel](const ForwardArgs& args) {
    ops::ForeignCall(channel, "swiglu_forward").in("gate", args.gate).in("up", args.up).out("out", args.out).run();
  };
  rung.forward = [forward](const Problem&, const ForwardArgs& args, ops::Workspace, device::Stream) { forward(args); };
  rung.backward = [channel = mine.channel, forward](const Problem&, const BackwardArgs& args, ops::Workspace,
                                                    device::Stream) {
    if (args.out.data != nullptr) forward({args.gate, args.up, args.out});  // to be made again
    ops::ForeignCall call(channel, "swiglu_backward");
    call.in("gate", args.gate).in("up", args.up).in("dout", args.dout);
    call.out("dgate", args.dgate).out("dup", args.dup).run();
  };
  return rung;
}

}  // namespace syslab::swiglu
