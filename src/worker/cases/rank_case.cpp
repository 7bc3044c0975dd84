#include "worker/cases/rank_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "core/text/json_text.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/stream.hpp"
#include "measure/clock.hpp"
#include "measure/host_load.hpp"
#include "measure/protocol.hpp"
#include "measure/sampler.hpp"
#include "stats/noise.hpp"
#include "stats/summary.hpp"
#include "worker/cases/bench.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/kernel_code.hpp"
#include "worker/cases/operator_case.hpp"
#include "worker/wire/emit_times.hpp"

namespace syslab::worker {
namespace {

constexpr double kLookGrowth = 1.5;     // of the sampler: 20, 30, 45, 68, …
constexpr double kMostBurst = 1 << 20;  // samples of one burst

double relative_precision(const std::vector<double>& samples) {
  const stats::Summary summary = stats::summarize(samples);
  if (!(summary.median > 0)) return std::numeric_limits<double>::infinity();
  return (summary.median_95.high - summary.median_95.low) / 2 / summary.median;
}

// One series, taken by all ranks in step.
class Samples {
 public:
  Samples(CaseContext& context, const RankCase& rank_case, const RankSeries& series, const measure::Protocol& protocol,
          device::Stream stream)
      : context_(context),
        rank_case_(rank_case),
        series_(series),
        protocol_(protocol),
        stream_(stream),
        place_(device::place_of(stream)),
        chance_(unforeseeable_seed(context.request())) {}

  void warm_up() {
    if (protocol_.estimate_calls > 0) return warm_up_by_estimate();
    const Nanoseconds began = clock_.now();
    std::vector<double> taken;
    double in_calls = 0;
    bool enough = false;
    do {
      taken.push_back(take());
      in_calls += taken.back() * series_.calls;
      enough = static_cast<int>(taken.size()) * series_.calls >= protocol_.warmup_calls &&
               in_calls >= Seconds(protocol_.warmup_time).count();
      enough = enough || (protocol_.warmup_limit > Nanoseconds{} && clock_.now() - began >= protocol_.warmup_limit);
    } while (agreed(!enough));
    estimate_ = stats::summarize(taken).median;
    result_.warmup_calls = static_cast<std::int64_t>(taken.size()) * series_.calls;
    result_.warmup_seconds = std::move(taken);
  }

  // As triton.testing.do_bench counts, by rank 0's clock: calls of warm-up and samples follow from the mean of a few
  // calls. Without its flushes: what ranks do starts from content that was just written, or reads more than caches
  // hold.
  void warm_up_by_estimate() {
    std::vector<double> taken{take()};
    double in_estimate = 0;
    for (int call = 0; call < protocol_.estimate_calls; ++call) {
      taken.push_back(take());
      in_estimate += taken.back();
    }
    const double each = std::max(in_estimate / protocol_.estimate_calls * series_.calls, 1e-9);
    const auto counted = [this, each](Nanoseconds budget) {
      constexpr double kMost = 1e9;
      return static_cast<std::int64_t>(
          rank_case_.of_first(std::clamp(std::floor(Seconds(budget).count() / each), 1.0, kMost)));
    };
    const std::int64_t warmup = counted(protocol_.warmup_time);
    samples_wanted_ = counted(protocol_.repeat_time);
    for (std::int64_t done = 0; done < warmup; ++done) taken.push_back(take());
    estimate_ = stats::summarize(taken).median;
    result_.warmup_calls = static_cast<std::int64_t>(taken.size()) * series_.calls;
    result_.warmup_seconds = std::move(taken);
  }

  // Goes on until rank 0 says that it is enough.
  void run() {
    const Nanoseconds began = clock_.now();
    int next_look = std::min(protocol_.min_samples, protocol_.max_samples);
    do {
      sample();
      const int count = static_cast<int>(result_.seconds.size());
      const bool look = count >= next_look;
      if (look) next_look = static_cast<int>(std::ceil(next_look * kLookGrowth));
      result_.wall = clock_.now() - began - in_verification_ - in_looking_;
      result_.stop = reason_to_stop(look);
      if (look) {
        context_.progress(std::min(1.0, static_cast<double>(count) / protocol_.max_samples),
                          fmt::format("{}: {} samples", series_.name, count));
      }
    } while (agreed(result_.stop.empty()));
    if (result_.stop.empty()) result_.stop = "rank 0";
    verify_last();
    result_.precision = relative_precision(result_.seconds);
    result_.calls_per_sample = series_.calls;
  }

  // Takes one sample, and perhaps verifies its outputs.
  double sample() {
    const double seconds = take();
    result_.seconds.push_back(seconds);
    result_.in_windows += Nanoseconds(static_cast<Nanoseconds::rep>(1e9 * seconds * series_.calls));
    look_for_nans();
    is_verified_ = agreed(wants_to_verify());
    if (is_verified_) verify();
    return seconds;
  }

