#include "compare/advice.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/format_seconds.hpp"
#include "core/text.hpp"
#include "measure/host_load.hpp"

namespace syslab::cli {
namespace {

constexpr double kMostLaunches = 1000;  // that --launches takes
constexpr double kPatience = 3600;      // seconds
constexpr double kMostDelta = 1000;     // percent, that --delta takes

}  // namespace

std::optional<Crowd> crowd() {
  const double load = measure::HostWatch().finish().load_average.value_or(0);
  const auto processors = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (load <= processors) return std::nullopt;
  return Crowd{load, processors};
}

std::string what_would_do(const Judgement& it, std::span<const double> launch_seconds,
                          const std::optional<Crowd>& crowd) {
  const bool known = it.low && it.high && it.log_ratio && it.launches >= kFewestLaunches && !launch_seconds.empty();
  if (it.verdict != stats::Verdict::unclear || !known) return {};
  std::string text;
  if (crowd) {
    text = fmt::format("Others wanted this machine's {} when it began (load {:.1f}): ask again when they have ended. ",
                       counted(crowd->processors, "processor"), crowd->load);
  }
  // Should the ratio stay, and the interval shrink with the square root of the launches, it leaves the nearest border.
  // A ratio that may as well be none is not counted on: then the interval must come within the borders.
  const double half = (*it.high - *it.low) / 2, border = std::log1p(it.delta);
  const double beside = std::abs(std::abs(*it.log_ratio) - border);
  const double room = *it.low < 0 && *it.high > 0 ? std::min(beside, border) : beside;
  const double wanted = std::ceil(it.launches * (half / room) * (half / room));
  const double mean =
      std::accumulate(launch_seconds.begin(), launch_seconds.end(), 0.0) / static_cast<double>(launch_seconds.size());
  if (wanted <= kMostLaunches && wanted * mean <= kPatience) {
    const double more = std::max(wanted, it.launches + 1.0);
    return text + fmt::format("At this noise some {:.0f} launches would tell: --launches {:.0f}, about {}.", more, more,
                              format_seconds(more * mean));
  }
  text += fmt::format("At this noise no number of launches that one waits for tells {:g} %", 100 * it.delta);
  const double reach = std::ceil(100 * std::expm1(std::abs(*it.log_ratio) + half));
  return text + (reach < kMostDelta ? fmt::format("; with --delta {:.0f}% these do.", reach) : ".");
}

}  // namespace syslab::cli
