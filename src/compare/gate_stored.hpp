// The gate's weaker form: compares cases measured now with a pinned run's stored results, if its program is not
// available.
#pragma once

#include "compare/github.hpp"
#include "compare/options.hpp"
#include "compare/pinned_files.hpp"
#include "compare/session.hpp"
#include "plan/plan.hpp"
#include "session/context.hpp"
#include "session/stored_run.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// The pinned run's measured cases that can be run now.
struct Pinned {
  store::StoredRun run;
  plan::Plan plan;                   // indexed from 0
  std::vector<PinnedFile> files;     // of the user's, each once
  std::vector<std::string> missing;  // cases that cannot be run now or were not judged then, with the reason
  std::vector<GatedLine> not_gated;  // cases that did not end well then: there is no time to compare with
  std::optional<Arrival> arrival;    // of a self-reported pin
};

// Each case is measured in fresh launches, taking turns so that a slow minute affects all of them; slower cases are
// measured once more. `lines`: what was found of each is added there.
Exit gate_by_stored(const Context& context, store::Store& store, const Pinned& pinned, const GateOptions& options,
                    const ComparisonConditions& conditions, std::vector<GatedLine>& lines);

// "The pinned run is self-reported: …", if it was not measured here; else empty.
std::string self_reported_sentence(const std::optional<Arrival>& arrival);

// Facts of the build that made it, as JSON.
std::string build_of_run(const store::Store& store, store::RowId run);

}  // namespace syslab::cli
