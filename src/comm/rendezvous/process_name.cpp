#include "comm/rendezvous/process_name.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "core/process/process_stat.hpp"

namespace syslab::comm {
namespace {

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
  if (const auto stat = process_stat(made.pid)) made.start = stat->start_ticks;
  return made;
}

bool has_ended(const ProcessName& process) {
  if (process.system != this_process().system) return false;
  const auto stat = process_stat(process.pid);
  return !stat || !stat->runs() || stat->start_ticks != process.start;
}

}  // namespace syslab::comm
