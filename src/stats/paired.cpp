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
#include "stats/midmean.hpp"
#include "stats/not_a_number.hpp"

namespace syslab::stats {
namespace {

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

int wanted(std::span<const double> means, const PairedStopRule& rule) {
  const int first = std::clamp(rule.first_look, 2, std::max(rule.max_launches, 2));
  if (std::ssize(means) < first) return first;
  const PairedEstimate stage = estimate_of_means(means.first(static_cast<std::size_t>(first)), 0.95);
  const double half_width = (stage.interval_95.high - stage.interval_95.low) / 2;
  const double wanted_half_width = std::max(rule.precision, rule.precision_part * std::abs(stage.log_ratio));
  const double times = half_width / wanted_half_width;
  const double launches = std::ceil(first * times * times);
  return static_cast<int>(std::clamp<double>(launches, first, std::max(rule.max_launches, first)));
}

}  // namespace

std::vector<std::vector<double>> blocks_by_launch(std::span<const PairedBlock> blocks) {
  std::vector<int> numbers;
  std::vector<std::vector<double>> launches;
  for (const PairedBlock& block : blocks) {
    const auto at = std::find(numbers.rbegin(), numbers.rend(), block.launch);  // nearly always the last
    auto index = static_cast<std::size_t>(numbers.rend() - at) - 1;
    if (at == numbers.rend()) {
      index = numbers.size();
      numbers.push_back(block.launch);
      launches.emplace_back();
    }
    launches[index].push_back(block.log_ratio);
  }
  return launches;
}

std::vector<double> launch_means(std::span<const PairedBlock> blocks) {
  std::vector<double> means;
  for (const std::vector<double>& launch : blocks_by_launch(blocks)) means.push_back(midmean(launch));
  return means;
}

double sign_flip_p(std::span<const double> d, std::uint64_t seed) {
  if (d.empty()) return kNotANumber;
  constexpr std::size_t kExact = 16;
  double observed = 0;
  double scale = 0;
  for (const double value : d) {
    observed += value;
    scale += std::abs(value);
  }
  // Sums of the same numbers in another order differ in the last bits; such ties count as ties.
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

PairedEstimate paired_interval(std::span<const PairedBlock> blocks, double confidence) {
  if (blocks.empty()) throw Error(ErrorKind::usage, "an estimate of a ratio was asked from no block; measure one");
  if (!(confidence > 0 && confidence < 1))
    throw Error(ErrorKind::usage,
                "a confidence of " + std::to_string(confidence) + " was asked; it lies between 0 and 1");
  for (const PairedBlock& block : blocks) {
    if (!std::isfinite(block.log_ratio))
      throw Error(ErrorKind::usage, "a block of launch " + std::to_string(block.launch) +
                                        " has a log ratio that is not finite: a burst took no time, or none was taken");
  }
  PairedEstimate estimate = estimate_of_means(launch_means(blocks), confidence);
  estimate.blocks = std::ssize(blocks);
  estimate.p_value = kNotANumber;
  if (estimate.launches > 1) estimate.p_t = p_of_distance(std::abs(estimate.log_ratio), estimate);
  return estimate;
}

PairedEstimate paired_estimate(std::span<const PairedBlock> blocks, double confidence) {
  PairedEstimate estimate = paired_interval(blocks, confidence);
  constexpr std::uint64_t kSeed = 0x5157'0000'0000'0001;  // any: the same data give the same p
  estimate.p_value = sign_flip_p(launch_means(blocks), kSeed);
  return estimate;
}

double p_beyond(const PairedEstimate& estimate, double delta) {
  if (estimate.launches < 2) return kNotANumber;
  const double distance = std::abs(estimate.log_ratio) - std::log1p(delta);
  return distance <= 0 ? 1 : p_of_distance(distance, estimate);
}

int launches_wanted(std::span<const PairedBlock> blocks, const PairedStopRule& rule) {
  return wanted(launch_means(blocks), rule);
}

PairedStop paired_enough(std::span<const PairedBlock> blocks, const PairedStopRule& rule) {
  const std::vector<double> means = launch_means(blocks);
  const int target = wanted(means, rule);
  if (std::ssize(means) < target) return PairedStop::go_on;
  return target < rule.max_launches ? PairedStop::precision : PairedStop::max_launches;
}

}  // namespace syslab::stats
