#include "runner/paired.hpp"

namespace syslab::runner {
namespace {

// The workers of this build know no bursts: said for both sides rather than pretended.
AttemptResult not_served(const PairedSide& side) {
  AttemptResult result;
  result.planned = &side.planned;
  result.detail = "side " + side.label + ": the workers of this build do not serve bursts";
  result.started_at = result.ended_at = utc_now();
  return result;
}

}  // namespace

PairedLaunch run_paired_launch(const PairedSide& a, const PairedSide& b, int, const PairedOptions&, const Observer&,
                               const Interruption&) {
  return {not_served(a), not_served(b), {}};
}

}  // namespace syslab::runner
