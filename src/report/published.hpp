// Numbers that others published, as data (reports/published.json): which case, on which kind of device, where they
// stand. They meet ours in reports/tables/published.sql, and only where device, dtype and phase agree.
#pragma once

#include <string>

namespace syslab::report {

// The file's series as one flat JSON array, an object a number:
//   {"experiment", "source", "note", "device", "world_size", "implementations": [globs] or null, "mine", "params": {…},
//    "metric", "value", "unit", "scale"}
// `value` is in `unit`, of which `scale` base units (s, B) make one. Error(internal) when the text is not what it
// should be.
std::string published_entries(const std::string& json);

// Of the embedded file, those about one experiment: "[]" where there are none.
const std::string& published_entries_of(const std::string& experiment);

}  // namespace syslab::report
