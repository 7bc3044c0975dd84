// Units of time, as programs and logs spell them.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace syslab {

// Seconds of one; nothing of what is no unit of time.
inline std::optional<double> seconds_of_unit(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 11> kTimes{{{"ns", 1e-9},
                                                                        {"us", 1e-6},
                                                                        {"\u00b5s", 1e-6},  // the micro sign
                                                                        {"\u03bcs", 1e-6},  // the Greek letter
                                                                        {"ms", 1e-3},
                                                                        {"s", 1},
                                                                        {"sec", 1},
                                                                        {"secs", 1},
                                                                        {"second", 1},
                                                                        {"seconds", 1},
                                                                        {"min", 60}}};
  for (const auto& [name, seconds] : kTimes) {
    if (name == unit) return seconds;
  }
  return std::nullopt;
}

}  // namespace syslab
