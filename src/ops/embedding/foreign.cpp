#include "ops/embedding/foreign.hpp"

#include <algorithm>

namespace syslab::embedding {

Rung foreign_rung(const ops::ForeignImplementation& mine) {
  auto rung = ops::foreign_rung_of<Rung>(mine);
  rung.supports = [mine](const Problem& problem) -> std::optional<std::string> {
    if (problem.table_dtype != problem.x_dtype) return mine.name + " takes a table and x of one dtype";
    if (std::ranges::count(mine.dtypes, problem.x_dtype) > 0) return std::nullopt;
    return mine.name + " does not promise " + std::string(syslab::to_string(problem.x_dtype));
  };
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  rung.forward = [channel = mine.channel](const Problem& problem, const ForwardArgs& args, ops::Workspace,
                                          device::Stream) {
    ops::ForeignCall call(channel, "embedding_forward");
    call.whole_numbers("ids", args.ids, problem.rows).in("table", args.table).out("x", args.x).run();
  };
  rung.backward = [channel = mine.channel, name = mine.name](const Problem& problem, const BackwardArgs& args,
                                                             ops::Workspace, device::Stream) {
    if (args.accumulate) throw Unsupported(name + " is not asked to add to a gradient");
    ops::ForeignCall call(channel, "embedding_backward");
    call.whole_numbers("ids", args.ids, problem.rows).in("dx", args.dx).number("vocab", problem.vocab);
    call.out("dtable", args.dtable).run();
  };
  return rung;
}

}  // namespace syslab::embedding
