// `syslab judged NAME=LIBRARY [cuda]`, started by a worker for --mine: the process in which somebody's library runs.
#pragma once

#include <string>

namespace syslab::cli {

// The exit code. Standard input and output are the worker's, which says in its greeting where the library computes.
int serve_library(const std::string& mine);

}  // namespace syslab::cli
