// The naive rope with switches that plant faults in it.
#pragma once

#include <string>
#include <vector>

#include "ops/rope/rope.hpp"

namespace syslab::rope {

enum class Fault {
  none,
  turned_back,          // forward turns the other way
  last_rows_of_tables,  // of tables that are longer than the sequence
  turned_on,            // backward turns as forward does
  stretched,            // y is a fiftieth too long
  stretched_back,       // dx is
  stuck_at_last,        // the last position is turned as the first
  swapped_halves,       // out₂ comes before out₁
  write_past_end,       // one element after the last of y
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name, caught_by;
};

std::vector<Mutant> mutants();
Rung naive_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::rope
