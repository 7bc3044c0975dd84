#include "compare/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/text/decimals.hpp"
#include "core/text/format_factor.hpp"

namespace syslab::cli {
namespace {

using stats::Verdict;

constexpr double kSweepLevel = 0.05;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return stats::quantile(values, 0.5);
}

std::optional<double> unless_nan(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

std::vector<double> calls_of(std::span<const runner::PairedBlock> blocks, char side) {
  std::vector<double> calls;
  for (const runner::PairedBlock& block : blocks) {
    for (std::size_t i = 0; i < block.seconds.size(); ++i) {
      if (block.order[i] == side) calls.push_back(block.seconds[i]);
    }
  }
  return calls;
}

// Of three digits: a time is not more precise.
int usual_decimals(double size) { return size < 10 ? 2 : size < 100 ? 1 : 0; }

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

// "+12.3 %" of 12.3, with the sign always.
std::string signed_percent(double value, int decimals) {
  const std::string text = fixed(std::abs(value), decimals);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return fmt::format("{}{} %", zero ? "±" : value < 0 ? "−" : "+", text);
}

// "+200 %" is read as 2 times by many, "−98.9 %" and "−99.2 %" as about the same.
bool needs_factor(double log_ratio) { return std::abs(log_ratio) > std::log(3); }

// "9.53", "1/9.53".
std::string factor(double log_ratio) {
  const double size = std::exp(std::abs(log_ratio));
  return (log_ratio < 0 ? "1/" : "") + fixed(size, usual_decimals(size));
}

// The same two, with so many digits that they compare with 1 + δ, or 1/(1 + δ), as printed.
std::string factor(double log_ratio, double delta) {
  const double size = std::exp(std::abs(log_ratio));
  return (log_ratio < 0 ? "1/" : "") + fixed(size, decimals_beside(size, 1 + delta, usual_decimals(size)));
}
std::string percent_beside(double log_ratio, double delta) {
  const double change = 100 * std::expm1(log_ratio);
  const double border = 100 * std::expm1(std::copysign(std::log1p(delta), log_ratio));
  return signed_percent(change, decimals_beside(change, border, usual_decimals(std::abs(change))));
}

// Of "+2.1 %": "2.1 % more"; of "−2.1 %": "2.1 % less".
std::string more_or_less(const std::string& text, double log_ratio) {
  return text.substr(text.find_first_of("0123456789")) + (log_ratio > 0 ? " more" : " less");
}

// log(B / A) of what people read: of rates, those; and its interval.
struct Shown {
  double log_ratio = 0;
  std::optional<double> low, high;
};
Shown shown_of(const Judgement& it) {
  Shown shown{it.log_ratio.value_or(0), it.low, it.high};
  if (!it.quantity.is_rate()) return shown;
  const auto negated = [](const std::optional<double>& one) { return one ? std::optional(-*one) : std::nullopt; };
  return {-shown.log_ratio, negated(it.high), negated(it.low)};
}

double delta_of(std::optional<double> asked, const Quantity& quantity, double seconds_a) {
  return asked.value_or(stats::default_delta(quantity.is_rate() ? 1 : seconds_a));
}

std::string why_unclear(const Judgement& it) {
  const Shown shown = shown_of(it);
  return shown.low ? across_borders({*shown.low, *shown.high}, it.delta) : "one launch gives no interval";
}

// The rules that both kinds of estimate share.
template <typename Estimate>
void conclude(Judgement& it, const Estimate& estimate) {
  it.log_ratio = estimate.log_ratio;
  it.low = unless_nan(estimate.interval_95.low);
  it.high = unless_nan(estimate.interval_95.high);
  if (it.low) it.p_value = unless_nan(stats::p_beyond(estimate, it.delta));
  it.verdict = stats::verdict(estimate.interval_95, it.delta);
  if (it.verdict == Verdict::unclear) it.reason = why_unclear(it);
  if (it.launches < kFewestLaunches && it.verdict != Verdict::unclear) {
    it.verdict = Verdict::unclear;
    it.reason = fmt::format("{} launches a side; a verdict takes {}", it.launches, kFewestLaunches);
  }
}

std::string in_names(const std::vector<AboutSide>& sides, const std::string& a, const std::string& b) {
  std::string text;
  for (const AboutSide& one : sides) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", one.side == 'A' ? a : b, one.says);
  }
  return text;
}

}  // namespace

std::vector<stats::PairedBlock> for_stats(std::span<const runner::PairedBlock> blocks) {
  std::vector<stats::PairedBlock> plain;
  plain.reserve(blocks.size());
  for (const runner::PairedBlock& block : blocks) plain.push_back({block.launch, block.log_ratio});
  return plain;
}

