// `--command './bench {n}'`: somebody's program as an implementation.
#pragma once

#include <string>

#include "core/text/command_text.hpp"
#include "plan/plan.hpp"

namespace syslab::plan {

// Error(usage) where the folder or its program is not there.
Submitted command_mine(std::string name, const CommandPlace& place);
std::string digest_of_command(const std::string& path);  // of Submitted::path

}  // namespace syslab::plan
