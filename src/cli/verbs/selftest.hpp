// `doctor --selftest`: every implementation that this machine can run, at two inputs a law and its smoke cases, in a
// database of its own. What comes out is a file that anyone may send: no names of hosts, users or folders are in it.
#pragma once

#include <string>

#include "session/context.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

// Writes JSON to `output`, whole or not at all (on standard output with --json), and a summary on standard output.
// Exit::wrong if an implementation is. Error(usage), before anything runs, if the file cannot be written.
Exit run_selftest(const Context& context, const std::string& output);

}  // namespace syslab::cli
