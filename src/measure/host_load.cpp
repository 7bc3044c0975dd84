#include "measure/host_load.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

namespace syslab::measure {
namespace {

constexpr double kStolen = 0.01;

std::optional<ProcessorTicks> ticks_now() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return parse_processor_ticks(line);
}

int processors_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

}  // namespace

std::optional<ProcessorTicks> parse_processor_ticks(std::string_view proc_stat) {
  std::istringstream words{std::string(proc_stat)};
  std::string name;
  words >> name;
  // user nice system idle iowait irq softirq steal
  std::array<std::uint64_t, 8> ticks{};
  for (std::uint64_t& each : ticks) words >> each;
  if (name != "cpu" || !words) return std::nullopt;
  ProcessorTicks sum;
  for (const std::uint64_t each : ticks) sum.total += each;
  sum.stolen = ticks.back();
  return sum;
}

bool HostLoad::contended() const { return load_average.value_or(0) > processors || steal_share.value_or(0) > kStolen; }

HostWatch::HostWatch() : began_(ticks_now()) {}

HostLoad HostWatch::finish() const {
  HostLoad load;
  load.processors = processors_allowed();
  if (double average = 0; std::ifstream("/proc/loadavg") >> average) load.load_average = average;
  const std::optional<ProcessorTicks> now = ticks_now();
  if (began_ && now && now->total > began_->total) {
    load.steal_share =
        static_cast<double>(now->stolen - began_->stolen) / static_cast<double>(now->total - began_->total);
  }
  return load;
}

}  // namespace syslab::measure
