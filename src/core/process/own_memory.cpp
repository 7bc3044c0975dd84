#include "core/process/own_memory.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace syslab {

std::optional<std::uint64_t> own_memory(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field) || line.size() <= field.size() || line[field.size()] != ':') continue;
    std::istringstream rest(line.substr(field.size() + 1));
    if (std::uint64_t kibibytes = 0; rest >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

bool reset_memory_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return static_cast<bool>(file);
}

}  // namespace syslab
