#include "verdict/judgement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace syslab::verdict {
namespace {

using stats::Verdict;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return stats::quantile(values, 0.5);
}

std::optional<double> unless_nan(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

double delta_of(std::optional<double> asked, const Quantity& quantity, double seconds_a) {
  return asked.value_or(stats::default_delta(quantity.is_rate() ? 1 : seconds_a));
}

// The rules that both kinds of estimate share.
template <typename Estimate>
void conclude(Judgement& it, const Estimate& estimate, Cause few) {
  it.log_ratio = estimate.log_ratio;
  it.low = unless_nan(estimate.interval_95.low);
  it.high = unless_nan(estimate.interval_95.high);
  if (it.low) it.p_value = unless_nan(stats::p_beyond(estimate, it.delta));
  it.verdict = stats::verdict(estimate.interval_95, it.delta);
  if (it.verdict == Verdict::unclear) it.reason.cause = it.low ? Cause::across_borders : Cause::one_launch;
  if (it.launches < kFewestLaunches && (it.verdict != Verdict::unclear || few == Cause::few_stored)) {
    it.verdict = Verdict::unclear;
    it.reason.cause = few;
  }
}

}  // namespace

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::none:
      return "none";
    case Cause::nothing_measured:
      return "nothing_measured";
    case Cause::one_launch:
      return "one_launch";
    case Cause::across_borders:
      return "across_borders";
    case Cause::few_launches:
      return "few_launches";
    case Cause::few_stored:
      return "few_stored";
    case Cause::one_of_many:
      return "one_of_many";
    case Cause::same_code:
      return "same_code";
    case Cause::interrupted:
      return "interrupted";
    case Cause::out_of_time:
      return "out_of_time";
    case Cause::no_stored_time:
      return "no_stored_time";
    case Cause::slower_once:
      return "slower_once";
    case Cause::not_confirmed:
      return "not_confirmed";
    case Cause::sides:
      return "sides";
    case Cause::differing:
      return "differing";
  }
  return "none";
}

Judgement judge(const Turns& turns, std::optional<double> delta, const Quantity& quantity) {
  Judgement it;
  it.quantity = quantity;
  if (turns.blocks.empty()) {
    it.delta = delta.value_or(it.delta);
    it.reason.cause = Cause::nothing_measured;
    return it;
  }
  it.seconds_a = median(turns.calls[0]);
  it.seconds_b = median(turns.calls[1]);
  it.delta = delta_of(delta, quantity, *it.seconds_a);
  const stats::PairedEstimate estimate = stats::paired_estimate(turns.blocks);
  it.launches = static_cast<int>(estimate.launches);
  it.blocks = static_cast<int>(estimate.blocks);
  conclude(it, estimate, Cause::few_launches);
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
  conclude(it, stats::unpaired_estimate(launches_a, launches_b), Cause::few_stored);
  return it;
}

Judgement incomparable(Reason reason) {
  Judgement it;
  it.verdict = Verdict::incomparable;
  it.reason = std::move(reason);
  return it;
}

Reason differing(std::string text) { return {.cause = Cause::differing, .text = std::move(text)}; }

Judgement incomparable(std::string text) { return incomparable(differing(std::move(text))); }

Judgement incomparable(std::vector<AboutSide> sides) {
  Judgement it = incomparable(Reason{.cause = Cause::sides});
  it.sides = std::move(sides);
  return it;
}

Judgement unclear(Judgement it, Reason reason) {
  it.verdict = Verdict::unclear;
  it.reason = std::move(reason);
  it.p_value.reset();
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
    if (!it.differs() || q[i] <= kSweepLevel) continue;
    it.reason = {.cause = Cause::one_of_many, .other = it.verdict};
    it.verdict = Verdict::unclear;
  }
}

Judgement confirmed(const Judgement& first, const Judgement& again) {
  if (again.verdict == Verdict::slower || again.failed_a || again.failed_b) return again;
  Judgement it = again;
  it.reason = {.cause = Cause::slower_once, .other = again.verdict, .log_ratio = first.log_ratio.value_or(0)};
  it.verdict = Verdict::unclear;
  return it;
}

Judgement not_confirmed(const Judgement& first) {
  Judgement it = first;
  it.reason = {.cause = Cause::not_confirmed, .log_ratio = first.log_ratio.value_or(0)};
  it.verdict = Verdict::unclear;
  return it;
}

Exit exit_of(const Judgement& it, bool oom_is_an_answer) {
  Exit exit = Exit::well;
  for (const auto& failed : {it.failed_a, it.failed_b}) {
    if (failed) exit = worse(exit, exit_of(*failed, oom_is_an_answer));
  }
  const bool unsupported = it.failed_a == Status::unsupported || it.failed_b == Status::unsupported;
  if (unsupported &&
      std::ranges::count(it.warnings, stats::WarningCode::elements_unjudged, &stats::TimingWarning::code) > 0)
    return worse(exit, Exit::unclear);
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
  if (!it.differs() || !it.seconds_a || !it.seconds_b) return std::nullopt;
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

std::optional<double> differing_means(const Judgement& it, const Turns& turns) {
  if (it.verdict != Verdict::same) return std::nullopt;
  const auto mean = [](const std::vector<double>& calls) {
    return std::accumulate(calls.begin(), calls.end(), 0.0) / static_cast<double>(calls.size());
  };
  const double of_means = std::log(mean(turns.calls[1]) / mean(turns.calls[0]));
  return std::abs(of_means) > std::log1p(it.delta) ? std::optional(of_means) : std::nullopt;
}

std::optional<double> contradicting_times(const Judgement& it) {
  constexpr double kFar = 1.5;      // times
  constexpr double kNone = 0.5e-4;  // "±0.00 %" is what people read
  if (!it.log_ratio || !it.seconds_a || !it.seconds_b) return std::nullopt;
  const double of_medians = std::log(*it.seconds_b / *it.seconds_a);
  const auto shown_as_none = [](double log_ratio) { return std::abs(std::expm1(log_ratio)) < kNone; };
  const bool apart = of_medians * *it.log_ratio < 0 && !shown_as_none(of_medians) && !shown_as_none(*it.log_ratio);
  const bool outside = !it.low || !it.high || of_medians < *it.low || of_medians > *it.high;
  // However wide the interval is: whoever reads 33 and 30 ms does not expect a third of the time.
  const bool far = std::abs(of_medians - *it.log_ratio) > std::log(kFar);
  const bool counts = outside && std::abs(of_medians - *it.log_ratio) > std::log1p(it.delta);
  return apart || far || counts ? std::optional(of_medians) : std::nullopt;
}

}  // namespace syslab::verdict
