// The grammar of the command line. CLI11 stays behind this header.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.hpp"

namespace syslab::cli {

// Help or version text was asked for, and nothing else is to be done.
struct Information {
  std::string text;
};

// `arguments` without the program's name. Error(usage) for an unknown verb or option, with the nearest names, and for a
// value that an option does not take.
std::variant<CommandLine, Information> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace syslab::cli
