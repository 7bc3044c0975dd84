// Another program's answer, whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syslab::cli {

// All that it prints to standard output, or nothing when it does not start, does not end well, or gives no end: it has
// a minute, and 16 MiB.
std::optional<std::string> output_of(const std::vector<std::string>& argv);

}  // namespace syslab::cli
