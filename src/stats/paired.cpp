#include "stats/paired.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "stats/distributions.hpp"

namespace syslab::stats {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

std::vector<double> launch_means(std::span<const PairedBlock> blocks) {
  std::vector<PairedBlock> by_launch(blocks.begin(), blocks.end());
  std::stable_sort(by_launch.begin(), by_launch.end(),
                   [](const PairedBlock& a, const PairedBlock& b) { return a.launch < b.launch; });
  std::vector<double> means;
  for (std::size_t begin = 0; begin < by_launch.size();) {
    double sum = 0;
    std::size_t end = begin;
    for (; end < by_launch.size() && by_launch[end].launch == by_launch[begin].launch; ++end)
      sum += by_launch[end].log_ratio;
    means.push_back(sum / static_cast<double>(end - begin));
    begin = end;
  }
  return means;
}

PairedEstimate estimate_of_means(std::span<const double> means, double confidence) {
  const auto launches = static_cast<double>(means.size());
  PairedEstimate estimate;
  estimate.launches = static_cast<std::int64_t>(means.size());
  estimate.dof = launches - 1;
  for (const double mean : means) estimate.log_ratio += mean / launches;
  if (means.size() < 2) {
    estimate.interval_95 = {kNotANumber, kNotANumber};
    estimate.standard_error = estimate.p_t = kNotANumber;
    return estimate;
  }
  double squares = 0;
  for (const double mean : means) squares += (mean - estimate.log_ratio) * (mean - estimate.log_ratio);
  estimate.standard_error = std::sqrt(squares / estimate.dof / launches);
  const double half_width = student_t_quantile((1 + confidence) / 2, estimate.dof) * estimate.standard_error;
  estimate.interval_95 = {estimate.log_ratio - half_width, estimate.log_ratio + half_width};
  return estimate;
}

// Of H0: the log ratio is `centre`.
double p_of_distance(double distance, const PairedEstimate& estimate) {
  if (estimate.standard_error > 0) return student_t_two_sided_p(distance / estimate.standard_error, estimate.dof);
  return distance == 0 ? 1 : 0;
}

}  // namespace

double sign_flip_p(std::span<const double> d, std::uint64_t seed) {
  if (d.empty()) return kNotANumber;
  constexpr std::size_t kExact = 16;
  double observed = 0;
  double scale = 0;
  for (const double value : d) {
    observed += value;
    scale += std::abs(value);
  }
  // Sums of the same numbers in another order differ in the last bits; a tie is a tie.
  const double reached = std::abs(observed) - 1e-12 * scale;
  std::uint64_t hits = 0;
  if (d.size() <= kExact) {
    // A Gray code flips one sign at a time. Flipping all signs keeps |sum|, so the last sign may stay.
    const std::uint64_t patterns = std::uint64_t{1} << (d.size() - 1);
    std::vector<double> flipped(d.begin(), d.end());
    double sum = observed;
    for (std::uint64_t pattern = 0;;) {
      if (std::abs(sum) >= reached) ++hits;
      if (++pattern == patterns) break;
      double& value = flipped[static_cast<std::size_t>(std::countr_zero(pattern))];
      sum -= 2 * value;
      value = -value;
    }
    return static_cast<double>(hits) / static_cast<double>(patterns);
  }
  constexpr std::uint64_t kDraws = 65'535;
  std::mt19937_64 generator(seed);
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    double sum = 0;
    std::uint64_t signs = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
      if (i % 64 == 0) signs = generator();
      sum += (signs >> (i % 64)) & 1 ? d[i] : -d[i];
    }
    if (std::abs(sum) >= reached) ++hits;
  }
  return static_cast<double>(hits + 1) / static_cast<double>(kDraws + 1);
}

PairedEstimate paired_estimate(std::span<const PairedBlock> blocks, double confidence) {
  if (blocks.empty()) throw Error(ErrorKind::usage, "an estimate of a ratio was asked from no block; measure one");
  if (!(confidence > 0 && confidence < 1))
    throw Error(ErrorKind::usage,
                "a confidence of " + std::to_string(confidence) + " was asked; it lies between 0 and 1");
  for (const PairedBlock& block : blocks) {
    if (!std::isfinite(block.log_ratio))
      throw Error(ErrorKind::usage, "a block of launch " + std::to_string(block.launch) +
                                        " has a log ratio that is not finite: a burst took no time, or none was taken");
  }
  const std::vector<double> means = launch_means(blocks);
  PairedEstimate estimate = estimate_of_means(means, confidence);
  estimate.blocks = static_cast<std::int64_t>(blocks.size());
  if (estimate.launches > 1) estimate.p_t = p_of_distance(std::abs(estimate.log_ratio), estimate);
  constexpr std::uint64_t kSeed = 0x5157'0000'0000'0001;  // any: the same data give the same p
  estimate.p_value = sign_flip_p(means, kSeed);
  return estimate;
}

double p_beyond(const PairedEstimate& estimate, double delta) {
  if (estimate.launches < 2) return kNotANumber;
  const double distance = std::abs(estimate.log_ratio) - std::log1p(delta);
  return distance <= 0 ? 1 : p_of_distance(distance, estimate);
}

int next_look(const PairedStopRule& rule, int launches) {
  double look = rule.first_look;
  while (static_cast<int>(look) <= launches && static_cast<int>(look) < rule.max_launches)
    look = std::max(std::floor(look * rule.growth), look + 1);
  return std::min(static_cast<int>(look), rule.max_launches);
}

PairedStop paired_enough(std::span<const PairedBlock> blocks, const PairedStopRule& rule) {
  if (blocks.empty()) return PairedStop::go_on;
  const std::vector<double> means = launch_means(blocks);
  const int launches = static_cast<int>(means.size());
  if (launches < rule.max_launches && next_look(rule, launches - 1) != launches) return PairedStop::go_on;
  const PairedEstimate estimate = estimate_of_means(means, 0.95);
  const double half_width = (estimate.interval_95.high - estimate.interval_95.low) / 2;
  if (half_width <= std::max(rule.precision, rule.precision_part * std::abs(estimate.log_ratio)))
    return PairedStop::precision;
  return launches >= rule.max_launches ? PairedStop::max_launches : PairedStop::go_on;
}

}  // namespace syslab::stats
