// Whether a user's Python file can be served at all, checked before any case runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lack.hpp"

namespace syslab::worker {

std::string python_interpreter();  // SYSLAB_PYTHON, else python3
// Of this process and of all workers that it will start. Call it before threads start; an empty name changes nothing.
void choose_python_interpreter(const std::string& interpreter);
// That interpreter running src/python/SCRIPT.py, of the copies inside this binary (worker/judged/python_scripts.hpp);
// its arguments may follow.
std::vector<std::string> python_script_command(std::string_view script);
// The same where nothing that was handed in may be run: not even a module that lies in the folder it runs in.
std::vector<std::string> trusted_script_command(std::string_view script);

// Why the class, or function, of the file at `path` cannot be served, and what to do: the interpreter is not there or
// lacks a module that the file imports (NumPy, torch, Triton), or the file does not parse or names no such class.
// Empty: it can be served. The file is read, not run; errors at run time are reported by its cases.
std::string python_problem(const std::string& path, const std::string& python_class, bool is_function);

// A module was imported that is not there: another interpreter may have it.
bool is_missing_module(const Lack& claim);

// A fact: what is judged claims that its Python lacks it, and the case could not begin.
inline constexpr const char* kLackAtStart = "lack_at_start";

}  // namespace syslab::worker
