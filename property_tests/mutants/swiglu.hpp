// The naive swiglu with switches that plant faults in it.
#pragma once

#include <string>
#include <vector>

#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

enum class Fault {
  none,
  other_gate,        // σ(1.702·t), as another activation has it
  slope_of_sigmoid,  // dgate is dout·up·σ
  rectified,         // silu(|t|)
  clipped,           // up beyond ±1 counts as ±1
  write_past_end,    // one element after the last of out
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name, caught_by;
};

std::vector<Mutant> mutants();
Rung naive_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::swiglu
