#include "core/process/process_stat.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace syslab {

std::optional<ProcessStat> stat_from(std::string_view text) {
  // Fields are counted from behind the second, the program's name in brackets, which may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 3 >= text.size()) return std::nullopt;
  ProcessStat stat;
  stat.state = text[name_end + 2];
  const char* at = text.data() + name_end + 3;
  const char* const end = text.data() + text.size();
  constexpr int kParent = 4, kGroup = 5, kStart = 22;
  for (int field = kParent; field <= kStart; ++field) {
    while (at != end && *at == ' ') ++at;
    std::from_chars_result got{at, std::errc()};
    if (field == kParent) got = std::from_chars(at, end, stat.parent);
    if (field == kGroup) got = std::from_chars(at, end, stat.group);
    if (field == kStart) got = std::from_chars(at, end, stat.start_ticks);
    if (got.ec != std::errc()) return std::nullopt;
    at = std::find(got.ptr, end, ' ');
  }
  return stat;
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  return stat_from(line);
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
