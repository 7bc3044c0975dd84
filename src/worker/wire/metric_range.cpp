#include "worker/wire/metric_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace syslab::worker {
namespace {

struct Range {
  std::string_view unit;
  double most;
};

// All ranges begin at 0. The upper ends: a century of seconds, all that 63 bits can address, and rates that no machine
// comes near.
constexpr std::array kRanges{Range{"s", 3.2e9},      Range{"B", 0x1p63},     Range{"GB/s", 1e12},
                             Range{"TFLOP/s", 1e12}, Range{"GFLOP/s", 1e15}, Range{"Hz", 1e12}};

std::string in_words(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

}  // namespace

std::string range_problem(std::string_view unit, double value) {
  const auto* const range = std::ranges::find(kRanges, unit, &Range::unit);
  if (range == kRanges.end()) {
    return std::isfinite(value) ? std::string() : fmt::format("{}; wanted: a finite number", in_words(value));
  }
  if (value >= 0 && value <= range->most) return {};
  return fmt::format("{} {}; wanted: from 0 to {} {}", in_words(value), unit, range->most, unit);
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
