#include "words/speed_words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text/format_factor.hpp"
#include "core/text/quoted.hpp"

namespace syslab::words {
namespace {

using verdict::kRoundingOfRatio;
using verdict::MeasuredSpeed;
using verdict::Speed;
using verdict::SpeedBorder;
using verdict::SpeedCause;
using verdict::SpeedFinding;
using verdict::SpeedVerdict;

constexpr std::size_t kShownOfFailure = 300;  // a stranger's words may be in it

// Cut by itself, so that a title that is long leaves it the quotes that it may be in.
std::string no_time(const MeasuredSpeed& measured) {
  return in_one_run(measured.title, std::string::npos) + ": " +
         (measured.failed.empty() ? "fewer than three launches" : in_one_run(measured.failed, kShownOfFailure));
}

std::string in_words(const Speed& speed, double log_border) {
  return fmt::format("{} times as fast (95 %: {})", factor_text(speed.factor, std::exp(log_border)),
                     interval_text(speed, log_border));
}

// Of an interval below the border that refutes nothing, since it is one of several.
std::string why_not_refuted(const Speed& speed, double log_border, std::size_t cases) {
  if (speed.verdict != SpeedVerdict::unclear || std::log(speed.high) >= log_border - kRoundingOfRatio) return {};
  return fmt::format("; to refute, one of {} cases needs the {:.4g} % interval", cases,
                     100 * verdict::confidence_of_one_in(cases));
}

std::string unclear_text(const SpeedFinding& finding, std::span<const MeasuredSpeed> measured,
                         const SpeedBorder& border) {
  const Speed& least = *finding.cases[finding.about];
  if (measured.size() == 1) {
    return fmt::format("the interval reaches across {}: it is {}", border_text(border), in_words(least, border.log()));
  }
  return fmt::format("{} of {} cases are unclear at {}; the least is {} in {}{}", finding.unclear, measured.size(),
                     border_text(border), in_words(least, border.log()), measured[finding.about].title,
                     why_not_refuted(least, border.log(), measured.size()));
}

std::string mean_text(const SpeedFinding& finding, std::size_t cases, const SpeedBorder& border) {
  const std::string over = cases == 1 ? "its one case" : fmt::format("{} cases", cases);
  const std::string speed = in_words(*finding.mean, border.log());
  return finding.verdict == SpeedVerdict::unclear
             ? fmt::format("the interval of the geometric mean over {} reaches across {}: it is {}", over,
                           border_text(border), speed)
             : fmt::format("in geometric mean over {} it is {}", over, speed);
}

}  // namespace

std::string claimable_text(double factor) {
  factor *= 1 + kRoundingOfRatio;  // 1.4999999999999998 is 1.5
  const int digits = 3 - static_cast<int>(std::floor(std::log10(factor)));
  const double unit = std::pow(10, std::abs(digits));
  return fmt::format("{}", digits < 0 ? std::floor(factor / unit) * unit : std::floor(factor * unit) / unit);
}

std::string interval_text(const Speed& speed, double log_border) {
  const double border = std::exp(log_border);
  return factor_text(speed.low, border) + " … " + factor_text(speed.high, border);
}

std::string border_text(const SpeedBorder& border) {
  const double factor = std::exp(border.log());
  const std::string text = factor_text(factor, factor);
  return border.tolerance > 0 ? fmt::format("{}, {:g} % less than claimed", text, 100 * border.tolerance) : text;
}

std::string reason(const SpeedFinding& finding, std::span<const MeasuredSpeed> measured, const SpeedBorder& border) {
  switch (finding.cause) {
    case SpeedCause::nothing_measured:
      return "nothing was measured";
    case SpeedCause::no_time:
      return no_time(measured[finding.about]);
    case SpeedCause::case_below:
      return fmt::format("in {} it is {}", measured[finding.about].title,
                         in_words(*finding.cases[finding.about], border.log()));
    case SpeedCause::cases_unclear:
      return unclear_text(finding, measured, border);
    case SpeedCause::every_case: {
      const std::string least = in_words(*finding.cases[finding.about], border.log());
      return measured.size() == 1 ? "it is " + least
                                  : fmt::format("in all {} cases; the least is {}, in {}", measured.size(), least,
                                                measured[finding.about].title);
    }
    case SpeedCause::mean:
      return mean_text(finding, measured.size(), border);
  }
  return {};
}

bool is_told_whole(const SpeedFinding& finding, std::span<const MeasuredSpeed> measured, const std::string& failed) {
  return finding.cause == SpeedCause::no_time && measured[finding.about].failed == failed &&
         in_one_run(failed, kShownOfFailure) == failed;
}

}  // namespace syslab::words
