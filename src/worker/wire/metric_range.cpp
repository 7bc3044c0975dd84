#include "worker/wire/metric_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/text/time_unit.hpp"

namespace syslab::worker {
namespace {

struct Range {
  std::string_view unit;
  double most;
};

// All ranges begin at 0. The upper ends: a century, all that 63 bits can address, and rates that no machine comes near.
constexpr double kCentury = 3.2e9;  // in seconds
constexpr std::array kRanges{Range{"h", kCentury / 3600}, Range{"B", 0x1p63},        Range{"KiB", 0x1p53},
                             Range{"MiB", 0x1p43},        Range{"GiB", 0x1p33},      Range{"kB", 0x1p63 / 1e3},
                             Range{"MB", 0x1p63 / 1e6},   Range{"GB", 0x1p63 / 1e9}, Range{"GB/s", 1e12},
                             Range{"TFLOP/s", 1e12},      Range{"GFLOP/s", 1e15},    Range{"Hz", 1e12}};
constexpr std::string_view kPerSecond = "/s";  // ends the unit of another rate, which is not below 0

// The upper end; nothing of a unit without one.
std::optional<double> most_of(std::string_view unit) {
  if (const std::optional<double> seconds = seconds_of_unit(unit)) return kCentury / *seconds;
  const auto* const range = std::ranges::find(kRanges, unit, &Range::unit);
  return range == kRanges.end() ? std::nullopt : std::optional(range->most);
}

std::string in_words(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

}  // namespace

std::string range_problem(std::string_view unit, double value) {
  const std::optional<double> most = most_of(unit);
  if (!most && unit.ends_with(kPerSecond)) {
    if (value >= 0 && std::isfinite(value)) return {};
    return fmt::format("{} {}; wanted: from 0 on, and finite", in_words(value), unit);
  }
  if (!most) return std::isfinite(value) ? std::string() : fmt::format("{}; wanted: a finite number", in_words(value));
  if (value >= 0 && value <= *most) return {};
  return fmt::format("{} {}; wanted: from 0 to {} {}", in_words(value), unit, *most, unit);
}

MetricRecord sendable(MetricRecord metric) {
  const auto no_number = [](const std::optional<double>& value) { return value && !std::isfinite(*value); };
  if (no_number(metric.low) || no_number(metric.high)) metric.low = metric.high = std::nullopt;
  if (!no_number(metric.value)) return metric;
  const std::string found = std::isnan(*metric.value) ? "not a number" : "infinite";
  metric.note = metric.note.empty() ? found : found + "; " + metric.note;
  metric.value = std::nullopt;
  return metric;
}

}  // namespace syslab::worker
