// Text to a file or to standard output, and the words of --to.
#pragma once

#include <string>

#include "cli/verbs/verbs.hpp"
#include "report/report.hpp"
#include "report/table.hpp"

namespace syslab::cli {

// `--to`, else what --json asks for, else what the output file's ending says (.md, .tex, .html, .csv, .json), else
// Markdown. Error(usage) for an ending that says something else.
report::Format format_of(const Context& context, const std::string& option, const std::string& file);

// To `file`, whole or not at all (a new file takes the old one's name), or to standard output when it is empty.
// Error(usage) when it cannot be written, and for a FIFO, a device, an SQLite database or the database in use.
void write_output(const Context& context, const std::string& file, const std::string& text);

// Error(usage), as write_output() throws it, before there is a text; leaves nothing.
void require_writable(const Context& context, const std::string& file);

// Writes a report to `file` and the files that it refers to next to it, all or none; the report last, so that it never
// refers to a missing file. Only the text goes to standard output.
void write_output(const Context& context, const std::string& file, const report::Report& report);

}  // namespace syslab::cli
