#include "compare/told_delta.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace syslab::cli {
namespace {

// The step between neighbours of two digits.
double step_of(double percent) { return std::pow(10, std::floor(std::log10(percent)) - 1); }

bool is_decided(const Change& whole, double delta) {
  constexpr double kUseful = 0.5;  // who learns that the loss is not more has learnt nothing
  Change asked = whole;
  asked.delta = delta;
  return delta <= std::max(kUseful, 2 * whole.delta) && loss_of(asked) != Loss::unclear;
}

}  // namespace

std::optional<double> delta_above(const stats::Interval& log_ratio) {
  const double percent = 100 * std::expm1(log_ratio.high);
  if (!(percent > 0)) return std::nullopt;
  const double step = step_of(percent);
  return step * std::ceil(percent / step + 1e-9) / 100;
}

std::optional<double> delta_below(const stats::Interval& log_ratio) {
  const double percent = 100 * std::expm1(log_ratio.low);
  if (!(percent > 0)) return std::nullopt;
  const double step = step_of(percent);
  return step * std::floor(percent / step - 1e-9) / 100;
}

std::optional<double> delta_within(const stats::Interval& of_part, const Change& whole) {
  const std::optional<double> above = delta_above(of_part);
  return above && std::log1p(*above) < whole.interval.low ? above : std::nullopt;
}

std::string would_tell_now(const std::vector<std::optional<double>>& deltas, const Change& whole) {
  std::vector<std::string> options;
  for (const std::optional<double>& one : deltas) {
    if (one && *one > 0 && is_decided(whole, *one)) options.push_back("--delta " + delta_option(*one));
  }
  return options.empty() ? "" : fmt::format("{} would tell now.", fmt::join(options, " or "));
}

std::string delta_option(double delta) { return fmt::format("{:.6g}%", 100 * delta); }

}  // namespace syslab::cli
