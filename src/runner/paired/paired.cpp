#include "runner/paired/paired.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "core/error.hpp"
#include "runner/paired/side.hpp"

namespace syslab::runner {
namespace {

// Of the mean over a launch's blocks: twelve launches of which each has it know their ratio to ±0.25 %.
constexpr double kFineEnough = 0.004;
// Blocks of a launch in which a side ran in the other's turn. On a busy machine something may take long to stop; what
// never stops shall not hold the comparison up.
constexpr int kMostDropped = 8;

// How a launch's blocks of one round are ordered: half one way and half the other, shuffled. With an odd number the
// extra one changes its kind from launch to launch.
std::vector<std::string> orders_of(int blocks, int launch, int round, std::uint64_t seed) {
  std::vector<std::string> orders;
  for (int block = 0; block < blocks; ++block) orders.emplace_back((block + launch) % 2 == 0 ? "ABBA" : "BAAB");
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(launch), static_cast<std::uint32_t>(round)};
  std::mt19937 generator(mixed);
  for (std::size_t i = orders.size(); i > 1; --i) std::swap(orders[i - 1], orders[generator() % i]);
  return orders;
}

double log_ratio(const PairedBlock& block) {
  double ratio = 0;
  for (std::size_t i = 0; i < block.seconds.size(); ++i) {
    ratio += (block.order[i] == 'B' ? 0.5 : -0.5) * std::log(block.seconds[i]);
  }
  return ratio;
}

bool is_function(const PairedSide& side) {
  return std::ranges::any_of(
      side.mine, [&](const Submitted& mine) { return mine.name == side.planned.implementation && mine.is_function(); });
}

class TurnTaking {
 public:
  TurnTaking(const PairedSide& a, const PairedSide& b, int number, const PairedOptions& options,
             const Observer& observer, const Interruption& interruption)
      : sides_{&a, &b},
        first_(number % 2 == 0 ? 0 : 1),
        number_(number),
        options_(options),
        observer_(observer),
        watch_(interruption, [this] { beat(); }),
        began_(Clock::now()),
        deadline_(std::min(began_ + options.timeout, options.until.value_or(Clock::time_point::max()))) {
    options_.kernel_code = number == 0;
    options_.starts_together = options.starts_together && is_function(a) && is_function(b);
  }

  PairedLaunch run() {
    if ((!options_.starts_together || start_both()) && prepare(first_) && prepare(1 - first_) && take_blocks() &&
        runs_[first_]->finish()) {
      runs_[1 - first_]->finish();
    }
    return end();
  }

 private:
  void start(int side) { runs_[side] = start_side(*sides_[side], options_, observer_, watch_, deadline_); }

  bool start_both() {
    for (const int side : {first_, 1 - first_}) start(side);
    return runs_[first_]->start() && runs_[1 - first_]->start();
  }

  bool prepare(int side) {
    if (!runs_[side]) start(side);
    asked_[side] = true;
    return runs_[side]->prepare();
  }

  // As many blocks as fit, by the time of a call in the sides' warm-ups.
  int blocks() const {
    double seconds = 0;
    for (const auto& run : runs_) {
      const worker::Ready& ready = run->ready();
      seconds += 2 * static_cast<double>(ready.calls_per_burst) * ready.seconds_per_call;
    }
    const double fitting = Seconds(options_.measuring).count() / std::max(seconds, 1e-9);
    const int most = options_.blocks_per_launch, fewest = std::min(options_.fewest_blocks, most);
    return static_cast<int>(std::clamp<double>(fitting, fewest, most));
  }

  bool take_blocks() {
    const int at_once = blocks();
    const auto begin = blocks_began_ = Clock::now();
    const auto longest = (begin - began_) / 2;
    for (int times = 0; times < (options_.may_go_on ? PairedSpec::kMostTimes : 1); ++times) {
      if (times > 0 && !(scatter() > kFineEnough && (Clock::now() - begin) * (times + 1) / times <= longest)) break;
      if (!take_blocks(orders_of(at_once, number_, times, options_.seed))) return false;
    }
    return true;
  }

  // And for the sides' last words behind it.
  bool has_time_for_another() const {
    constexpr std::chrono::milliseconds kLastWords{300};
    return !options_.until || Clock::now() + blocks_took_ / blocks_.size() + kLastWords < *options_.until;
  }

  bool has_enough() const {
    return static_cast<int>(blocks_.size()) >= options_.fewest_blocks && blocks_took_ > options_.longest;
  }

  // Standard error of the mean over the blocks so far.
  double scatter() const {
    const auto count = static_cast<double>(blocks_.size());
    double mean = 0, squares = 0;
    for (const PairedBlock& block : blocks_) mean += block.log_ratio / count;
    for (const PairedBlock& block : blocks_) squares += (block.log_ratio - mean) * (block.log_ratio - mean);
    return count < 2 ? 0 : std::sqrt(squares / (count - 1) / count);
  }

