#include "compare/loss.hpp"

#include <fmt/format.h>

#include <cmath>

#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

// Of every step: of seven steps and a confirmation the chance that any is wrong stays below 8 %, and a wrong step ends
// in a pair of neighbours between which there is no difference, which is then said.
constexpr double kConfidence = 0.99;

std::string delta_text(const Change& change) { return fmt::format("{:g} %", 100 * change.delta); }

}  // namespace

Change change_of(std::span<const stats::PairedBlock> blocks, double seconds_of_earlier,
                 std::optional<double> asked_delta) {
  const stats::PairedEstimate estimate = stats::paired_interval(blocks, kConfidence);
  return {.log_ratio = estimate.log_ratio,
          .interval = estimate.interval_95,
          .launches = static_cast<int>(estimate.launches),
          .delta = asked_delta.value_or(stats::default_delta(seconds_of_earlier))};
}

Change change_of(const verdict::Turns& turns, std::optional<double> asked_delta) {
  return change_of(turns.blocks, verdict::judge(turns, asked_delta, {}).seconds_a.value_or(0), asked_delta);
}

Loss loss_of(const Change& change) {
  if (change.failed || change.launches < verdict::kFewestLaunches) return Loss::unclear;
  if (stats::verdict(change.interval, change.delta) == stats::Verdict::slower) return Loss::above;
  return change.interval.high <= std::log1p(change.delta) ? Loss::not_above : Loss::unclear;
}

bool is_gain(const Change& change) {
  return loss_of(change) == Loss::not_above && stats::verdict(change.interval, change.delta) == stats::Verdict::faster;
}

Answer answer_of(const Change& change, double half) {
  if (change.failed || change.launches < verdict::kFewestLaunches) return Answer::unknown;
  if (change.interval.low > half) return Answer::bad;
  return change.interval.high < half ? Answer::good : Answer::unknown;
}

bool is_part_of(const Change& change, const Change& whole) {
  return !change.failed && change.interval.low > 0 && change.interval.high < whole.interval.low;
}

std::string text_of(const Change& change) {
  return fmt::format("{} (99 %: {})", words::change_text(change.log_ratio, change.delta),
                     words::interval_text(change.log_ratio, change.interval, change.delta));
}

Doubt doubt_of(const Change& change, double border) {
  return {.half_width = (change.interval.high - change.interval.low) / 2,
          .confidence = kConfidence,
          .beside = std::abs(change.log_ratio - border),
          .launches = change.launches,
          .seconds = change.launch_seconds};
}

std::string why_unclear(const Change& change) {
  if (change.launches < verdict::kFewestLaunches) {
    return fmt::format("{} launches a side; a verdict takes {}", change.launches, verdict::kFewestLaunches);
  }
  return fmt::format("{}. {}", words::across_borders(change.interval, change.delta),
                     what_would_do(doubt_of(change, std::log1p(change.delta)), change.crowd));
}

bool is_spoiled(const Change& remembered, const std::optional<Crowd>& now) { return remembered.crowd && !now; }

std::string why_no_single(const Change& neighbours, const Change& whole) {
  return fmt::format("{}, not more than {}; {}", text_of(neighbours), delta_text(neighbours),
                     is_part_of(neighbours, whole)
                         ? fmt::format("the whole loss, {}, was made by more than one commit", text_of(whole))
                         : fmt::format("the whole loss, {}, was made by several commits, or a step of the search was "
                                       "wrong by chance",
                                       text_of(whole)));
}

std::string what_else_was_lost(const Change& neighbours, const Change& whole) {
  if (!is_part_of(neighbours, whole)) return {};
  return fmt::format("It is not the only one: the last commit against the first takes {} time.", text_of(whole));
}

}  // namespace syslab::cli
