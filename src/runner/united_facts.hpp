// Merges the facts of several processes into one object.
#pragma once

#include <vector>

#include "core/text/json.hpp"

namespace syslab::runner {

// What all agree on; of numbers that add up (samples, processor time) the sum, of memory the most, of lists and texts
// all that occur. What they disagree on otherwise, and "status", "ranks" and "launches", are left to each one's own.
Json united_facts(const std::vector<Json>& each);

}  // namespace syslab::runner
