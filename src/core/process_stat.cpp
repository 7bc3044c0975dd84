#include "core/process_stat.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace syslab {

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // Fields are counted from behind the second, the program's name in brackets, which may hold anything.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state >> stat.parent >> stat.group;
  std::string skipped;
  for (int field = 6; field < 22; ++field) fields >> skipped;
  if (!(fields >> stat.start_ticks)) return std::nullopt;
  return stat;
}

std::optional<ProcessorTimes> processor_times(pid_t pid) {
  std::ifstream file(pid == 0 ? "/proc/thread-self/schedstat" : "/proc/" + std::to_string(pid) + "/schedstat");
  Nanoseconds::rep ran = 0, waited = 0;
  if (!(file >> ran >> waited)) return std::nullopt;
  return ProcessorTimes{Nanoseconds(ran), Nanoseconds(waited)};
}

bool is_stopped(pid_t pid) {
  const auto stat = pid > 0 ? process_stat(pid) : std::nullopt;
  return stat && stat->state == 'T';
}

}  // namespace syslab
