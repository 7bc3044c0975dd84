// Several cases of a plan at a time, told as if they had come one after the other.
#pragma once

#include "runner/runner.hpp"

namespace syslab::runner {

// run_plan() with options.jobs above 1. Each job has a thread and workers of its own, with its share of the processors
// (OMP_NUM_THREADS, unless it is set). The observer is called by one thread at a time; what has finished is told in the
// order of the plan.
bool run_side_by_side(const plan::Plan& plan, const RunOptions& options, const Observer& observer,
                      const Interruption& interruption);

}  // namespace syslab::runner
