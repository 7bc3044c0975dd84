// Parameters of every case of a command (worker/cases/command_case.hpp), beside the axes of its places.
#pragma once

#include <string_view>

namespace syslab::worker {

inline constexpr std::string_view kCommandExperiment = "command";
inline constexpr const char* kCommandReads = "reads";  // a NumberPattern (core/text/command_text.hpp), or kProcessTime
inline constexpr const char* kProcessTime = "process time";

}  // namespace syslab::worker
