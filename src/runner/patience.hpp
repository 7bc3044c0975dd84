// Time limits for waiting for a worker, and polling intervals.
#pragma once

#include <chrono>

namespace syslab::runner {

inline constexpr std::chrono::seconds kExitingTime{2};          // from its last message to its exit
inline constexpr std::chrono::milliseconds kProgressPause{50};  // between two progress records that are passed on
// A worker that dies while a child of it holds its pipe open is noticed at a tick.
inline constexpr std::chrono::milliseconds kTick{250};

}  // namespace syslab::runner
