// Runs comparisons: launch after launch of both sides; stores every attempt when it ends and every comparison when it
// is judged. `compare`, `gate` and `doctor --noise` build on this.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/advice.hpp"
#include "compare/progress.hpp"
#include "compare/side_build.hpp"
#include "compare/turns.hpp"
#include "plan/sides.hpp"
#include "runner/interruption.hpp"
#include "runner/paired/paired.hpp"
#include "runner/paired/side_workers.hpp"
#include "session/context.hpp"
#include "session/pooled_resolution.hpp"
#include "stats/detect.hpp"
#include "store/store.hpp"

namespace syslab::cli {

inline constexpr const char* kPairedProtocol = "paired";  // the name of a comparison's protocol, as stored

// How a comparison is measured; stored with its run.
struct ComparisonConditions : runner::PairedSpec {
  std::optional<int> launches;  // nothing: until the stop rule is content
  Nanoseconds budget{};         // of the whole sweep; 0: none
  bool keeps_budget =
      false;  // to the second, if fewer than verdict::kFewestLaunches are the price; else never below them
  // When the budget began to run: with the command, which may have imported a framework to list its cases.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::optional<double> delta;   // nothing: 1 %, 2 % under 20 µs
  bool same_on_purpose = false;  // a difference between equal sides is what is asked for
  std::optional<double> border;  // a claim's, of log(B / A), in place of ±log(1 + δ)
  // How progress prints a point's title and why it failed, where both may have words of a stranger; nothing: as they
  // are.
  std::function<std::string(const std::string& title, const Params& params)> shown_title;
  std::function<std::string(const std::string& reason)> shown_reason;
};
Json to_json(const ComparisonConditions& conditions);

// One point, as measured so far. A failed or interrupted point already has its judgement.
struct MeasuredPoint {
  const plan::ComparisonPoint* point = nullptr;
  std::vector<runner::PairedBlock> blocks;  // of complete launches
  std::vector<store::ComparisonRow::Attempt> attempts;
  std::vector<double> launch_seconds;      // wall-clock time
  std::array<std::string, 2> kernel_code;  // of the sides: digests of what they ran on a GPU; empty: not known
  std::array<std::vector<double>, 2>
      clock_mhz;  // of the sides: a GPU's clock in the bursts of each launch that told it
  std::array<std::vector<double>, 2> forward_seconds;  // of the sides: untimed forward calls before timed backward ones
  std::vector<stats::TimingWarning> warnings;          // of both sides, in all launches
  std::array<PooledResolution, 2> resolution;          // of the sides
  std::optional<Crowd> crowd;  // where others wanted the processors before anything was launched
  // "precision", "launches", "budget", "max_launches", "failed", "interrupted", "under_resolution"
  std::string stop;
  Seconds cut_after{};  // of a launch that the budget ended: what it had taken by then
  std::optional<verdict::Judgement> failed;
  int launches() const { return static_cast<int>(launch_seconds.size()); }
  double seconds_per_launch() const;  // the mean; 0 of none
  double seconds_per_block() const;   // block time without start-up and warm-up
};

// Whether the times of its launches so far are the lab's own; more launches may fix that, unless it has failed.
bool is_unresolved(const MeasuredPoint& measured);
// Of a point whose times are the lab's own, over all its launches: no verdict, and no blocks to make one of. Asked when
// there will be no more launches.
void refuse_unresolved(MeasuredPoint& measured);

// Of a point that its budget left fewer than kFewestLaunches: `unclear`, and how long those would take.
void short_of_time(verdict::Judgement& judgement, const MeasuredPoint& measured);

class ComparisonSession {
 public:
  // Stores the run (two, when the sides' builds differ: an attempt belongs to the build that made it).
  ComparisonSession(const Context& context, store::Store& store, const std::string& verb, const std::string& label,
                    const plan::ComparisonPlan& plan, ComparisonConditions conditions, SideBuild a, SideBuild b);

  const std::string& run_uid() const { return run_uids_[1]; }  // side B's, to which the comparisons belong
  bool interrupted() const { return interruption_.signal() != 0; }

  // `launches` more of them, or fewer when one fails or `until` comes, which ends one without a word about its sides;
  // the attempts are stored. `expected`: how many there will be in all, for people; nothing: nobody knows. If these are
  // the last ones, refuse_unresolved() comes next.
  void launch(MeasuredPoint& measured, int launches, std::optional<int> expected,
              std::optional<std::chrono::steady_clock::time_point> until = {});
  // Launches until it is enough: `conditions.launches`, the stop rule, or the point's share of the budget.
  void finish(MeasuredPoint& measured, int points_left);

  // A point that cannot be measured: the builds differ, or a side is skipped. Nothing: it can.
  std::optional<verdict::Judgement> obstacle(const plan::ComparisonPoint& point);

  // A difference between two sides of the same machine code is noise: `unclear`, and says so.
  verdict::Judgement judged(const MeasuredPoint& measured) const;
  // Stores what was found; returns its uid. `confirms`: uid of the comparison that this one repeats.
  std::string keep(const MeasuredPoint& measured, const verdict::Judgement& judgement,
                   const std::string& confirms = {});

  // The point's title ("flash_forward causal=true seq=128") and the sides' names.
  std::string title(const plan::ComparisonPoint& point) const;
  std::string label(char side) const;
  Json side_json(const plan::ComparisonPoint& point, char side) const;

  void set_launches(int launches, int blocks_per_launch);  // after a pilot

 private:
  // Before anything is launched: how many launches there will be, and how long they will take if they take what the
  // last ones of the same case took.
  void tell_plan() const;
  void take_launches(MeasuredPoint& measured, int points_left);
  // `until`: as PairedOptions has it. False if the launch was cut then, and counts as none.
  bool launch_once(MeasuredPoint& measured, std::optional<int> expected,
                   std::optional<std::chrono::steady_clock::time_point> until);
  // How long all points will take, if every launch takes as long as the first.
  void tell_forecast(double seconds) const;
  // Where the launches to come will not tell what is asked, that; whether it was said. `seconds`: left of the budget.
  bool tell_outlook(const MeasuredPoint& measured, double seconds) const;
  verdict::Judgement judged_by_times(const MeasuredPoint& measured) const;
  void take_facts(MeasuredPoint& measured, const runner::PairedLaunch& launch);
  store::RowId begin_run(const std::string& verb, const std::string& label, char side, bool both);
  std::string store_attempt(char side, runner::AttemptResult result);
  std::string found(const MeasuredPoint& measured) const;  // so far, in words
  std::string shown_title(const plan::ComparisonPoint& point) const;
  // The digest of the code that both sides run on the same case; empty: it is not the same, or not known.
  std::string same_code(const plan::ComparisonPoint& point) const;

  const Context& context_;
  store::Store& store_;
  const plan::ComparisonPlan& plan_;
  ComparisonConditions conditions_;
  std::array<SideBuild, 2> builds_;
  std::array<store::RowId, 2> runs_{};
  std::array<std::string, 2> run_uids_;
  std::array<std::string, 2> open_attempts_;  // of the launch that runs
  runner::Interruption interruption_;
  ComparisonProgress progress_;
  runner::SideWorkers workers_;
  std::optional<Crowd> crowd_;  // before the first launch on the CPU: later a load is our own
  bool plan_told_ = false, forecast_told_ = false, crowd_asked_ = false;
};

// The launches that a decision at `effect` takes, from a pilot's blocks, in words and as data.
struct Detection {
  stats::PairedPlan plan;
  std::string text;
};
Detection detection(const MeasuredPoint& pilot, double effect, double delta);

}  // namespace syslab::cli