Judgement judge(std::span<const runner::PairedBlock> blocks, std::optional<double> delta, const Quantity& quantity) {
  Judgement it;
  it.quantity = quantity;
  if (blocks.empty()) {
    it.delta = delta.value_or(it.delta);
    it.reason = "nothing was measured";
    return it;
  }
  it.seconds_a = median(calls_of(blocks, 'A'));
  it.seconds_b = median(calls_of(blocks, 'B'));
  it.delta = delta_of(delta, quantity, *it.seconds_a);
  const stats::PairedEstimate estimate = stats::paired_estimate(for_stats(blocks));
  it.launches = static_cast<int>(estimate.launches);
  it.blocks = static_cast<int>(estimate.blocks);
  conclude(it, estimate);
  return it;
}

Judgement judge_stored(std::span<const double> launches_a, std::span<const double> launches_b,
                       std::optional<double> delta, const Quantity& quantity) {
  Judgement it;
  it.quantity = quantity;
  it.seconds_a = median({launches_a.begin(), launches_a.end()});
  it.seconds_b = median({launches_b.begin(), launches_b.end()});
  it.delta = delta_of(delta, quantity, *it.seconds_a);
  it.launches_of_side = {static_cast<int>(launches_a.size()), static_cast<int>(launches_b.size())};
  it.launches = std::min(it.launches_of_side[0], it.launches_of_side[1]);
  conclude(it, stats::unpaired_estimate(launches_a, launches_b));
  if (it.launches < kFewestLaunches) {
    it.reason = fmt::format("A has {}, B {} launches; a verdict takes {} of each", launches_a.size(), launches_b.size(),
                            kFewestLaunches);
  }
  return it;
}

Judgement under_resolution(char side, const NoTime& why) {
  Judgement it = incomparable({AboutSide{side, fmt::format("{}: {}", verdict_of(why), in_words(why))}});
  it.code = why.reason;
  return it;
}

Judgement incomparable(std::string reason) {
  Judgement it;
  it.verdict = Verdict::incomparable;
  it.reason = std::move(reason);
  return it;
}

Judgement incomparable(std::vector<AboutSide> sides) {
  Judgement it = incomparable(in_names(sides, "side A", "side B"));
  it.sides = std::move(sides);
  return it;
}

void correct_for_sweep(std::span<Judgement* const> sweep) {
  std::vector<double> p;
  for (const Judgement* it : sweep) p.push_back(it->p_value.value_or(std::nan("")));
  const std::vector<double> q = stats::benjamini_hochberg(p);
  const auto tests = static_cast<int>(std::count_if(p.begin(), p.end(), [](double one) { return !std::isnan(one); }));
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    Judgement& it = *sweep[i];
    if (std::isnan(q[i])) continue;
    it.q_value = q[i];
    it.tests = tests;
    if ((it.verdict == Verdict::faster || it.verdict == Verdict::slower) && q[i] > kSweepLevel) {
      it.reason =
          fmt::format("{} by itself, but among {} comparisons q = {} is above {:g}", stats::to_string(it.verdict),
                      tests, fixed(q[i], decimals_beside(q[i], kSweepLevel, 2)), kSweepLevel);
      it.verdict = Verdict::unclear;
    }
  }
}

Exit exit_of(const Judgement& it, bool oom_is_an_answer) {
  Exit exit = Exit::well;
  for (const auto& failed : {it.failed_a, it.failed_b}) {
    if (failed) exit = worse(exit, exit_of(*failed, oom_is_an_answer));
  }
  const bool unsupported = it.failed_a == Status::unsupported || it.failed_b == Status::unsupported;
  if (unsupported && leave_unjudged(it.warnings)) return worse(exit, Exit::unclear);
  if (it.failed_a || it.failed_b) return exit;
  switch (it.verdict) {
    case Verdict::slower:
      return Exit::slower;
    case Verdict::unclear:
    case Verdict::incomparable:
      return Exit::unclear;
    case Verdict::faster:
    case Verdict::same:
      return Exit::well;
  }
  return Exit::tool;
}

std::string across_borders(const stats::Interval& log_ratio, double delta) {
  const double margin = std::log1p(delta);
  const bool low = log_ratio.low < -margin && log_ratio.high >= -margin;
  const bool high = log_ratio.low <= margin && log_ratio.high > margin;
  const std::string more = fmt::format("+{:g} %", 100 * delta);
  const std::string less = fmt::format("{} (1/{:g})", percent(std::expm1(-margin)), 1 + delta);
  if (low && high) return fmt::format("the interval reaches across both {} and {}", less, more);
  return "the interval reaches across " + (low ? less : more);
}

std::string percent(double change) { return signed_percent(100 * change, usual_decimals(100 * std::abs(change))); }

std::string change_text(double log_ratio) {
  if (!needs_factor(log_ratio)) return percent(std::expm1(log_ratio));
  return factor(log_ratio) + (log_ratio > 0 ? " times" : "");
}

