// Whether the host had other load while a case was measured. A label for people and comparisons; no sample is dropped
// because of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace syslab::measure {

// Time of all processors since boot, in ticks (proc(5), /proc/stat, first line).
struct ProcessorTicks {
  std::uint64_t total = 0;   // without guest time, which user time holds already
  std::uint64_t stolen = 0;  // the hypervisor ran somebody else
};
std::optional<ProcessorTicks> parse_processor_ticks(std::string_view proc_stat);

struct HostLoad {
  std::optional<double> load_average;  // of the last minute, this case included
  std::optional<double> steal_share;   // of all processors' time during the case
  int processors = 1;                  // that this process may use

  // More wants to run than there are processors, or more than 1 % of their time went to somebody else's machine.
  bool contended() const;
};

// From construction to finish().
class HostWatch {
 public:
  HostWatch();
  HostLoad finish() const;

 private:
  std::optional<ProcessorTicks> began_;
};

}  // namespace syslab::measure