  // When a burst ends, at least one sample has been verified.
  void verify_any() {
    if (result_.verified == 0) verify();
  }

  // Behind the last burst: whatever began only late is in it.
  void verify_last() {
    if (!is_verified_) verify();
    if (series_.verify_all) emit_checks(context_, series_.verify_all());
  }

  void emit_verified() {
    if (worst_) context_.emit(record(*worst_, Outcome::passed));
  }

  double estimate() const { return estimate_; }
  const measure::Samples& result() const { return result_; }

 private:
  // Each rank its own results: one that fails ends the case for all.
  void look_for_nans() {
    if (!series_.results) return;
    const Nanoseconds began = clock_.now();
    const std::vector<device::Elements> results = series_.results();
    const std::int64_t found = device::first_with_nans(results, stream_);
    in_looking_ += clock_.now() - began;
    ++looked_at_;
    if (found < 0) return;
    CheckRecord wrong{.name = "samples:" + series_.name, .outcome = Outcome::falsified, .cases_run = looked_at_};
    wrong.seed = std::to_string(context_.request().seed);
    wrong.message = fmt::format("sample {} left NaN in result {} of {}: never written, or computed", looked_at_,
                                found + 1, results.size());
    context_.emit(wrong);
    throw CheckFailed(wrong.message);
  }

  // The first that is drawn, and then as long as it takes no more than a share of the time.
  bool wants_to_verify() {
    constexpr double kShareOfTime = 0.2;
    if (!series_.verify || std::uniform_real_distribution<>(0, 1)(chance_) >= protocol_.verify_share) return false;
    const Nanoseconds each = result_.verified > 0 ? in_verification_ / result_.verified : Nanoseconds{};
    return Seconds(in_verification_ + each).count() <= kShareOfTime * Seconds(clock_.now() - began_).count();
  }

  // Seconds of a call.
  double take() {
    if (series_.refresh) series_.refresh();
    device::synchronize(place_);
    rank_case_.barrier();
    const Nanoseconds began = clock_.now();
    for (int call = 0; call < series_.calls; ++call) series_.call();
    device::synchronize(place_);
    if (series_.self_time) return series_.self_time();
    return Seconds(clock_.now() - began).count() / series_.calls;
  }

  bool agreed(bool on) { return rank_case_.of_first(on ? 1 : 0) != 0; }

  std::string reason_to_stop(bool look) const {
    if (look && protocol_.precision > 0 && relative_precision(result_.seconds) <= protocol_.precision) {
      return "precision";
    }
    if (samples_wanted_ > 0 && std::ssize(result_.seconds) >= samples_wanted_) return "count";
    if (static_cast<int>(result_.seconds.size()) >= protocol_.max_samples) {
      return protocol_.precision > 0 ? "max_samples" : "count";
    }
    if (protocol_.device_budget > Nanoseconds{} && result_.in_windows >= protocol_.device_budget) {
      return "device_budget";
    }
    if (protocol_.wall_budget > Nanoseconds{} && result_.wall >= protocol_.wall_budget) return "wall_budget";
    return {};
  }

  void verify() {
    if (!series_.verify) return;
    const Nanoseconds began = clock_.now();
    const StepCheck found = series_.verify();
    in_verification_ += clock_.now() - began;
    ++result_.verified;
    if (!(found.error <= found.tolerance)) {  // a NaN is no match
      const CheckRecord wrong = record(found, Outcome::falsified);
      context_.emit(wrong);
      throw CheckFailed(wrong.message);
    }
    if (!worst_ || found.error >= worst_->error) worst_ = found;
  }

  CheckRecord record(const StepCheck& check, Outcome outcome) const {
    CheckRecord made{.name = "samples:" + series_.name, .outcome = outcome, .cases_run = result_.verified};
    made.seed = std::to_string(context_.request().seed);
    made.message =
        fmt::format("after {} of {} samples, {}: {:.3g} off, at most {:.3g} is allowed; {}", result_.verified,
                    result_.seconds.size(), check.name, check.error, check.tolerance, check.message);
    if (looked_at_ > 0) made.message += fmt::format("; {} were looked through for NaN", looked_at_);
    if (std::isfinite(check.error)) made.worst_error = check.error;
    made.tolerance = check.tolerance;
    made.fraction_checked = check.fraction;
    return made;
  }

