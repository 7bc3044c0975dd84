// The scripts of src/python, which travel inside the binary: those that its meson.build lists, put in by the build
// (tools/embed_scripts.py).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace syslab::worker {

struct PythonScript {
  std::string_view name;  // of the file, without ".py"
  const char* text;
  // Positions, ascending, of this script and of those that it imports, at its top or later, and of theirs.
  std::span<const std::size_t> parts;
};

// All of them, each behind those that it imports at its top.
std::span<const PythonScript> python_scripts();

// Error(internal) where there is none of that name.
const PythonScript& python_script(std::string_view name);

}  // namespace syslab::worker
