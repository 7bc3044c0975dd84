// What Gradescope takes as an autograder: a zip with setup.sh, run_autograder (tools/gradescope), the wheel of
// tools/release, the rubric and how it is graded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syslab::grade {

struct Autograder {
  std::filesystem::path wheel;       // made by tools/release
  std::string rubric;                // TOML; empty: the one that is shipped
  std::vector<std::string> options;  // of `syslab grade` there
};

// Error(usage) for a wheel that is none of syslab, and a zip that cannot be written.
void write_autograder(const Autograder& autograder, const std::filesystem::path& zip);

}  // namespace syslab::grade
