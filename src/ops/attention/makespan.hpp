// Run time of a grid with blocks of different lengths: the cost model of flash_mma's plans.
#pragma once

#include <span>

namespace syslab::attention {

// Costs: of a block in addition to its units, of a unit when blocks share a multiprocessor, and the minimum of a unit.
// `resident` blocks fit on a multiprocessor at a time. All in the same unit of time.
struct WorkCosts {
  double block = 0, shared = 1, alone = 1;
  int resident = 1;
};

// Time until all blocks with these units of work, scheduled in order, are done: as many as fit are assigned to the
// multiprocessors round-robin, whatever their length, so two long ones may share one; each further block goes to the
// least loaded. Each multiprocessor's first block costs only its units.
double makespan(std::span<const int> units, int multiprocessors, const WorkCosts& costs);

}  // namespace syslab::attention
