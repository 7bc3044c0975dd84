#include "claim/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "claim/quoted.hpp"
#include "core/text/format_factor.hpp"
#include "stats/distributions.hpp"

namespace syslab::claim {
namespace {

constexpr std::size_t kShownOfFailure = 300;  // a stranger's words may be in it

constexpr double kConfidence = 0.95;
constexpr double kRounding = 1e-9;  // of a ratio of times

// Of log(slower / faster): positive where the claim's hero is faster.
struct Estimate {
  double log_speed = 0, standard_error = 0, dof = 0;

  double half_width(double confidence) const {
    return stats::student_t_quantile((1 + confidence) / 2, dof) * standard_error;
  }
  double low(double confidence = kConfidence) const { return log_speed - half_width(confidence); }
  double high(double confidence = kConfidence) const { return log_speed + half_width(confidence); }
};

std::optional<Estimate> estimate_of(const Measured& measured) {
  if (!measured.failed.empty() || measured.blocks.empty()) return std::nullopt;
  const stats::PairedEstimate paired = stats::paired_interval(measured.blocks, kConfidence);
  if (paired.launches < kFewestLaunches) return std::nullopt;
  return Estimate{-paired.log_ratio, paired.standard_error, paired.dof};
}

Estimate mean_of(const std::vector<Estimate>& cases) {
  Estimate mean;
  const auto count = static_cast<double>(cases.size());
  double variance = 0, denominator = 0;
  for (const Estimate& one : cases) {
    const double own = one.standard_error * one.standard_error;
    mean.log_speed += one.log_speed / count;
    variance += own;
    denominator += own * own / one.dof;
  }
  mean.standard_error = std::sqrt(variance) / count;
  mean.dof = denominator > 0 ? variance * variance / denominator : cases.front().dof;
  return mean;
}

// Of the interval with which one of so many cases refutes (Bonferroni).
double confidence_of_one_in(std::size_t cases) { return 1 - (1 - kConfidence) / static_cast<double>(cases); }

// `cases`: how many are judged beside this one, for refuting.
Speed speed_of(const Estimate& estimate, double border, std::size_t cases) {
  Speed speed{std::exp(estimate.log_speed), std::exp(estimate.low()), std::exp(estimate.high()), Verdict::unclear};
  if (estimate.low() >= border - kRounding) {
    speed.verdict = Verdict::confirmed;
  } else if (estimate.high(confidence_of_one_in(cases)) < border - kRounding) {
    speed.verdict = Verdict::refuted;
  }
  return speed;
}

// Cut by itself, so that a title that is long leaves it the quotes that it may be in.
std::string no_time(const Measured& measured) {
  return in_one_run(measured.title, std::string::npos) + ": " +
         (measured.failed.empty() ? "fewer than three launches" : in_one_run(measured.failed, kShownOfFailure));
}

std::string in_words(const Speed& speed, double log_border) {
  return fmt::format("{} times as fast (95 %: {})", factor_text(speed.factor, std::exp(log_border)),
                     interval_text(speed, log_border));
}

// Of an interval below the border that refutes nothing, since it is one of several.
std::string why_not_refuted(const Speed& speed, double log_border, std::size_t cases) {
  if (speed.verdict != Verdict::unclear || std::log(speed.high) >= log_border - kRounding) return {};
  return fmt::format("; to refute, one of {} cases needs the {:.4g} % interval", cases,
                     100 * confidence_of_one_in(cases));
}

void conclude_every_case(Finding& finding, std::span<const Measured> measured, double border,
                         const std::string& border_text) {
  const Speed* least = nullptr;
  std::size_t least_at = 0, unclear = 0;
  for (std::size_t i = 0; i < finding.cases.size(); ++i) {
    const Speed& speed = *finding.cases[i];
    if (speed.verdict == Verdict::unclear) ++unclear;
    if (least == nullptr || speed.factor < least->factor) least = &speed, least_at = i;
  }
  for (std::size_t i = 0; i < finding.cases.size(); ++i) {
    if (finding.cases[i]->verdict != Verdict::refuted) continue;
    finding.verdict = Verdict::refuted;
    finding.reason = fmt::format("in {} it is {}", measured[i].title, in_words(*finding.cases[i], border));
    return;
  }
  if (unclear > 0) {
    finding.reason =
        finding.cases.size() == 1
            ? fmt::format("the interval reaches across {}: it is {}", border_text, in_words(*least, border))
            : fmt::format("{} of {} cases are unclear at {}; the least is {} in {}{}", unclear, finding.cases.size(),
                          border_text, in_words(*least, border), measured[least_at].title,
                          why_not_refuted(*least, border, finding.cases.size()));
    return;
  }
  finding.verdict = Verdict::confirmed;
  const bool one = finding.cases.size() == 1;
  finding.reason = one ? "it is " + in_words(*least, border)
                       : fmt::format("in all {} cases; the least is {}, in {}", finding.cases.size(),
                                     in_words(*least, border), measured[least_at].title);
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::confirmed:
      return "confirmed";
    case Verdict::refuted:
      return "refuted";
    case Verdict::unclear:
      return "unclear";
  }
  return {};
}

std::string claimable_text(double factor) {
  factor *= 1 + kRounding;  // 1.4999999999999998 is 1.5
  const int digits = 3 - static_cast<int>(std::floor(std::log10(factor)));
  const double unit = std::pow(10, std::abs(digits));
  return fmt::format("{}", digits < 0 ? std::floor(factor / unit) * unit : std::floor(factor * unit) / unit);
}

std::string interval_text(const Speed& speed, double log_border) {
  const double border = std::exp(log_border);
  return factor_text(speed.low, border) + " … " + factor_text(speed.high, border);
}

double log_border(const Statement& statement, double tolerance) {
  return std::log(statement.factor) + std::log1p(-tolerance);
}

std::string border_text(const Statement& statement, double tolerance) {
  const double factor = std::exp(log_border(statement, tolerance));
  const std::string border = factor_text(factor, factor);
  return tolerance > 0 ? fmt::format("{}, {:g} % less than claimed", border, 100 * tolerance) : border;
}

Finding judge(const Statement& statement, std::span<const Measured> measured, double tolerance) {
  Finding finding;
  if (measured.empty()) {
    finding.reason = "nothing was measured";
    return finding;
  }
  const double border = log_border(statement, tolerance);
  std::vector<Estimate> estimates;
  std::optional<std::size_t> missing;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::optional<Estimate> estimate = estimate_of(measured[i]);
    finding.cases.push_back(estimate ? std::optional(speed_of(*estimate, border, measured.size())) : std::nullopt);
    if (estimate) {
      estimates.push_back(*estimate);
    } else if (!missing) {
      missing = i;
    }
  }
  // Whoever is wrong has no speed, so no claim about it holds.
  const auto wrong = std::ranges::find_if(measured, [](const Measured& one) { return one.faster_wrong; });
  if (wrong != measured.end()) {
    finding.verdict = Verdict::refuted;
    missing = wrong - measured.begin();
  }
  if (missing) {
    const std::string& failed = measured[*missing].failed;
    finding.reason = no_time(measured[*missing]);
    if (in_one_run(failed, kShownOfFailure) == failed) finding.told_failure = missing;
    return finding;
  }
  const Estimate mean = mean_of(estimates);
  finding.mean = speed_of(mean, border, 1);
  if (statement.quantifier == Quantifier::geometric_mean) {
    finding.of_mean = true;
    finding.verdict = finding.mean->verdict;
    const std::string over = measured.size() == 1 ? "its one case" : fmt::format("{} cases", measured.size());
    finding.reason = finding.verdict == Verdict::unclear
                         ? fmt::format("the interval of the geometric mean over {} reaches across {}: it is {}", over,
                                       border_text(statement, tolerance), in_words(*finding.mean, border))
                         : fmt::format("in geometric mean over {} it is {}", over, in_words(*finding.mean, border));
    finding.confirmable = finding.mean->low;
    return finding;
  }
  conclude_every_case(finding, measured, border, border_text(statement, tolerance));
  finding.confirmable = (*std::ranges::min_element(finding.cases, {}, [](const auto& one) { return one->low; }))->low;
  return finding;
}

}  // namespace syslab::claim
