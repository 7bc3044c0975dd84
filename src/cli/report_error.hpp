// How the program tells that a verb has failed.
#pragma once

#include <string>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"

namespace syslab::cli {

// On standard error and, if `json`, as an object on standard output. `console` is null if the command line itself is
// wrong.
Exit report_error(const Console* console, bool json, ErrorKind kind, const std::string& message);

}  // namespace syslab::cli
