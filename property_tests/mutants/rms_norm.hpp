// The naive rms_norm with switches that plant faults in it.
#pragma once

#include <string>
#include <vector>

#include "ops/rms_norm/rms_norm.hpp"

namespace syslab::rms_norm {

enum class Fault {
  none,
  one_less,              // the mean divides by one less
  lost_row,              // dw does not see the last row
  own_eps,               // eps is not the one asked for
  first_row_apart,       // row 0 comes out larger
  forgotten_projection,  // dx is rstd·w·dy
  write_past_end,        // one element after the last of rstd
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name, caught_by;
};

std::vector<Mutant> mutants();
Rung naive_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::rms_norm
