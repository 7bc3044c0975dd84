#include "compare/advice.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/text/format_seconds.hpp"
#include "core/text/text.hpp"
#include "measure/host_load.hpp"
#include "stats/detect.hpp"
#include "stats/distributions.hpp"
#include "stats/paired.hpp"

namespace syslab::cli {
namespace {

constexpr double kMostLaunches = 1000;  // that --launches takes
constexpr double kPatience = 3600;      // seconds
constexpr double kUsefulDelta = 0.5;    // who learns that two are the same within more has learnt nothing

// Of a part, in percent, rounded up to two digits: "5.2", "13".
std::string rounded_up(double part) {
  const double percent = 100 * part;
  if (!(percent > 0) || !std::isfinite(percent)) return fmt::format("{:g}", percent);
  const double step = std::pow(10, std::floor(std::log10(percent)) - 1);
  return fmt::format("{:.6g}", step * std::ceil(percent / step - 1e-9));
}

// The fewest launches whose interval leaves `gap` with the power of stats::plan_detection; nothing: more than one waits
// for.
std::optional<int> launches_for(double gap, const stats::PairedSpread& spread, int blocks, const Ahead& ahead) {
  for (int launches = ahead.launches + 1; launches <= kMostLaunches; ++launches) {
    if (launches * ahead.seconds_per_launch > kPatience) return std::nullopt;
    if (std::log1p(stats::smallest_detectable(0, spread, launches, blocks)) <= gap) return launches;
  }
  return std::nullopt;
}

// Whether who asked for `delta` is helped by the answer for `reach`, both as parts.
bool is_useful(double reach, double delta) { return reach <= std::max(kUsefulDelta, 2 * delta); }

std::string others_first(const Crowd& crowd) {
  return fmt::format("Others wanted this machine's {} when it began (load {:.1f}): ask again when they have ended.",
                     counted(crowd.processors, "processor"), crowd.load);
}

// The fewest launches, more than there are, whose interval will be narrower than `gap` on either side, if launches
// scatter `scatter` times as much as these did; nothing: more than one waits for.
std::optional<int> launches_within(const Doubt& it, double gap, double scatter) {
  const auto quantile = [&](int launches) { return stats::student_t_quantile((1 + it.confidence) / 2, launches - 1); };
  const double deviation = scatter * it.half_width / quantile(it.launches) * std::sqrt(it.launches);
  for (int launches = it.launches + 1; launches <= kMostLaunches; ++launches) {
    if (launches * it.seconds > kPatience) return std::nullopt;
    if (quantile(launches) * deviation / std::sqrt(launches) <= gap) return launches;
  }
  return std::nullopt;
}

std::string too_few(const Doubt& it) {
  constexpr int kUsual = stats::PairedStopRule{}.first_look;
  const std::string few = fmt::format("{} are too few for a forecast", counted(it.launches, "launch"));
  if (kUsual * it.seconds > kPatience) return few + ".";
  return fmt::format("{}; try --launches {} first, about {}.", few, kUsual, format_seconds(kUsual * it.seconds));
}

// Nothing: more than one waits for.
std::optional<std::string> launches_that_tell(const Doubt& it) {
  if (it.launches < kFewestForForecast) return too_few(it);
  const stats::SpreadRange range = stats::spread_range(it.launches - 1);
  const double error = it.half_width / stats::student_t_quantile((1 + it.confidence) / 2, it.launches - 1);
  const bool on_border = it.beside < error;
  if (on_border && it.at_rest == 0) {
    // How far from the border it is is not known, and any number of launches may be too few.
    const std::optional<int> least = launches_within(it, it.beside + error, range.least);
    if (!least) return std::nullopt;
    return fmt::format(
        "The ratio is within one standard error of the border: at this noise it takes at least {} launches, about {}, "
        "and no number is sure.",
        *least, format_seconds(*least * it.seconds));
  }
  // A ratio that may as well be none is not counted on: then the interval must come within the borders.
  const bool at_rest = it.at_rest > 0 && (on_border || it.at_rest <= it.beside);
  const double gap = at_rest ? it.at_rest : it.beside;
  const char* const condition = at_rest ? "if there is no difference" : "if the ratio stays";
  const std::optional<int> least = launches_within(it, gap, range.least), most = launches_within(it, gap, range.most);
  if (!least) return std::nullopt;
  if (!most) {
    return fmt::format("At this noise at least {} launches would tell {}, about {}.", *least, condition,
                       format_seconds(*least * it.seconds));
  }
  const std::string range_text = *least == *most ? std::to_string(*most) : fmt::format("{} to {}", *least, *most);
  return fmt::format("At this noise {} launches would tell {}: --launches {}, about {}.", range_text, condition, *most,
                     format_seconds(*most * it.seconds));
}

}  // namespace

std::optional<Crowd> crowd() {
  const double load = measure::HostWatch().finish().load_average.value_or(0);
  const auto processors = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (load <= processors) return std::nullopt;
  return Crowd{load, processors};
}

std::string busy_text(const Crowd& crowd) {
  return fmt::format("this machine is busy (load {:.1f}, {}): a call's time holds what it waits for", crowd.load,
                     counted(crowd.processors, "processor"));
}

std::string what_would_do(const Doubt& doubt, const std::optional<Crowd>& crowd) {
  if (crowd) return others_first(*crowd);
  return launches_that_tell(doubt).value_or("At this noise no number of launches that one waits for tells.");
}

std::string what_would_do(const verdict::Judgement& it, std::span<const double> launch_seconds,
                          const std::optional<Crowd>& crowd) {
  const bool known =
      it.low && it.high && it.log_ratio && it.launches >= verdict::kFewestLaunches && !launch_seconds.empty();
  if (it.verdict != stats::Verdict::unclear || !known) return {};
  const double half = (*it.high - *it.low) / 2, border = std::log1p(it.delta);
  const double seconds =
      std::accumulate(launch_seconds.begin(), launch_seconds.end(), 0.0) / static_cast<double>(launch_seconds.size());
  const bool has_none = *it.low < 0 && *it.high > 0;
  const Doubt doubt{.half_width = half,
                    .beside = std::abs(std::abs(*it.log_ratio) - border),
                    .at_rest = has_none ? border : 0,
                    .launches = it.launches,
                    .seconds = seconds};
  if (crowd || launches_that_tell(doubt)) return what_would_do(doubt, crowd);
  const std::string none =
      fmt::format("At this noise no number of launches that one waits for tells {:g} %", 100 * it.delta);
  const double reach = std::ceil(100 * std::expm1(std::abs(*it.log_ratio) + half));
  if (is_useful(reach / 100, it.delta)) return none + fmt::format("; with --delta {:.0f}% these do.", reach);
  return none +
         ", and these scatter too much for any useful --delta: measure on a quiet machine, or calls that take longer.";
}

std::string what_will_not_do(std::span<const stats::PairedBlock> blocks, double delta, const Ahead& ahead) {
  const std::vector<std::vector<double>> by_launch = stats::blocks_by_launch(blocks);
  const int launches = static_cast<int>(by_launch.size());
  if (ahead.launches <= launches || ahead.launches < verdict::kFewestLaunches || std::ssize(blocks) <= launches)
    return {};
  const int each = static_cast<int>(std::ssize(blocks)) / launches;
  // Of fewer launches only the scatter of their blocks is known. Launches differ by that, and by what is not known yet.
  const bool few = launches < verdict::kFewestLaunches;
  const stats::PairedSpread spread =
      few ? stats::PairedSpread{stats::block_spread(blocks), 0} : stats::paired_spread(blocks);
  const stats::PairedSpread least = few ? spread : stats::least_spread(spread, launches, each);
  const double ratio = stats::paired_interval(blocks).log_ratio;
  const double wanted = std::log1p(delta);
  // How far the interval's middle will be from the border that it must leave: as the ratio is so far, or if there is no
  // difference at all, whichever is the easier to tell. A ratio that is close to ±δ is no matter of noise.
  const double beside = ahead.border ? std::abs(ratio - *ahead.border) : std::max(std::abs(ratio) - wanted, wanted);
  if (beside >= stats::expected_half_width(least, ahead.launches, each)) return {};
  const double half = stats::expected_half_width(spread, ahead.launches, each);
  const std::string what = fmt::format("at this noise {} launches ({})", ahead.launches,
                                       format_seconds(ahead.launches * ahead.seconds_per_launch));
  // By the least noise: what is known of it after a few launches allows several times as many.
  const auto more = launches_for(ahead.border ? beside : wanted, least, each, ahead);
  const std::string would = more ? fmt::format("--launches {} or more would, about {}", *more,
                                               format_seconds(*more * ahead.seconds_per_launch))
                                 : "no number of launches that one waits for would";
  if (ahead.border) {
    return fmt::format(
        "{} will know the ratio to ±{} %, and so far it is {:.2g} % beside the claim's border: too few to tell; {}; it "
        "goes on unless you stop it (Ctrl-C)",
        what, rounded_up(std::expm1(half)), 100 * std::expm1(beside), would);
  }
  const double told = stats::smallest_detectable(0, spread, ahead.launches, each);
  // With that δ the interval around the ratio so far is `same`.
  const double within = std::max(told, std::expm1(std::abs(ratio) + half));
  return fmt::format("{} tell {} %{}, hardly {:g} %: {}, {}; it goes on unless you stop it (Ctrl-C)", what,
                     rounded_up(told), few ? " at best" : "", 100 * delta, would,
                     is_useful(within, delta) ? fmt::format("--delta {}% these", rounded_up(within))
                                              : "and they scatter too much for any useful --delta (a quiet machine or "
                                                "calls that take longer would help)");
}

}  // namespace syslab::cli
