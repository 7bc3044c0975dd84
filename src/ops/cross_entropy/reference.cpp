// `reference`: the formulas in double precision, one loop each. The oracle of all other rungs.
#include <cmath>
#include <limits>

#include "ops/cross_entropy/rungs.hpp"

namespace syslab::cross_entropy {
namespace {

void reference_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
  const double* logits = args.logits.as<double>();
  double total = 0;
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const double* row = logits + i * args.logits.stride(0);
    double largest = row[0];
    for (std::int64_t c = 1; c < problem.classes; ++c) largest = row[c] > largest ? row[c] : largest;
    double sum = 0;
    for (std::int64_t c = 0; c < problem.classes; ++c) sum += std::exp(row[c] - largest);
    const std::int64_t target = args.targets[i];
    const double loss =
        problem.has_class(target) ? std::log(sum) - (row[target] - largest) : std::numeric_limits<double>::quiet_NaN();
    args.lse.as<double>()[i] = largest + std::log(sum);
    args.row_loss.as<double>()[i] = loss;
    total += loss;
  }
  args.loss.as<double>()[0] = total / static_cast<double>(problem.rows);
}

void reference_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
  const double* logits = args.logits.as<double>();
  const double scale = args.scale.data == nullptr ? 1.0 : args.scale.as<double>()[0];
  const double share = scale / static_cast<double>(problem.rows);
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const double* row = logits + i * args.logits.stride(0);
    double* gradient = args.dlogits.as<double>() + i * args.dlogits.stride(0);
    const double lse =
        problem.has_class(args.targets[i]) ? args.lse.as<double>()[i] : std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t c = 0; c < problem.classes; ++c) {
      gradient[c] = (std::exp(row[c] - lse) - (c == args.targets[i] ? 1.0 : 0.0)) * share;
    }
  }
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>();
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  rung.forward = reference_forward;
  rung.backward = reference_backward;
  rung.forward_backward = [passes = rung](const Problem& problem, const ForwardBackwardArgs& args,
                                          ops::Workspace workspace, device::Stream stream) {
    one_after_the_other(passes, problem, args, workspace, stream);
  };
  return rung;
}

}  // namespace syslab::cross_entropy
