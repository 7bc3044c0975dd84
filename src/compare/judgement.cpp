#include "compare/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "core/format_factor.hpp"

namespace syslab::cli {
namespace {

using stats::Verdict;

constexpr double kSweepLevel = 0.05;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return stats::quantile(values, 0.5);
}

std::optional<double> unless_nan(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

// The median over launches of the medians of the launches.
double side_seconds(std::span<const runner::PairedBlock> blocks, char side) {
  std::map<int, std::vector<double>> launches;
  for (const runner::PairedBlock& block : blocks) {
    for (std::size_t i = 0; i < block.seconds.size(); ++i) {
      if (block.order[i] == side) launches[block.launch].push_back(block.seconds[i]);
    }
  }
  std::vector<double> medians;
  for (auto& [launch, seconds] : launches) medians.push_back(median(std::move(seconds)));
  return median(std::move(medians));
}

// Three digits: a time is not more precise.
std::string three_digits(double size) { return fmt::format("{:.{}f}", size, size < 10 ? 2 : size < 100 ? 1 : 0); }

// "+200 %" is read as 2 times by many, "−98.9 %" and "−99.2 %" as about the same.
bool needs_factor(double log_ratio) { return std::abs(log_ratio) > std::log(3); }

// "9.53", "1/9.53".
std::string factor(double log_ratio) {
  return (log_ratio < 0 ? "1/" : "") + three_digits(std::exp(std::abs(log_ratio)));
}

std::string why_unclear(const Judgement& it) {
  if (!it.low) return "one launch gives no interval";
  const double margin = std::log1p(it.delta);
  const bool across_low = *it.low<-margin&& * it.high> - margin, across_high = *it.low<margin&& * it.high> margin;
  if (across_low && across_high) return fmt::format("the interval is wider than ±{:g} %", 100 * it.delta);
  return fmt::format("the interval reaches across {}{:g} %", across_low ? "−" : "+", 100 * it.delta);
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

}  // namespace

std::vector<stats::PairedBlock> for_stats(std::span<const runner::PairedBlock> blocks) {
  std::vector<stats::PairedBlock> plain;
  plain.reserve(blocks.size());
  for (const runner::PairedBlock& block : blocks) plain.push_back({block.launch, block.log_ratio});
  return plain;
}

Judgement judge(std::span<const runner::PairedBlock> blocks, std::optional<double> delta) {
  Judgement it;
  if (blocks.empty()) {
    it.delta = delta.value_or(it.delta);
    it.reason = "nothing was measured";
    return it;
  }
  it.seconds_a = side_seconds(blocks, 'A');
  it.seconds_b = side_seconds(blocks, 'B');
  it.delta = delta.value_or(stats::default_delta(*it.seconds_a));
  const stats::PairedEstimate estimate = stats::paired_estimate(for_stats(blocks));
  it.launches = static_cast<int>(estimate.launches);
  it.blocks = static_cast<int>(estimate.blocks);
  conclude(it, estimate);
  return it;
}

Judgement judge_stored(std::span<const double> launches_a, std::span<const double> launches_b,
                       std::optional<double> delta) {
  Judgement it;
  it.seconds_a = median({launches_a.begin(), launches_a.end()});
  it.seconds_b = median({launches_b.begin(), launches_b.end()});
  it.delta = delta.value_or(stats::default_delta(*it.seconds_a));
  it.launches = static_cast<int>(std::min(launches_a.size(), launches_b.size()));
  conclude(it, stats::unpaired_estimate(launches_a, launches_b));
  if (it.launches < kFewestLaunches) {
    it.reason = fmt::format("A has {}, B {} launches; a verdict takes {} of each", launches_a.size(), launches_b.size(),
                            kFewestLaunches);
  }
  return it;
}

Judgement incomparable(std::string reason) {
  Judgement it;
  it.verdict = Verdict::incomparable;
  it.reason = std::move(reason);
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
      it.reason = fmt::format("{} by itself, but among {} comparisons q = {:.2g} is above {:g}",
                              stats::to_string(it.verdict), tests, q[i], kSweepLevel);
      it.verdict = Verdict::unclear;
    }
  }
}

