#include "core/text/format_seconds.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text/units.hpp"

namespace syslab {
namespace {

constexpr double kMostSeconds = 9.2e9;  // 64 bits of nanoseconds

}  // namespace

std::string format_seconds(double seconds) {
  if (!(std::abs(seconds) < kMostSeconds)) return fmt::format("{} s", seconds);
  return format_duration(std::chrono::duration_cast<Nanoseconds>(Seconds(seconds)));
}

}  // namespace syslab
