// What an oracle says about one output: the exact result, and how far from it a correct implementation may be.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace syslab {

// The same in GPU memory, as doubles.
struct ExpectedThere {
  const double* value = nullptr;      // row-major; null if the values are on the host
  const double* tolerance = nullptr;  // as many, or one for all
  std::int64_t tolerances = 0;        // how many
  std::shared_ptr<const void> owner;  // keeps both
};

// Units are the output's own. |out − value| ≤ tolerance, element by element; an infinite value must be met exactly.
struct Expected {
  std::vector<double> value;      // row-major over the output's shape; NaN where `fraction` leaves an element out
  std::vector<double> tolerance;  // absolute; as many, or one for all; 0 where an element is left out
  double fraction = 1.0;          // share of elements computed, above 0
  ExpectedThere there = {};       // replaces the vectors if it has values
  // As many as values: what an element may be off by for its own sake, at most `tolerance`, which may be wider because
  // of its neighbours or of a jump. Empty: the same as `tolerance`.
  std::vector<double> own_tolerance = {};
};

}  // namespace syslab
