// Runs a case that is somebody's program: from its start to its end, or by a number that it prints. Each call is a
// process of its own behind the walls. docs/any-command.md is for users.
#pragma once

#include "worker/cases/case_context.hpp"

namespace syslab::worker {

// The body of the experiment. A program that does not end with exit code 0, or does not print the number, is an error;
// one whose output is not its reference's has failed its check.
void run_command_case(CaseContext& context);

}  // namespace syslab::worker
