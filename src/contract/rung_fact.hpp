// What a program knows of an implementation, as reports print it. Stored with each run (table rung_fact), so that a
// sentence about a run's kernels holds the constants of the program that made the run.
#pragma once

#include <string>

namespace syslab {

struct RungFact {
  std::string name;   // "forward_tile_64"; unique for its implementation
  std::string value;  // "128 × 64"
  std::string unit;   // "queries × keys"; empty: none
};

}  // namespace syslab
