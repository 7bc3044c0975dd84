// Stored runs as `diff`, `gate` and `doctor` read them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/value.hpp"
#include "registry/registry.hpp"
#include "session/no_time.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// By the name of a pin, else as Store::find_run. Error(usage) when there is neither.
store::StoredRun find_run_or_pin(const store::Store& store, const std::string& name);

// How a self-reported run came into the database: it was not measured here, and nobody vouches for it (merge --trust).
struct Arrival {
  std::string how, source;  // "merge" or "import", and the file
};
std::optional<Arrival> self_reported(const store::Store& store, const std::string& run_uid);

// What names a case across runs: experiment, parameters, implementation, ranks. Not the experiment's version.
struct CaseKey {
  std::string experiment, params, implementation;
  std::int64_t world_size = 1;
  auto operator<=>(const CaseKey&) const = default;
  std::string title(const registry::Registry& registry) const;  // as `run` calls it: "flash_forward naive seq=128"
};

// The checked times of a case, from all attempts of the run that ended well; none where they are the lab's own.
struct StoredTimes {
  std::string version;                 // of the experiment
  std::vector<double> launch_medians;  // seconds; the slowest rank's
  std::vector<std::string> attempts;   // uids; one holds one launch or several
};
std::map<CaseKey, StoredTimes> stored_times(const store::Store& store, store::RowId run);
// The others: there are launches, and their times are the lab's own.
std::map<CaseKey, NoTime> stored_without_time(const store::Store& store, store::RowId run);

// Outcomes of checks by case and name, the newest of each.
std::map<std::pair<CaseKey, std::string>, std::string> stored_checks(const store::Store& store, store::RowId run);

// Where two runs' machines or conditions differ in what a ratio of times must not hide: "cpu.model: A …, B …".
std::vector<std::string> differing_conditions(const store::Store& store, store::RowId a, store::RowId b);

}  // namespace syslab::cli
