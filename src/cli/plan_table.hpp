// The cases of a plan for people: a table an experiment, a column an axis.
#pragma once

#include <string>

#include "plan/plan.hpp"
#include "session/console.hpp"

namespace syslab::cli {

// Over each table the experiment with the axes that have one value in all of its cases; in it the others, the memory
// that a case is predicted to take, and the time, or why it is not run.
std::string plan_tables(const Console& console, const plan::Plan& plan);

}  // namespace syslab::cli