std::string change_text(double log_ratio, double delta) {
  if (!needs_factor(log_ratio)) return percent_beside(log_ratio, delta);
  return factor(log_ratio, delta) + (log_ratio > 0 ? " times" : "");
}

std::string change_in_words(const Quantity& quantity, double log_ratio) {
  const double shown = quantity.is_rate() ? -log_ratio : log_ratio;
  const std::string what = quantity.is_rate() ? quantity.unit : "time";
  if (needs_factor(shown)) return fmt::format("{} {}the {}", change_text(shown), shown > 0 ? "" : "of ", what);
  return fmt::format("{} {}", more_or_less(percent(std::expm1(shown)), shown), what);
}

std::string change_text(const Judgement& it) {
  return it.log_ratio ? change_text(shown_of(it).log_ratio, it.delta) : "";
}

std::string interval_text(double log_ratio, const stats::Interval& interval, double delta) {
  const auto& [low, high] = interval;
  if (!needs_factor(log_ratio)) {
    return fmt::format("{} … {}", percent_beside(low, delta), percent_beside(high, delta));
  }
  return fmt::format("{} … {}{}", factor(low, delta), factor(high, delta), high > 0 ? " times" : "");
}

std::string interval_text(const Judgement& it) {
  const auto [log_ratio, low, high] = shown_of(it);
  return low && high ? interval_text(log_ratio, {*low, *high}, it.delta) : "no interval";
}

std::string speed_text(const Judgement& it) {
  if (!it.log_ratio) return {};
  const auto speed = [](double log_ratio) { return factor_text(std::exp(-log_ratio)); };
  const std::string interval =
      it.low && it.high ? speed(*it.high) + " … " + speed(*it.low) : std::string("no interval");
  return fmt::format("{} times as fast ({})", speed(*it.log_ratio), interval);
}

std::string word_of(const Judgement& it) {
  const std::optional<Status> failed = it.failed_b ? it.failed_b : it.failed_a;
  if (!failed) return std::string(stats::to_string(it.verdict));
  return *failed == Status::check_failed ? "wrong" : std::string(syslab::to_string(*failed));
}

std::string launches_text(const Judgement& it) {
  return it.launches_of_side[0] == it.launches_of_side[1]
             ? std::to_string(it.launches)
             : fmt::format("{}, {}", it.launches_of_side[0], it.launches_of_side[1]);
}

namespace {

// "over 3 launches a side", "over 3 launches of the pin and 5 now", "over 3 launches of A and 5 of B".
std::string over_launches(const Judgement& it, const std::string& a, const std::string& b) {
  const auto [of_a, of_b] = it.launches_of_side;
  if (of_a == of_b) return fmt::format("over {} launches a side", it.launches);
  if (a == kPinnedSide && b == kNowSide) return fmt::format("over {} launches of the pin and {} now", of_a, of_b);
  return fmt::format("over {} launches of {} and {} of {}", of_a, a, of_b, b);
}

// Of a verdict on two rates.
std::string sentence_of_rates(const Judgement& it, const std::string& a, const std::string& b) {
  const double log_ratio = shown_of(it).log_ratio;
  const std::string& unit = it.quantity.unit;
  const std::string basis = fmt::format("(95 %: {}), {}.", interval_text(it), over_launches(it, a, b));
  if (it.verdict == Verdict::same) {
    return fmt::format("{} and {} have the same {} within ±{:g} %: {} {}", a, b, unit, 100 * it.delta, change_text(it),
                       basis);
  }
  if (needs_factor(log_ratio)) {
    return fmt::format("{} has {} the {} of {} {}", b, change_text(it), unit, a, basis);
  }
  return fmt::format("{} has {} {} than {} {}", b, more_or_less(percent_beside(log_ratio, it.delta), log_ratio), unit,
                     a, basis);
}

}  // namespace

std::string sentence(const Judgement& it, const std::string& a, const std::string& b) {
  const bool has_ratio = it.verdict != Verdict::unclear && it.verdict != Verdict::incomparable;
  if (has_ratio && it.quantity.is_rate()) return sentence_of_rates(it, a, b);
  const std::string over = over_launches(it, a, b);
  switch (it.verdict) {
    case Verdict::faster:
    case Verdict::slower:
      if (needs_factor(*it.log_ratio)) {
        return fmt::format("{} takes {} {} {} (95 %: {}), {}.", b, change_text(it),
                           *it.log_ratio > 0 ? "as long as" : "of the time of", a, interval_text(it), over);
      }
      return fmt::format("{} takes {} time than {} (95 %: {}), {}.", b,
                         more_or_less(percent_beside(*it.log_ratio, it.delta), *it.log_ratio), a, interval_text(it),
                         over);
    case Verdict::same:
      return fmt::format("{} and {} take the same time within ±{:g} %: {} (95 %: {}), {}.", a, b, 100 * it.delta,
                         change_text(it), interval_text(it), over);
    case Verdict::unclear:
      return fmt::format("No verdict on {} against {}: {}.", b, a, it.reason);
    case Verdict::incomparable:
      return fmt::format("{} and {} cannot be compared: {}.", a, b, reason_by_name(it, a, b));
  }
  return {};
}

