// A Python script of ours, run to its end within a time: what it printed, as far as we want to read it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "core/process.hpp"

namespace syslab::submission {

struct ScriptOutput {
  std::string output;  // at most a mebibyte
  std::string errors;  // the last lines
  ExitStatus ended;
  bool timed_out = false;  // it was stopped
};

ScriptOutput run_script(std::vector<std::string> command, std::chrono::milliseconds timeout,
                        const Confinement* confinement, std::map<std::string, std::string> environment);

}  // namespace syslab::submission
