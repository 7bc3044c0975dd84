#include "ops/gemm/foreign.hpp"

#include "ops/supports_dtypes.hpp"

namespace syslab::gemm {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = ops::supports_dtypes(rung, &Problem::dtype);
  rung.workspace_bytes = [](const Problem&) -> std::size_t { return 0; };
  rung.run = [channel = mine.channel](const Problem&, const Args& args, ops::Workspace, device::Stream) {
    ops::ForeignCall(channel, "gemm").in("a", args.a).in("b", args.b).out("c", args.c).run();
  };
  return rung;
}

}  // namespace syslab::gemm
