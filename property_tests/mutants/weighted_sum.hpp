// A plain weighted sum with switches that plant faults in it.
#pragma once

#include <string>
#include <vector>

#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

enum class Fault {
  none,
  dropped_tail,     // columns beyond the last whole tile of 16 are left out
  short_buffer,     // columns from 1000 on are left out
  lost_row,         // dw does not see the last row
  rectified,        // y = |y|
  first_row_apart,  // row 0 is added up from its other end
  small_inputs,     // y is zero where no number of x is above 1e-3
  small_gradients,  // dx is zero where no number of dy is above 1e-3
  write_past_end,   // one element after the last of y
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name, caught_by;
};

std::vector<Mutant> mutants();
Rung plain_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::weighted_sum
