// Places in a submission's code that a person should look at: a library that does what was to be written, or code that
// looks at who calls it; and kernels that are a library's by their names. Of code, what is imported counts, and not
// what something is called. They cost no points, because neither proves anything.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"

namespace syslab::grade {

struct Suspicion {
  std::string file;  // in the submission
  int line = 0;      // from 1
  std::string why;   // "calls torch's own attention"
  std::string text;  // of the line, at most 160 bytes
};

// Of a Python text: of each reason the first place.
std::vector<Suspicion> suspicions_of(std::string_view code, const std::string& file);

// Of all Python files in a folder, by name, at most 100. Left out are environments (.venv, .tox, .nox), and in `tests`
// test_*.py and conftest.py that no other file names: they are the hand-out's or compare with a library. What is larger
// than 1 MiB or cannot be read is listed for that.
std::vector<Suspicion> suspicions_in(const std::filesystem::path& folder);

// Of the kernels that its timed call ran on a GPU, [{"name", "launches"}, …] as its own process told: those of a
// library's attention, and calls that ran a library's kernels alone. `timing` stands in place of a file.
std::vector<Suspicion> suspicions_of_kernels(const Json& kernels, const std::string& timing);

}  // namespace syslab::grade
