// Whether somebody's Python file can be served at all, asked before any case runs.
#pragma once

#include <string>

namespace syslab::worker {

std::string python_interpreter();  // SYSLAB_PYTHON, else python3

// Why the class of the file at `path` cannot be served, and what to do: the interpreter is not there or lacks a module
// that the file imports (NumPy, torch, Triton), or the file does not parse or names no such class. Empty: nothing
// stands against it. The file is read, not run: what goes wrong as it runs is its cases' to tell.
std::string python_problem(const std::string& path, const std::string& python_class);

}  // namespace syslab::worker