  bool take_blocks(const std::vector<std::string>& orders) {
    const std::size_t before = blocks_.size();
    for (std::size_t i = 0; i < orders.size() && (blocks_.empty() || has_time_for_another());) {
      if (before == 0 && has_enough()) break;
      const int ran = ran_[0] + ran_[1];
      PairedBlock block{.launch = number_, .block = static_cast<int>(before + i), .order = orders[i]};
      for (std::size_t slot = 0; slot < block.seconds.size(); ++slot) {
        const std::optional<double> seconds = burst(block.order[slot] == 'A' ? 0 : 1);
        if (!seconds) return false;
        block.seconds[slot] = *seconds;
      }
      if (ran_[0] + ran_[1] > ran) {
        if (++dropped_ < kMostDropped) continue;  // the same once more
        end_restless();
        return false;
      }
      ++i;
      block.log_ratio = log_ratio(block);
      blocks_.push_back(block);
      blocks_took_ = Clock::now() - blocks_began_;
      tell(before + i, before + orders.size());
    }
    return true;
  }

  // Where both ran, in about as many turns, it may be the machine that let neither stop: no side alone is named.
  void end_restless() {
    for (const int side : {0, 1}) {
      if (2 * ran_[side] >= ran_[1 - side]) runs_[side]->end_as_restless();
    }
  }

  // One side's turn; records the processor time that the other side uses meanwhile.
  std::optional<double> burst(int side) {
    const Side& idle = *runs_[1 - side];
    const Nanoseconds before = idle.cpu_time();
    const auto begin = Clock::now();
    const std::optional<double> seconds = runs_[side]->burst();
    const double wall = Seconds(Clock::now() - begin).count();
    if (!idle.stands_still()) ++ran_[1 - side];
    idle_share_[1 - side] = std::max(idle_share_[1 - side], Seconds(idle.cpu_time() - before).count() / wall);
    return seconds;
  }

  // A side that has not ended by now has the other one to thank for it.
  PairedLaunch end() {
    PairedLaunch launch;
    std::array<AttemptResult*, 2> results{&launch.a, &launch.b};
    for (const int side : {first_, 1 - first_}) {
      if (runs_[side] && runs_[side]->ended()) *results[side] = runs_[side]->result(facts(side));
    }
    for (const int side : {first_, 1 - first_}) {
      if (runs_[side] && runs_[side]->ended()) continue;
      const AttemptResult& other = *results[1 - side];
      const std::string reason =
          fmt::format("side {} ended {}: nothing to compare with", sides_[1 - side]->label, to_string(other.status));
      if (runs_[side]) runs_[side]->abandon(reason);
      *results[side] = asked_[side] ? runs_[side]->result(facts(side)) : never_started(side, other.status, reason);
    }
    launch.blocks = std::move(blocks_);
    tell_cut(launch);
    return launch;
  }

  // A side that was late for the caller's own reason has not run out of its time.
  void tell_cut(PairedLaunch& launch) const {
    const bool late = launch.a.status == Status::timeout || launch.b.status == Status::timeout;
    // A side may time out before that, as a rank does that says nothing while others wait: that is its own end.
    launch.cut = late && options_.until == deadline_ && Clock::now() >= deadline_;
    if (!launch.cut) return;
    for (AttemptResult* result : {&launch.a, &launch.b}) {
      if (result->status == Status::ok) continue;
      result->status = Status::aborted;
      result->detail = "stopped: the time for the comparison was spent";
    }
  }

  AttemptResult never_started(int side, Status other, const std::string& reason) const {
    AttemptResult result;
    result.planned = &sides_[side]->planned;
    result.status = other == Status::aborted ? Status::aborted : Status::skipped;
    result.detail = reason;
    result.started_at = result.ended_at = utc_now();
    return result;
  }

  Json facts(int side) const {
    return {{"side", sides_[side]->label},
            {"with", sides_[1 - side]->label},
            {"launch", number_},
            {"started", side == first_ ? "first" : "second"},
            {"blocks", blocks_.size()},
            {"burst_ns", options_.burst.count()},
            {"calls_per_burst", runs_[side]->ready().calls_per_burst},
            {"idle_cpu_share", idle_share_[side]},
            {"turns_it_ran_in", ran_[side]},  // of the other side's, in blocks that do not count
            {"dropped_blocks", dropped_}};
  }

  void tell(std::size_t done, std::size_t all) {
    if (!observer_.progress) return;
    const worker::ProgressRecord progress{fmt::format("block {} of {}", done, all),
                                          static_cast<double>(done) / static_cast<double>(all)};
    for (const PairedSide* side : sides_) observer_.progress(side->planned, progress);
  }

  void beat() {
    if (!observer_.heartbeat) return;
    for (const PairedSide* side : sides_) observer_.heartbeat(side->planned);
  }

  std::array<const PairedSide*, 2> sides_;
  int first_, number_;
  PairedOptions options_;
  const Observer& observer_;
  Watch watch_;
  Clock::time_point began_, deadline_, blocks_began_;
  Clock::duration blocks_took_{};  // by those so far
  std::array<std::unique_ptr<Side>, 2> runs_;
  std::array<bool, 2> asked_{};         // to do more than to start
  std::array<double, 2> idle_share_{};  // the most of one processor that a side used in the other's turn
  std::array<int, 2> ran_{};            // turns of the other side in which a side was not still
  int dropped_ = 0;                     // blocks with such a turn
  std::vector<PairedBlock> blocks_;
};

}  // namespace

PairedLaunch run_paired_launch(const PairedSide& a, const PairedSide& b, int launch, const PairedOptions& options,
                               const Observer& observer, const Interruption& interruption) {
  return TurnTaking(a, b, launch, options, observer, interruption).run();
}

}  // namespace syslab::runner
