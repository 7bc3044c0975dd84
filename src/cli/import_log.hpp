// A log of the worker's wire format as a run: what another program measured, a JSON object a line
// (docs/importing-results.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "registry/registry.hpp"
#include "store/store.hpp"

namespace syslab::cli {

struct ImportedRun {
  store::RunRow run;
  std::vector<store::PlanRow> plan;
  std::vector<store::AttemptRow> attempts;  // one a planned case, in the same order
};

// Error(usage) naming the line and what is wrong with it; a log is taken whole or not at all. An `ok` is believed as
// far as its records support it, as for a worker of our own. `shown_as`: the file's name, for messages.
ImportedRun read_log(const registry::Registry& registry, std::string_view text, const std::string& shown_as);

}  // namespace syslab::cli
