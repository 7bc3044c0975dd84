// How long a grid takes whose blocks differ in length: what the plans of flash_mma choose by.
#pragma once

#include <span>

namespace syslab::attention {

// What work costs: of a block besides its units, of a unit where blocks share a multiprocessor, and of one at least.
// `resident` blocks fit a multiprocessor at a time. All in one unit of time.
struct WorkCosts {
  double block = 0, shared = 1, alone = 1;
  int resident = 1;
};

// Time until all is done when blocks with these many units of work come in order: as many as fit are dealt out to the
// multiprocessors in turn, whatever their length, and two long ones may well meet; every further one goes where least
// is to do. Every multiprocessor's first block costs nothing besides its units.
double makespan(std::span<const int> units, int multiprocessors, const WorkCosts& costs);

}  // namespace syslab::attention
