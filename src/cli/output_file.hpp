// Text to a file or to standard output, and the words of --to.
#pragma once

#include <string>

#include "cli/verbs.hpp"
#include "report/table.hpp"

namespace syslab::cli {

// `--to`, else what --json asks for, else Markdown.
report::Format format_of(const Context& context, const std::string& option);

// To `file`, whole or not at all (a new file takes the old one's name; what is no plain file is written through), or to
// standard output when it is empty.
// Error(usage) when it cannot be written.
void write_output(const Context& context, const std::string& file, const std::string& text);

}  // namespace syslab::cli
