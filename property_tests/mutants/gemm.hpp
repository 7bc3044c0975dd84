// A plain matrix product with switches that plant faults in it.
#pragma once

#include <string>
#include <vector>

#include "ops/gemm/gemm.hpp"

namespace syslab::gemm {

enum class Fault {
  none,
  dropped_tail,    // products beyond the last whole step of 8 are left out
  rounded_inputs,  // A goes through bf16
  bleeding_row,    // the first row of a tile of 16 takes a little of the row before it
  write_past_row,  // one element behind the last of every row but the last of C
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name, caught_by;
};

std::vector<Mutant> mutants();
Rung plain_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::gemm
