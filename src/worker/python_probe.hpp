// Whether somebody's Python file can be served at all, asked before any case runs.
#pragma once

#include <string>

namespace syslab::worker {

std::string python_interpreter();  // SYSLAB_PYTHON, else python3

// Why the interpreter cannot serve the file at `path`: it is not there, or lacks a module that the file imports (NumPy,
// torch, Triton). Empty: nothing stands against it. Faults of the file itself are its cases' to tell.
std::string python_problem(const std::string& path);

}  // namespace syslab::worker
