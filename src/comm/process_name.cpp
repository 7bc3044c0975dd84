#include "comm/process_name.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace syslab::comm {
namespace {

// The state and the 22nd field of proc(5)'s stat: counted from behind the program's name, which may hold anything.
struct Stat {
  char state = 0;
  std::uint64_t start = 0;
};

bool read_stat(pid_t pid, Stat& stat) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return false;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  return static_cast<bool>(fields >> stat.start);
}

std::string system_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat names {};
  ::stat("/proc/self/ns/pid", &names);
  return fmt::format("{}.{}", boot, names.st_ino);
}

}  // namespace

std::string ProcessName::text() const { return fmt::format("pid {} on {}", pid, host); }

ProcessName this_process() {
  static const std::string system = system_name();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  ProcessName made{host.data(), system, ::getpid(), 0};
  if (Stat stat; read_stat(made.pid, stat)) made.start = stat.start;
  return made;
}

bool has_ended(const ProcessName& process) {
  if (process.system != this_process().system) return false;
  Stat stat;
  if (!read_stat(process.pid, stat)) return true;
  return stat.start != process.start || stat.state == 'Z' || stat.state == 'X';
}

}  // namespace syslab::comm
