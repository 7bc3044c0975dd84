// One question to the user's interpreter: a process behind walls that reads what somebody handed in, asked and awaited.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/process/process.hpp"

namespace syslab::worker {

// Importing torch from a cold file system can take half a minute.
inline constexpr std::chrono::milliseconds kPythonPatience = std::chrono::minutes(2);

struct PythonAnswer {
  std::string output;   // standard output
  bool is_cut = false;  // there was more, or it took longer; the process was not awaited but ended
  ExitStatus exit;
};

// Runs `argv`, whose first word is the interpreter, with nothing to read, in a folder of its own that is removed with
// it, and where walls are wanted behind them. Its standard error is ours. Error(internal) when it cannot be started.
// `patience`: none where it runs what a user wrote, and somebody else limits that.
PythonAnswer ask_python(std::vector<std::string> argv, std::size_t most_bytes,
                        std::optional<std::chrono::milliseconds> patience = kPythonPatience);

}  // namespace syslab::worker
