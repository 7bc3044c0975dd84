// The grammar of the command line; hides CLI11.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.hpp"

namespace syslab::cli {

// What may follow a verb, for a shell's completion.
struct OptionWords {
  std::vector<std::string> names;  // "--impl", "-a", or a positional's "NAME"
  std::string help;
  std::vector<std::string> values;  // the only ones it takes; empty: any
  std::string type;                 // "FILE", "DURATION"; empty: it takes none
  bool positional = false;
};
struct VerbWords {
  std::string verb, help;
  std::vector<OptionWords> options;  // its own, then those of all verbs
};

// Help or version text was asked for, and nothing else is to be done.
struct Information {
  std::string text;
};

// `arguments` without the program's name. Error(usage) for an unknown verb or option, with the nearest names, and for a
// value that an option does not take.
std::variant<CommandLine, Information> parse_command_line(const std::vector<std::string>& arguments);

std::vector<VerbWords> words_of_command_line();  // of all verbs but hidden ones

}  // namespace syslab::cli