std::string reason_by_name(const Judgement& judgement, const std::string& a, const std::string& b) {
  return judgement.sides.empty() ? judgement.reason : in_names(judgement.sides, a, b);
}

namespace {

// Of each launch, the first's seconds without the second's; of the first's alone where the second's are not known. More
// than `most` counts as `most`: the judged side chooses how long its forward call takes, and a sleep in some launches
// would widen the interval that excuses it.
std::vector<stats::PairedBlock> launch_differences(const std::vector<double>& own, const std::vector<double>& other,
                                                   double most) {
  std::vector<stats::PairedBlock> differences;
  const std::size_t count = other.empty() ? own.size() : std::min(own.size(), other.size());
  for (std::size_t i = 0; i < count; ++i) {
    differences.push_back({static_cast<int>(i), std::min(own[i] - (other.empty() ? 0 : other[i]), most)});
  }
  return differences;
}

}  // namespace

std::optional<stats::TimingWarning> moved_forward(const Judgement& it,
                                                  const std::array<std::vector<double>, 2>& forward_seconds,
                                                  const std::string& a, const std::string& b) {
  constexpr double kOfTheGain = 0.25;
  const bool differs = it.verdict == Verdict::faster || it.verdict == Verdict::slower;
  if (!differs || !it.seconds_a || !it.seconds_b) return std::nullopt;
  const std::size_t faster = it.verdict == Verdict::faster ? 1 : 0;
  if (forward_seconds[faster].empty()) return std::nullopt;
  const bool known = !forward_seconds[1 - faster].empty();
  const double least =
      known ? kOfTheGain * std::abs(*it.seconds_a - *it.seconds_b) : (faster == 1 ? *it.seconds_b : *it.seconds_a);
  const stats::PairedEstimate more = stats::paired_interval(
      launch_differences(forward_seconds[faster], forward_seconds[1 - faster], least / kOfTheGain));
  // An honest side is not to be accused of noise: one launch, which has no interval, shows nothing.
  if (!(more.interval_95.low >= least)) return std::nullopt;
  const stats::PairedEstimate told =
      stats::paired_interval(launch_differences(forward_seconds[faster], forward_seconds[1 - faster], HUGE_VAL));
  return stats::TimingWarning{stats::WarningCode::forward_untimed, faster == 1 ? b : a, {}, told.log_ratio};
}

constexpr double kFar = 1.5;  // times

std::string differing_means(const Judgement& it, std::span<const runner::PairedBlock> blocks) {
  if (it.verdict != Verdict::same) return {};
  const std::vector<double> a = calls_of(blocks, 'A'), b = calls_of(blocks, 'B');
  const auto mean = [](const std::vector<double>& calls) {
    return std::accumulate(calls.begin(), calls.end(), 0.0) / static_cast<double>(calls.size());
  };
  const double of_means = std::log(mean(b) / mean(a));
  if (!(std::abs(of_means) > std::log1p(it.delta))) return {};
  return fmt::format(
      "The means of all calls differ by {}; the verdict gives little weight to calls that are far longer than the "
      "rest.",
      change_text(of_means));
}

std::string contradiction(const Judgement& it) {
  if (!it.log_ratio || !it.seconds_a || !it.seconds_b) return {};
  const double of_medians = std::log(*it.seconds_b / *it.seconds_a);
  const auto shown_as_none = [](double log_ratio) { return percent(std::expm1(log_ratio)).starts_with("±"); };
  const bool apart = of_medians * *it.log_ratio < 0 && !shown_as_none(of_medians) && !shown_as_none(*it.log_ratio);
  const bool outside = !it.low || !it.high || of_medians < *it.low || of_medians > *it.high;
  // However wide the interval is: whoever reads 33 and 30 ms does not expect a third of the time.
  const bool far = std::abs(of_medians - *it.log_ratio) > std::log(kFar);
  if (!apart && !far && !(outside && std::abs(of_medians - *it.log_ratio) > std::log1p(it.delta))) return {};
  const bool rate = it.quantity.is_rate();
  const char* const what = rate ? "rates" : "times";
  return fmt::format(
      "The two {} differ by {}, but the ratio is {}: {}.", what, change_text(rate ? -of_medians : of_medians),
      change_text(it),
      it.blocks > 0
          ? fmt::format("the ratio is of neighbouring calls measured in turns, the {} are medians of all calls", what)
          : fmt::format("the ratio is of the launches' mean, the {} are of the median launch", what));
}

}  // namespace syslab::cli