Exit exit_of(const Judgement& it, bool oom_is_an_answer) {
  Exit exit = Exit::well;
  for (const auto& failed : {it.failed_a, it.failed_b}) {
    if (failed) exit = worse(exit, exit_of(*failed, oom_is_an_answer));
  }
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

std::string percent(double change) {
  const double value = 100 * change;
  const std::string text = three_digits(std::abs(value));
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return fmt::format("{}{} %", zero ? "±" : value < 0 ? "−" : "+", text);
}

std::string change_text(double log_ratio) {
  if (!needs_factor(log_ratio)) return percent(std::expm1(log_ratio));
  return factor(log_ratio) + (log_ratio > 0 ? " times" : "");
}

std::string interval_text(const Judgement& it) {
  if (!it.low || !it.high) return "no interval";
  if (!needs_factor(it.log_ratio.value_or(0))) {
    return fmt::format("{} … {}", percent(std::expm1(*it.low)), percent(std::expm1(*it.high)));
  }
  return fmt::format("{} … {}{}", factor(*it.low), factor(*it.high), *it.high > 0 ? " times" : "");
}

std::string speed_text(const Judgement& it) {
  if (!it.log_ratio) return {};
  const auto speed = [](double log_ratio) { return factor_text(std::exp(-log_ratio)); };
  const std::string interval =
      it.low && it.high ? speed(*it.high) + " … " + speed(*it.low) : std::string("no interval");
  return fmt::format("{} times as fast ({})", speed(*it.log_ratio), interval);
}

std::string word_of(const Judgement& it) {
  const std::optional<worker::Status> failed = it.failed_b ? it.failed_b : it.failed_a;
  if (!failed) return std::string(stats::to_string(it.verdict));
  return *failed == worker::Status::check_failed ? "wrong" : std::string(worker::to_string(*failed));
}

std::string sentence(const Judgement& it, const std::string& a, const std::string& b) {
  const auto over = fmt::format("over {} launches a side", it.launches);
  switch (it.verdict) {
    case Verdict::faster:
    case Verdict::slower:
      if (needs_factor(*it.log_ratio)) {
        return fmt::format("{} takes {} {} {} (95 %: {}), {}.", b, change_text(*it.log_ratio),
                           *it.log_ratio > 0 ? "as long as" : "of the time of", a, interval_text(it), over);
      }
      return fmt::format("{} takes {} {} time than {} (95 %: {}), {}.", b,
                         percent(std::abs(std::expm1(*it.log_ratio))).substr(1), *it.log_ratio < 0 ? "less" : "more", a,
                         interval_text(it), over);
    case Verdict::same:
      return fmt::format("{} and {} take the same time within ±{:g} %: {} (95 %: {}), {}.", a, b, 100 * it.delta,
                         change_text(*it.log_ratio), interval_text(it), over);
    case Verdict::unclear:
      return fmt::format("No verdict on {} against {}: {}.", b, a, it.reason);
    case Verdict::incomparable:
      return fmt::format("{} and {} cannot be compared: {}.", a, b, by_name(it.reason, a, b));
  }
  return {};
}

std::string by_name(std::string reason, const std::string& a, const std::string& b) {
  for (const auto& [side, name] : {std::pair<std::string, std::string>{"side A ", a}, {"side B ", b}}) {
    if (reason.starts_with(side)) {
      reason.replace(0, side.size() - 1, name);
    } else if (const std::size_t at = reason.find("; " + side); at != std::string::npos) {
      reason.replace(at + 2, side.size() - 1, name);
    }
  }
  return reason;
}

constexpr double kFar = 1.5;  // times

std::string contradiction(const Judgement& it) {
  if (!it.log_ratio || !it.seconds_a || !it.seconds_b) return {};
  const double of_medians = std::log(*it.seconds_b / *it.seconds_a);
  const auto shown_as_none = [](double log_ratio) { return percent(std::expm1(log_ratio)).starts_with("±"); };
  const bool apart = of_medians * *it.log_ratio < 0 && !shown_as_none(of_medians) && !shown_as_none(*it.log_ratio);
  const bool outside = !it.low || !it.high || of_medians < *it.low || of_medians > *it.high;
  // However wide the interval is: whoever reads 33 and 30 ms does not expect a third of the time.
  const bool far = std::abs(of_medians - *it.log_ratio) > std::log(kFar);
  if (!apart && !far && !(outside && std::abs(of_medians - *it.log_ratio) > std::log1p(it.delta))) return {};
  return fmt::format("The two times beside it differ by {}, the ratio is {}: {}.", change_text(of_medians),
                     change_text(*it.log_ratio),
                     it.blocks > 0 ? "it is of neighbouring calls measured in turns, the times are medians of all calls"
                                   : "it is of the launches' mean, the times are of the median launch");
}

}  // namespace syslab::cli
