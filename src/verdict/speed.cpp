#include "verdict/speed.hpp"

#include <algorithm>
#include <cmath>

#include "stats/distributions.hpp"
#include "verdict/judgement.hpp"

namespace syslab::verdict {
namespace {

constexpr double kConfidence = 0.95;

// Of log(slower / faster): positive where the claim's hero is faster.
struct Estimate {
  double log_speed = 0, standard_error = 0, dof = 0;

  double half_width(double confidence) const {
    return stats::student_t_quantile((1 + confidence) / 2, dof) * standard_error;
  }
  double low(double confidence = kConfidence) const { return log_speed - half_width(confidence); }
  double high(double confidence = kConfidence) const { return log_speed + half_width(confidence); }
};

std::optional<Estimate> estimate_of(const MeasuredSpeed& measured) {
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

// `cases`: how many are judged beside this one, for refuting.
Speed speed_of(const Estimate& estimate, double border, std::size_t cases) {
  Speed speed{std::exp(estimate.log_speed), std::exp(estimate.low()), std::exp(estimate.high()), SpeedVerdict::unclear};
  if (estimate.low() >= border - kRoundingOfRatio) {
    speed.verdict = SpeedVerdict::confirmed;
  } else if (estimate.high(confidence_of_one_in(cases)) < border - kRoundingOfRatio) {
    speed.verdict = SpeedVerdict::refuted;
  }
  return speed;
}

void conclude_every_case(SpeedFinding& finding) {
  const auto with = [&](SpeedVerdict verdict) {
    return std::ranges::find_if(finding.cases, [&](const auto& one) { return one->verdict == verdict; });
  };
  const auto least = [&](auto what) {
    return std::ranges::min_element(finding.cases, {}, what) - finding.cases.begin();
  };
  finding.unclear =
      std::ranges::count(finding.cases, SpeedVerdict::unclear, [](const auto& one) { return one->verdict; });
  finding.confirmable = finding.cases[least([](const auto& one) { return one->low; })]->low;
  if (const auto below = with(SpeedVerdict::refuted); below != finding.cases.end()) {
    finding.verdict = SpeedVerdict::refuted;
    finding.cause = SpeedCause::case_below;
    finding.about = below - finding.cases.begin();
    return;
  }
  finding.about = least([](const auto& one) { return one->factor; });
  finding.verdict = finding.unclear > 0 ? SpeedVerdict::unclear : SpeedVerdict::confirmed;
  finding.cause = finding.unclear > 0 ? SpeedCause::cases_unclear : SpeedCause::every_case;
}

}  // namespace

std::string_view to_string(SpeedVerdict verdict) {
  switch (verdict) {
    case SpeedVerdict::confirmed:
      return "confirmed";
    case SpeedVerdict::refuted:
      return "refuted";
    case SpeedVerdict::unclear:
      return "unclear";
  }
  return {};
}

std::string_view to_string(SpeedCause cause) {
  switch (cause) {
    case SpeedCause::nothing_measured:
      return "nothing_measured";
    case SpeedCause::no_time:
      return "no_time";
    case SpeedCause::case_below:
      return "case_below";
    case SpeedCause::cases_unclear:
      return "cases_unclear";
    case SpeedCause::every_case:
      return "every_case";
    case SpeedCause::mean:
      return "mean";
  }
  return {};
}

double SpeedBorder::log() const { return std::log(factor) + std::log1p(-tolerance); }

double confidence_of_one_in(std::size_t cases) { return 1 - (1 - kConfidence) / static_cast<double>(cases); }

SpeedFinding judge(const SpeedBorder& border, std::span<const MeasuredSpeed> measured) {
  SpeedFinding finding;
  if (measured.empty()) return finding;
  std::vector<Estimate> estimates;
  for (const MeasuredSpeed& one : measured) {
    const std::optional<Estimate> estimate = estimate_of(one);
    finding.cases.push_back(estimate ? std::optional(speed_of(*estimate, border.log(), measured.size()))
                                     : std::nullopt);
    if (estimate) estimates.push_back(*estimate);
  }
  // Whoever is wrong has no speed, so no claim about it holds.
  const auto wrong = std::ranges::find_if(measured, &MeasuredSpeed::faster_wrong);
  if (wrong != measured.end() || estimates.size() < measured.size()) {
    finding.cause = SpeedCause::no_time;
    finding.verdict = wrong != measured.end() ? SpeedVerdict::refuted : SpeedVerdict::unclear;
    const auto missing =
        std::ranges::find(finding.cases, false, &std::optional<Speed>::has_value) - finding.cases.begin();
    finding.about = wrong != measured.end() ? wrong - measured.begin() : missing;
    return finding;
  }
  finding.mean = speed_of(mean_of(estimates), border.log(), 1);
  if (border.quantifier == Quantifier::every_case) {
    conclude_every_case(finding);
  } else {
    finding.verdict = finding.mean->verdict;
    finding.cause = SpeedCause::mean;
    finding.confirmable = finding.mean->low;
  }
  return finding;
}

}  // namespace syslab::verdict
