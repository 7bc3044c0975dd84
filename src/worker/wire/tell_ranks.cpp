#include "worker/wire/tell_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/index.hpp"
#include "core/text/json_text.hpp"
#include "stats/summary.hpp"
#include "worker/wire/emit_times.hpp"

namespace syslab::worker {
namespace {

constexpr double kPhasesAgree = 50,
                 kMeetingSeconds = 1e-3;    // of phases: 2 %, and what ranks' meeting takes (call_clock.cpp)
constexpr std::size_t kStepsThatTell = 10;  // of fewer, all may have met a rank that waits for a processor
constexpr double kFewAgree = 10, kWaitSeconds = 10e-3;  // then: 9 ms of a step of 70 were left out at load 6

void emit_for_rank(CaseContext& context, std::int64_t rank, const std::string& name,
                   const std::vector<double>& seconds) {
  const int number = static_cast<int>(rank);
  context.emit(SampleRecord{.series = name, .unit = "s", .rank = number, .values = seconds});
  MetricRecord median = median_metric(name, "s", seconds);
  median.rank = number;
  context.emit(median);
}

// What emit_times() tells of rank 0, of the others: a step is one of all ranks.
void emit_same_time(CaseContext& context, std::int64_t rank, const std::vector<double>& seconds) {
  emit_for_rank(context, rank, "time", seconds);
  const stats::Summary summary = stats::summarize(seconds);
  for (const auto& [name, value] : {std::pair{"time_q1", summary.q1},
                                    {"time_q3", summary.q3},
                                    {"time_min", summary.min},
                                    {"time_mean", summary.mean},
                                    {"time_stddev", summary.standard_deviation}}) {
    context.emit(MetricRecord{.name = name, .unit = "s", .value = value, .rank = static_cast<int>(rank)});
  }
}

class Tale {
 public:
  Tale(CaseContext& context, const TimedRanks& timed, const ChannelTraining& training,
       const std::vector<double>& seconds)
      : context_(context), timed_(timed), training_(training), seconds_(seconds) {}

  void tell() {
    const double time = stats::summarize(seconds_).median;
    double parameters = 0, loss = 0;
    for (const std::int64_t one : timed_.parameters) parameters += static_cast<double>(one);
    for (const Told& one : training_.last()) loss += one.loss / static_cast<double>(training_.ranks());
    const std::string doubt = phases_apart(longest_together(), seconds_);
    if (!doubt.empty()) context_.emit(FactRecord{json_text({{"suspect", doubt}})});
    for (std::int64_t rank = 0; rank < training_.ranks(); ++rank) {
      if (rank > 0) emit_same_time(context_, rank, seconds_);
      number(rank, "tokens_per_second", "1/s", timed_.tokens * static_cast<double>(training_.ranks()) / time);
      number(rank, "parameters", "1", parameters);
      number(rank, "loss", "1", loss);
      for (const auto& [name, phase] : kPhases) {
        doubt.empty() ? series(rank, name, phase) : missing(rank, name, "s", doubt.c_str());
      }
      of_last(rank, doubt);
    }
  }

 private:
  static constexpr std::array<std::pair<const char*, double Told::*>, 4> kPhases{{{"forward", &Told::forward},
                                                                                  {"backward", &Told::backward},
                                                                                  {"exposed", &Told::exposed},
                                                                                  {"update", &Told::update}}};

  // Of each step what its phases took on the rank that tells of most.
  std::vector<double> longest_together() const {
    std::vector<double> longest(seconds_.size(), 0);
    for (std::int64_t rank = 0; rank < training_.ranks(); ++rank) {
      std::vector<double> together(seconds_.size(), 0);
      for (const auto& [name, phase] : kPhases) {
        const std::vector<double> one = values(rank, phase);
        for (std::size_t i = 0; i < one.size(); ++i) together[i] += one[i];
      }
      for (std::size_t i = 0; i < together.size(); ++i) longest[i] = std::max(longest[i], together[i]);
    }
    return longest;
  }

  std::vector<double> values(std::int64_t rank, double Told::*field) const {
    const auto& all = training_.kept();
    std::vector<double> found;
    for (std::size_t i = all.size() - std::min(all.size(), seconds_.size()); i < all.size(); ++i) {
      found.push_back(all[i][at(rank)].*field);
    }
    return found;
  }
  void series(std::int64_t rank, const char* name, double Told::*field) {
    emit_for_rank(context_, rank, name, values(rank, field));
  }
  void number(std::int64_t rank, const char* name, const char* unit, double value) {
    context_.emit(MetricRecord{.name = name, .unit = unit, .value = value, .rank = static_cast<int>(rank)});
  }
  void missing(std::int64_t rank, const char* name, const char* unit, const char* why) {
    context_.emit(MetricRecord{.name = name, .unit = unit, .note = why, .rank = static_cast<int>(rank)});
  }

  void of_last(std::int64_t rank, const std::string& doubt) {
    const Told& last = training_.last()[at(rank)];
    const std::vector<double> busy = values(rank, &Told::communicating), hidden = values(rank, &Told::hidden);
    const bool known = std::ranges::all_of(busy, [](double one) { return std::isfinite(one); });
    constexpr const char* kUnseen =
        "what travels does not go through torch.distributed's functions, or tells not when it ends";
    if (known && doubt.empty() && (last.messages > 0 || !timed_.training.at("communicates").get<bool>())) {
      emit_for_rank(context_, rank, "communicating", busy);
      double whole = 0, under = 0;
      for (std::size_t i = 0; i < busy.size(); ++i) whole += busy[i], under += hidden[i];
      number(rank, "overlapped", "1", whole > 0 ? under / whole : 0);
      number(rank, "buckets", "1", last.messages);
      number(rank, "gradient_bytes", "B", last.bytes);
    } else {
      const char* const why = doubt.empty() ? kUnseen : doubt.c_str();
      missing(rank, "communicating", "s", why);
      missing(rank, "overlapped", "1", why);
    }
    number(rank, "optimizer_bytes", "B", last.state);
    number(rank, "weight_bytes", "B", last.held);
    if (std::isfinite(last.peak)) number(rank, "peak_memory", "B", last.peak);
  }

  CaseContext& context_;
  const TimedRanks& timed_;
  const ChannelTraining& training_;
  const std::vector<double>& seconds_;
};

}  // namespace

void tell_ranks(CaseContext& context, const TimedRanks& timed, const ChannelTraining& training,
                const std::vector<double>& seconds) {
  Tale(context, timed, training, seconds).tell();
}

std::string phases_apart(std::span<const double> told, std::span<const double> times) {
  const auto low = [](std::vector<double> values) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  if (told.empty()) return {};
  const double usual = low({times.begin(), times.end()}), sum = low({told.begin(), told.end()});
  std::vector<double> missing, beyond;
  for (std::size_t i = 0; i < told.size(); ++i) {
    missing.push_back(times[i] - told[i]);
    beyond.push_back(told[i] - times[i]);
  }
  const bool few = told.size() < kStepsThatTell;
  const double allowed = few ? usual / kFewAgree + kWaitSeconds : usual / kPhasesAgree + kMeetingSeconds;
  if (low(missing) <= allowed && low(beyond) <= allowed) return {};
  const auto text = [](double seconds) {
    return format_duration(std::chrono::duration_cast<Nanoseconds>(Seconds(seconds)));
  };
  return fmt::format("its own clock tells of phases of {} together, the lab's of steps of {} (first deciles of {})",
                     text(sum), text(usual), told.size());
}

}  // namespace syslab::worker
