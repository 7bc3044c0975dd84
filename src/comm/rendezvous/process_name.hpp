// Who a process is, to others on its host and elsewhere, and whether it still lives.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace syslab::comm {

struct ProcessName {
  std::string host;    // as people name it
  std::string system;  // the same for processes that see each other's ids: a boot and a space of process ids
  pid_t pid = 0;
  std::uint64_t start = 0;  // of the process, in ticks since boot: ids are given again

  std::string text() const;  // "pid 123 on node7"
};

ProcessName this_process();
// Told only of processes of this system; false elsewhere, where nobody can know.
bool has_ended(const ProcessName& process);

}  // namespace syslab::comm
