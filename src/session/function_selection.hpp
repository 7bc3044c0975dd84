// `--mine me=file.py:fn --reference file.py:ref --inputs file.py:cases`: the selection of somebody's function, whose
// cases and axes its files give.
#pragma once

#include <string_view>

#include "plan/plan.hpp"
#include "session/options.hpp"

namespace syslab::cli {

inline constexpr std::string_view kFunctionExperiment = "function";

// Makes every --mine of `selection` a function, adds the reference itself as an implementation of that name, and gives
// the experiment its axes in a registry of the selection's own. Nothing where neither option is given. Error(usage)
// where one of the two is missing or the files are wrong.
void select_function(const SelectionOptions& options, plan::Selection& selection);

}  // namespace syslab::cli
