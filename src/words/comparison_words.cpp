#include "words/comparison_words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text/decimals.hpp"
#include "core/text/format_factor.hpp"
#include "core/text/format_seconds.hpp"
#include "core/text/text.hpp"

namespace syslab::words {
namespace {

using stats::Verdict;
using verdict::AboutSide;
using verdict::Cause;
using verdict::Judgement;
using verdict::kFewestLaunches;

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

std::string in_names(const std::vector<AboutSide>& sides, const std::string& a, const std::string& b) {
  std::string text;
  for (const AboutSide& one : sides) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", one.side == 'A' ? a : b, one.says);
  }
  return text;
}

std::string out_of_time(const Judgement& it) {
  if (it.launches == 0) {
    return fmt::format("--budget ended its first launch after {}; a verdict takes {}, so more than {}",
                       format_seconds(it.reason.seconds), kFewestLaunches,
                       format_seconds(kFewestLaunches * it.reason.seconds));
  }
  return fmt::format("--budget ended it after {}; a verdict takes {}", counted(it.launches, "launch"), kFewestLaunches);
}

std::string no_stored_time(int launches) {
  if (launches == 0) return "the pinned run holds no checked time of it; not measured";
  return fmt::format("the pinned run holds {} of it, a verdict takes {}; not measured", counted(launches, "launch"),
                     kFewestLaunches);
}

// The ratio that was measured first, printed as that of `it` is.
std::string at_first(const Judgement& it) {
  Judgement first = it;
  first.log_ratio = it.reason.log_ratio;
  return change_text(first);
}

std::string across_borders_of(const Judgement& it) {
  const Shown shown = shown_of(it);
  return across_borders({shown.low.value_or(0), shown.high.value_or(0)}, it.delta);
}

}  // namespace

std::string reason(const Judgement& it, const std::string& a, const std::string& b) {
  const verdict::Reason& why = it.reason;
  switch (why.cause) {
    case Cause::none:
      return {};
    case Cause::nothing_measured:
      return "nothing was measured";
    case Cause::one_launch:
      return "one launch gives no interval";
    case Cause::across_borders:
      return across_borders_of(it);
    case Cause::few_launches:
      return fmt::format("{} launches a side; a verdict takes {}", it.launches, kFewestLaunches);
    case Cause::few_stored:
      return fmt::format("A has {}, B {} launches; a verdict takes {} of each", it.launches_of_side[0],
                         it.launches_of_side[1], kFewestLaunches);
    case Cause::one_of_many: {
      const double q = it.q_value.value_or(1);
      return fmt::format("{} by itself, but among {} comparisons q = {} is above {:g}", stats::to_string(why.other),
                         it.tests, fixed(q, decimals_beside(q, verdict::kSweepLevel, 2)), verdict::kSweepLevel);
    }
    case Cause::same_code:
      return fmt::format("both sides are the same machine code ({}): {} of {} is noise of this machine", why.text,
                         stats::to_string(why.other), interval_text(it));
    case Cause::interrupted:
      return it.launches == 0 ? "interrupted" : fmt::format("interrupted after {}", counted(it.launches, "launch"));
    case Cause::out_of_time:
      return out_of_time(it);
    case Cause::no_stored_time:
      return no_stored_time(it.launches_of_side[0]);
    case Cause::slower_once:
      return fmt::format("slower at first ({}), {} when measured again", at_first(it), stats::to_string(why.other));
    case Cause::not_confirmed:
      return fmt::format("slower at first ({}), interrupted before it was measured again", at_first(it));
    case Cause::sides:
      return in_names(it.sides, a, b);
    case Cause::differing:
      return why.text;
  }
  return {};
}

std::string reason(const Judgement& it) { return reason(it, "side A", "side B"); }

std::string reason_or_note(const Judgement& it) { return it.reason.cause == Cause::none ? it.note : reason(it); }

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
      return fmt::format("No verdict on {} against {}: {}.", b, a, reason(it));
    case Verdict::incomparable:
      return fmt::format("{} and {} cannot be compared: {}.", a, b, reason(it, a, b));
  }
  return {};
}

std::string about_means(const Quantity& quantity, double log_ratio) {
  return fmt::format(
      "The means of all calls differ by {}; the verdict gives little weight to calls that are far longer than the "
      "rest.",
      change_text(quantity.is_rate() ? -log_ratio : log_ratio));
}

std::string contradiction(const Judgement& it) {
  const std::optional<double> of_medians = verdict::contradicting_times(it);
  if (!of_medians) return {};
  const bool rate = it.quantity.is_rate();
  const char* const what = rate ? "rates" : "times";
  return fmt::format(
      "The two {} differ by {}, but the ratio is {}: {}.", what, change_text(rate ? -*of_medians : *of_medians),
      change_text(it),
      it.blocks > 0
          ? fmt::format("the ratio is of neighbouring calls measured in turns, the {} are medians of all calls", what)
          : fmt::format("the ratio is of the launches' mean, the {} are of the median launch", what));
}

}  // namespace syslab::words
