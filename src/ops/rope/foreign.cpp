#include "ops/rope/foreign.hpp"

#include <algorithm>

namespace syslab::rope {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = [mine](const Problem& problem, Pass) -> std::optional<std::string> {
    if (problem.x_dtype != problem.y_dtype) return mine.name + " takes x and y of one dtype";
    if (std::ranges::count(mine.dtypes, problem.x_dtype) > 0) return std::nullopt;
    return mine.name + " does not promise " + std::string(syslab::to_string(problem.x_dtype));
  };
  const auto turn = [channel = mine.channel](std::string_view function) {
    return [channel, function](const Problem& problem, const Args& args, ops::Workspace, device::Stream) {
      ops::ForeignCall call(channel, function);
      call.in("x", args.x).in("cos", args.cos).in("sin", args.sin).out("y", args.y);
      call.number("halves", problem.layout == Layout::halves).run();
    };
  };
  rung.forward = turn("rope_forward");
  rung.backward = turn("rope_backward");
  return rung;
}

}  // namespace syslab::rope
