#include "ops/global_norm/foreign.hpp"

#include <algorithm>
#include <cmath>

#include "ops/supports_dtypes.hpp"

namespace syslab::global_norm {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = ops::supports_dtypes(rung, &Problem::dtype);
  rung.workspace_bytes = [](const Problem&) -> std::size_t { return 0; };
  rung.norm = [channel = mine.channel](const Problem&, const NormArgs& args, ops::Workspace, device::Stream) {
    ops::ForeignCall call(channel, "global_norm");
    call.in("g", args.g).out("norm", args.norm).out("factor", args.factor);
    if (std::isfinite(args.max_norm)) call.number("max_norm", args.max_norm);
    call.number("grad_scale", args.grad_scale.data == nullptr ? 1.0 : to_doubles(args.grad_scale).front()).run();
    if (args.non_finite == nullptr) return;
    const std::vector<double> g = to_doubles(args.g);
    const auto bad = std::ranges::count_if(g, [](double value) { return !std::isfinite(value); });
    *args.non_finite = (args.add_to_count ? *args.non_finite : 0) + bad;
  };
  rung.scale = [channel = mine.channel](const Problem&, const ScaleArgs& args, device::Stream) {
    ops::ForeignCall(channel, "global_norm_scale")
        .in("g", args.g)
        .in("factor", args.factor)
        .out("scaled_g", args.g)
        .run();
  };
  return rung;
}

}  // namespace syslab::global_norm