  CaseContext& context_;
  const RankCase& rank_case_;
  const RankSeries& series_;
  const measure::Protocol& protocol_;
  device::Stream stream_;
  device::Place place_;
  measure::Clock& clock_ = measure::steady_clock();
  Nanoseconds began_ = clock_.now();
  std::mt19937_64 chance_;    // rank 0's decides
  bool is_verified_ = false;  // the last sample
  measure::Samples result_;
  double estimate_ = 0;
  std::int64_t samples_wanted_ = 0;  // by an estimate; 0: as the protocol has them
  Nanoseconds in_verification_{}, in_looking_{};
  std::int64_t looked_at_ = 0;
  std::optional<StepCheck> worst_;
};

// Task `paired`: the host says to all ranks when it is their side's turn.
void time_in_bursts(CaseContext& context, const RankCase& rank_case, const measure::Protocol& protocol,
                    Samples& samples, const Bench& bench) {
  const double one = std::max(samples.estimate(), 1e-9);
  const double wanted = std::clamp(std::round(Seconds(context.request().burst).count() / one), 1.0, kMostBurst);
  const auto calls = static_cast<std::int64_t>(rank_case.of_first(wanted));
  const std::vector<double> seconds = serve_bursts(context.bursts(), {calls, one}, [&] {
    std::vector<double> burst;
    for (std::int64_t i = 0; i < calls; ++i) burst.push_back(samples.sample());
    samples.verify_any();
    return stats::summarize(burst).median;
  });
  if (!seconds.empty()) samples.verify_last();
  samples.emit_verified();
  if (!seconds.empty()) emit_times(context, {.seconds = seconds}, {});
  Json facts{{"protocol", measure::to_json(protocol)},
             {"bursts", seconds.size()},
             {"calls_per_burst", calls},
             {"calls_per_sample", 1},
             {"warmup_calls", samples.result().warmup_calls},
             {"verified", samples.result().verified}};
  facts.update(bench.facts());
  context.emit(FactRecord{json_text(facts)});
}

// Task `code`, of what has been checked and timed in other processes.
void tell_code_of_call(CaseContext& context, const RankCase& rank_case, device::Stream stream) {
  const RankRun run = rank_case.start(stream);
  const RankSeries& series = run.series.front();
  const device::Place place = device::place_of(stream);
  const auto together = [&] {
    if (series.refresh) series.refresh();
    device::synchronize(place);
    rank_case.barrier();
  };
  tell_code(context, together, series.call, place);
  rank_case.barrier();  // whoever ends takes away what others may still need
}

}  // namespace

void emit_series(CaseContext& context, const std::string& name, const std::vector<double>& seconds) {
  context.emit(SampleRecord{.series = name, .unit = "s", .values = seconds});
  const stats::Summary summary = stats::summarize(seconds);
  MetricRecord metric{.name = name, .unit = "s", .value = summary.median, .n = summary.n};
  if (summary.n >= kFewestForInterval) {
    metric.low = summary.median_95.low;
    metric.high = summary.median_95.high;
  } else {
    metric.note = fmt::format("{} samples are too few for a 95 % interval", summary.n);
  }
  context.emit(metric);
}

void run_rank_case(CaseContext& context, const RankCase& rank_case) {
  const measure::Protocol protocol = measure::find_protocol(context.request().protocol);
  const Bench bench(context.request(), rank_case.device, rank_case.in_another_process);
  if (protocol.launch == measure::Launch::graph) {
    throw Unsupported(fmt::format(
        "protocol '{}' captures calls as a graph, which ranks that wait for each other do not allow here; use "
        "--protocol kernel",
        protocol.name));
  }
  if (context.is_code()) return tell_code_of_call(context, rank_case, bench.stream());
  if (context.world_size() > 1 && !rank_case.in_another_process) context.can_tell_code();
  context.progress(0, "checking");
  {
    const device::NvtxRange range("check");
    emit_checks(context, rank_case.check(bench.stream()));
  }
  const RankRun run = rank_case.start(bench.stream());
  const device::NvtxRange range("measure");
  const measure::HostWatch watch;
  std::vector<Samples> taken;
  for (const RankSeries& series : run.series) {
    Samples& samples = taken.emplace_back(context, rank_case, series, protocol, bench.stream());
    samples.warm_up();
    if (context.is_paired()) return time_in_bursts(context, rank_case, protocol, samples, bench);
    samples.run();
  }
  const measure::HostLoad load = watch.finish();
  // Everything is verified on this rank before its first time is sent.
  std::vector<std::vector<double>> seconds;
  for (Samples& samples : taken) {
    samples.emit_verified();
    seconds.push_back(samples.result().seconds);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (i == 0) {
      emit_times(context, taken[i].result(), {});
    } else {
      emit_series(context, run.series[i].name, seconds[i]);
    }
  }
  if (run.tell) run.tell(context, seconds);
  Json facts = timing_facts(protocol, taken.front().result(), load);
  facts.update(bench.facts());
  for (std::size_t i = 1; i < taken.size(); ++i) {
    facts[run.series[i].name] = {{"samples", taken[i].result().seconds.size()},
                                 {"calls_per_sample", run.series[i].calls},
                                 {"stop", taken[i].result().stop},
                                 {"noise", stats::noise_labels(seconds[i])},
                                 {"verified", taken[i].result().verified}};
  }
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace syslab::worker
