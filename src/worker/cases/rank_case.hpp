// Runs a case with several ranks, each in its own worker: set up, checked against a formula or a reference, then timed
// sample by sample with all ranks in step.
//
// An experiment fills a RankCase and calls run_rank_case() in every rank; it writes no loop of its own. The lab knows
// no communicator: the two words that ranks must exchange to stay in step are functions that the experiment gives.
//
//   rank 0      ─ refresh ─┐barrier┌─▶ call, wait ─ "verify" ─ "on" ─▶ …          the clock runs from `call` to the end
//   of rank 1      ─ refresh ─┘       └─▶ call, wait ─ "verify" ─ "on" ─▶ …          of the wait, on every rank its own
//
// Every rank takes as many samples of a series as the others, so that the host can say of each how long the slowest
// rank took. Rank 0 decides by its own samples whether to go on, and after each sample by chance whether it is
// verified; the last always is. Each rank looks through its results for NaN after every sample.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/pattern.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::worker {

struct RankSeries {
  std::string name = "time";  // of the samples and of the metric, which is their median
  // A sample is this many calls one after the other and then one wait; the time stored is that of one call.
  int calls = 1;
  std::function<void()> refresh;  // new content for the next sample, not timed; may be empty
  std::function<void()> call;     // one call, queued
  // Where a sample leaves what it computes on this rank; `refresh` fills with NaN what a call must write. Looked
  // through for NaN after every sample, outside its time. May be empty.
  std::function<std::vector<device::Elements>()> results;
  // Seconds of the last call, by whoever knows them better than the clock around it; empty: nobody.
  std::function<double()> self_time;
  // What the last sample left, after it was waited for. Asked of all ranks at the same samples: it may be collective.
  // May be empty.
  std::function<StepCheck()> verify;
  // What all samples together must have left; asked once, behind the last. May be empty.
  std::function<std::vector<StepCheck>()> verify_all;
};

struct RankRun {
  std::vector<RankSeries> series;  // the first is "time": it warms up, and is what is compared in task `paired`
  // More metrics of what has run, and what must hold in the end; may be collective. May be empty. `seconds`: this
  // rank's samples, by series in their order.
  std::function<void(CaseContext& context, const std::vector<std::vector<double>>& seconds)> tell;
  std::shared_ptr<void> owner;  // of what the functions use
};

struct RankCase {
  device::Kind device = device::Kind::cpu;
  bool in_another_process = false;  // what is timed: it computes where the request says (worker/cases/bench.hpp)
  // Rank 0's number, on all ranks. Every rank calls it; returns when all have.
  std::function<double(double own)> of_first;
  std::function<void()> barrier;
  // Comparisons before anything is timed.
  std::function<std::vector<StepCheck>(device::Stream)> check;
  std::function<RankRun(device::Stream)> start;
};

// Samples of a series in seconds and the metric of its name, their median; where all ranks do it for as many samples,
// the host adds those of the slowest rank.
void emit_series(CaseContext& context, const std::string& name, const std::vector<double>& seconds);

// What was kept of every step, of the last `count`: those before warmed up. None where there are not as many.
template <typename Kept>
std::span<const Kept> last_of(const std::vector<Kept>& steps, std::size_t count) {
  return steps.size() < count ? std::span<const Kept>{} : std::span(steps).last(count);
}

// The samples that `seconds` makes of them, each.
template <typename Kept, typename Of>
void emit_series(CaseContext& context, const std::string& name, std::span<const Kept> steps, const Of& seconds) {
  std::vector<double> samples;
  for (const Kept& one : steps) samples.push_back(seconds(one));
  emit_series(context, name, samples);
}

// In task `code` it runs the first series' call twice and emits the fact "code" of this rank alone.
// Emits check records "reference:<name>" and "samples:<series>", samples and a metric for each series, facts. Throws
// CheckFailed, Unsupported, Error.
void run_rank_case(CaseContext& context, const RankCase& rank_case);

}  // namespace syslab::worker
