// The order of cases for a run that may end before its plan does: the whole of every grid coarsely, then finer.
//
//   breadth_first(plan);
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace syslab::plan {

// For each of `count` values in a row, the step at which a repeated halving of the row meets it: the ends at 0, the
// middle at 1, the middles of both halves at 2, and so on. {0, 3, 2, 3, 1, …, 0} for nine.
std::vector<int> halving_steps(std::size_t count);

// The step of each case, as breadth_first() counts them, over the values that these cases have.
std::vector<int> grid_steps(const std::vector<PlannedCase>& cases);

// Reorders the cases to measure, with new indices. The step of a point of an experiment's grid is the sum of its axes'
// (ranks are an axis), each counted over the values that some case which can run has. Lower steps come first, for all
// experiments alike; of one step, points that are predicted to take less; else the plan's order. The implementations of
// a point stay together, so that what is run of a grid can be compared.
//
// Laws stay in front, and cases that are skipped or predicted not to fit into memory at the end, both in the plan's
// order. Predictions (plan/predict.hpp) should be there; without them all points count as equally long.
void breadth_first(Plan& plan);

}  // namespace syslab::plan
