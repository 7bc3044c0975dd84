// A plain copy with switches that plant faults in it.
#pragma once

#include <string>
#include <vector>

#include "ops/copy/copy.hpp"

namespace syslab::copy {

enum class Fault {
  none,
  dropped_tail,  // bytes beyond the last whole word stay behind
  whole_lines,   // rounds its length up to a cache line
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name, caught_by;
};

std::vector<Mutant> mutants();
Rung plain_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::copy
