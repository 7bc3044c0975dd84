// A Python script of ours, run to its end within a time: what it printed, as far as we want to read it. The interpreter
// may be somebody's (.venv), so it gets none of the variables that are no business of what is judged.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/process/process.hpp"

namespace syslab::submission {

struct ScriptOutput {
  std::string output;  // at most a mebibyte
  std::string errors;  // the last lines
  ExitStatus ended;
  bool timed_out = false;  // it was stopped
};

// `memory_limit_bytes`: of its addresses and those of each process that it starts; 0: none.
ScriptOutput run_script(std::vector<std::string> command, std::chrono::milliseconds timeout,
                        const Confinement* confinement, std::map<std::string, std::string> environment,
                        std::uint64_t memory_limit_bytes = 0);

}  // namespace syslab::submission
