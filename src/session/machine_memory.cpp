#include "session/this_machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/text/text.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "no limit" as a number near 2^63, version 2 as "max", which is no number.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// A group is limited by its own limit and by those of all groups above it.
void take_limits(const fs::path& mount, const fs::path& group, const char* file,
                 std::optional<std::uint64_t>& smallest) {
  fs::path at = group.relative_path();
  while (true) {
    std::ifstream stream(mount / at / file);
    if (std::uint64_t limit = 0; stream >> limit && limit > 0 && limit < kNoLimit) {
      smallest = std::min(smallest.value_or(limit), limit);
    }
    if (at.empty()) return;
    at = at.parent_path();
  }
}

}  // namespace

std::uint64_t physical_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> control_group_limit(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::optional<std::uint64_t> smallest;
  std::ifstream groups(root / "proc/self/cgroup");  // "0::/job_7" (version 2), "4:memory:/job_7" (version 1)
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      take_limits(mount, group, "memory.max", smallest);
    } else if (const auto names = split(controllers, ',');
               std::find(names.begin(), names.end(), "memory") != names.end()) {
      take_limits(mount / "memory", group, "memory.limit_in_bytes", smallest);
    }
  }
  return smallest;
}

}  // namespace syslab::cli
