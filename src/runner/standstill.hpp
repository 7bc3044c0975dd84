// Whether a process group that got SIGSTOP stands still, and stays so. The signal is only pending when kill() returns:
// a thread that computes stops within microseconds, one inside a system call when that call ends, which may be seconds
// later (a copy of gigabytes, or pages that are filled).
//
//   process.kill_group(SIGSTOP);
//   const Standstill stopped(pid, Standstill::kLimit);
//   …                                    // the other side's turn
//   if (!stopped.lasts()) drop(block);   // it ran meanwhile
#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <vector>

#include "core/text/units.hpp"

namespace syslab::runner {

class Standstill {
 public:
  static constexpr std::chrono::milliseconds kLimit{2000};

  // Waits, at most for `limit`, until every thread of the group `leader` is stopped or has ended: the leader's and
  // those of all that it has started, however many generations down. Only the processor time of what has left the group
  // is watched: SIGSTOP does not reach it.
  Standstill(pid_t leader, std::chrono::milliseconds limit);

  // False: something still ran when the limit was over, or it could not be seen whether it did (/proc with hidepid, no
  // descriptors left).
  bool reached() const { return reached_; }
  // It was reached, and since then no process has run for longer than what it takes a thread to go to sleep.
  bool lasts() const;

 private:
  Nanoseconds used(bool& complete) const;

  std::vector<clockid_t> clocks_;  // of its processes
  Nanoseconds at_stop_{};
  bool reached_ = false;
};

}  // namespace syslab::runner
