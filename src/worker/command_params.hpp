// Parameters of every case of a command (worker/command_case.hpp), beside the axes of its places.
#pragma once

namespace syslab::worker {

inline constexpr const char* kCommandReads = "reads";  // a NumberPattern (core/command_text.hpp), or kProcessTime
inline constexpr const char* kProcessTime = "process time";

}  // namespace syslab::worker
