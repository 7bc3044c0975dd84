// Captures another program's output.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syslab::cli {

// All standard output of a program, or nothing if it does not start, fails, or exceeds a minute or 16 MiB.
std::optional<std::string> output_of(const std::vector<std::string>& argv);

}  // namespace syslab::cli
