// What Linux reports about any visible process: /proc/PID/stat (proc(5)).
//
//   const auto stat = process_stat(pid);
//   const bool same = stat && stat->runs() && stat->start_ticks == then;   // a pid is used again, with its start it is
//   not
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/text/units.hpp"

namespace syslab {

struct ProcessStat {
  char state = 0;
  pid_t parent = 0, group = 0;
  std::uint64_t start_ticks = 0;  // since boot

  bool runs() const { return state != 'Z' && state != 'X'; }  // otherwise a zombie waiting for its parent
};

// Of the text of such a file, a thread's as well; nothing if it is none.
std::optional<ProcessStat> stat_from(std::string_view text);
// Nothing if there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);

// For how long the first thread of a process ran, and was ready while others had the processors.
struct ProcessorTimes {
  Nanoseconds ran{}, waited{};
};
// Of `pid` 0, this thread. Nothing where it cannot be read.
std::optional<ProcessorTimes> processor_times(pid_t pid);

bool is_stopped(pid_t pid);  // by SIGSTOP or its like, not by a debugger

}  // namespace syslab
