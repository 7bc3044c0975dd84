// Runs a case that is one call of somebody's function, of any arguments. Three processes: this one, which holds the
// tensors, compares and times; the function's; and another of whoever asks, which makes arguments from a seed and knows
// what they should give (src/python/syslab_reference.py). docs/any-function.md is for users.
#pragma once

#include "worker/cases/case_context.hpp"

namespace syslab::worker {

// The body of the experiment. As run_operator_case; a function that did what it must not (changed an argument, drew
// numbers) has failed its check `conduct`.
void run_function_case(CaseContext& context);

}  // namespace syslab::worker
