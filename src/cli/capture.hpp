// Another program's answer, whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syslab::cli {

// All that it prints to standard output, or nothing when it does not start or does not end well.
std::optional<std::string> output_of(const std::vector<std::string>& argv);

}  // namespace syslab::cli
