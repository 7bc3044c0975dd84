// Captures another program's output.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace syslab::cli {

// All standard output of a program, or nothing if it does not start, fails, or exceeds a minute or 16 MiB.
// `environment`: more variables, in front of ours.
std::optional<std::string> output_of(const std::vector<std::string>& argv,
                                     const std::map<std::string, std::string>& environment = {});

}  // namespace syslab::cli
