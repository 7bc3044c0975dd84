// `reference`: copies rows and adds up gradients token by token, in double precision.
#include <algorithm>
#include <limits>

#include "ops/embedding/rungs.hpp"

namespace syslab::embedding {
namespace {

bool in_range(std::int64_t id, const Problem& problem) { return id >= 0 && id < problem.vocab; }

void reference_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    double* x = args.x.as<double>() + i * args.x.stride(0);
    if (in_range(args.ids[i], problem)) {
      std::copy_n(args.table.as<double>() + args.ids[i] * args.table.stride(0), problem.dim, x);
    } else {
      std::fill_n(x, problem.dim, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

void reference_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
  double* table = args.dtable.as<double>();
  const std::int64_t apart = args.dtable.stride(0);
  for (std::int64_t v = 0; v < problem.vocab && !args.accumulate; ++v) std::fill_n(table + v * apart, problem.dim, 0.0);
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    if (!in_range(args.ids[i], problem)) continue;
    const double* dx = args.dx.as<double>() + i * args.dx.stride(0);
    for (std::int64_t d = 0; d < problem.dim; ++d) table[args.ids[i] * apart + d] += dx[d];
  }
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>("copied rows and running sums in double precision: what the others must equal");
  rung.supports = ops::supports_dtypes(rung, &Problem::table_dtype);
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  rung.forward = reference_forward;
  rung.backward = reference_backward;
  return rung;
}

}  // namespace syslab::embedding
