#include "measure/rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "stats/summary.hpp"

namespace syslab::measure {
namespace {

constexpr std::size_t kSteadyWindow = 8;   // calls compared with the same number before them
constexpr double kSteadyShare = 0.01;      // their medians may differ by this much
constexpr double kMaximumCalls = 1 << 16;  // of one sample, if a call takes less than the clock can resolve
constexpr Nanoseconds kTick{1};

double median_time(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return stats::quantile(sorted, 0.5);
}

bool is_steady(const std::vector<double>& calls) {
  if (calls.size() < 2 * kSteadyWindow) return false;
  const std::span<const double> recent(calls.end() - kSteadyWindow, calls.end());
  const std::span<const double> before(calls.end() - 2 * kSteadyWindow, calls.end() - kSteadyWindow);
  const double earlier = median_time(before);
  return std::abs(median_time(recent) - earlier) <= kSteadyShare * earlier;
}

int at_least_one(Nanoseconds budget, Nanoseconds each) {
  constexpr Nanoseconds::rep kMost = 1 << 30;
  return static_cast<int>(std::clamp<Nanoseconds::rep>(budget / std::max(each, kTick), 1, kMost));
}

}  // namespace

void require_launch(const Protocol& protocol, const Device& device, bool in_another_process, bool captured_there) {
  if (protocol.launch != Launch::graph || captured_there) return;
  if (in_another_process) {
    throw Unsupported(
        fmt::format("protocol '{}' captures calls as a graph, which of what runs in another process only a library on "
                    "a GPU allows; use --protocol kernel",
                    protocol.name));
  }
  if (!device.captures_graphs()) {
    throw Unsupported(
        fmt::format("protocol '{}' needs a device that captures graphs, which the {} does not; use "
                    "--protocol kernel here, or a GPU",
                    protocol.name, device.name()));
  }
}

Rig::Rig(const Protocol& protocol, const Subject& subject, Device& device, Clock& clock, std::uint64_t random)
    : protocol_(protocol), subject_(subject), device_(device), clock_(clock), generator_(random), sets_(subject.sets) {
  require_launch(protocol, device, static_cast<bool>(subject.self_time), subject.self_graphs);
}

void Rig::warm_up() {
  if (protocol_.estimate_calls > 0) {
    warm_up_by_estimate();
  } else {
    warm_up_for_a_time();
  }
  choose_granularity();
  warm_ = true;
}

// Ends once there were enough calls, enough time in them and, if asked, no trend any more in them and in the device's
// clock rate; at the latest when warmup_limit has passed on the clock, though never before the first call. That is left
// out only for a protocol that asks for no warm-up at all and groups no calls, so that nothing wants their length: its
// first sample is the first call.
void Rig::warm_up_for_a_time() {
  if (protocol_.warmup_calls == 0 && protocol_.warmup_time == Nanoseconds{} && !protocol_.warmup_until_steady &&
      protocol_.sample_floor == Nanoseconds{}) {
    return;
  }
  std::vector<double> calls, walls;
  Nanoseconds in_calls{};
  const Nanoseconds began = clock_.now();
  const bool limited = protocol_.warmup_limit > Nanoseconds{};
  bool enough = false;
  do {
    int most = static_cast<int>(kSteadyWindow);
    if (calls.empty()) most = 1;
    if (limited) most = std::min(most, at_least_one(protocol_.warmup_limit, estimate_));
    const Nanoseconds here = clock_.now();
    const std::vector<Window> windows = time(std::min(most, room_for(1)), 1);
    keep_warmup(windows);
    for (const Window& window : windows) {
      calls.push_back(static_cast<double>(window.elapsed.count()));
      in_calls += window.elapsed;
    }
    refresh();
    walls.push_back(static_cast<double>((clock_.now() - here).count()) / static_cast<double>(windows.size()));
    const std::size_t recent = std::min(calls.size(), kSteadyWindow);
    estimate_ = Nanoseconds(std::llround(median_time(std::span(calls).last(recent))));
    const bool steady = !protocol_.warmup_until_steady || (clock_is_steady() && is_steady(calls));
    enough = steady && static_cast<int>(calls.size()) >= protocol_.warmup_calls && in_calls >= protocol_.warmup_time;
  } while (!enough && (!limited || clock_.now() - began < protocol_.warmup_limit));
  warmup_calls_ = static_cast<std::int64_t>(calls.size());
  wall_estimate_ = Nanoseconds(std::llround(median_time(walls)));
}

// A device that tells its clock rate is warm when that has stopped rising, whatever the calls look like: they get
// faster by a percent over a second, which two windows of eight calls do not show.
bool Rig::clock_is_steady() {
  constexpr auto kLeast = 2 * ClockSettling::kPairs * ClockSettling::kBetween;
  if (protocol_.warmup_limit > Nanoseconds{} && protocol_.warmup_limit < kLeast)
    return true;  // it cannot be known then
  if (const Nanoseconds now = clock_.now(); clock_rate_.due(now)) {
    const std::optional<unsigned> mhz = device_.state().sm_mhz;
    clock_rate_.take(now, mhz ? std::optional(1e6 * *mhz) : std::nullopt);
  }
  return !clock_rate_.tells() || clock_rate_.settled();
}

// The first calls show what a warm-up looks like; a fast one has hundreds of thousands.
void Rig::keep_warmup(const std::vector<Window>& windows) {
  constexpr std::size_t kKept = 200;
  for (const Window& window : windows) {
    if (warmup_seconds_.size() < kKept) warmup_seconds_.push_back(window.seconds_per_call());
  }
}

// As triton.testing.do_bench does it: the estimate includes flushes, the warm-up does not.
void Rig::warm_up_by_estimate() {
  keep_warmup(time(1, 1));
  refresh();
  const auto estimated = [this] {
    for (int i = 0; i < protocol_.estimate_calls; ++i) {
      if (subject_.flush_bytes > 0) device_.flush(subject_.flush_bytes);
      subject_.call(take_set());
    }
  };
  const Nanoseconds began = clock_.now();
  device_.queue_window(estimated);
  const Nanoseconds window = device_.collect().back().elapsed;
  // A clock in another process does not see our flushes.
  wall_estimate_ = (clock_.now() - began) / protocol_.estimate_calls;
  const Nanoseconds estimate = subject_.self_time ? wall_estimate_ : window / protocol_.estimate_calls;
  samples_wanted_ = at_least_one(protocol_.repeat_time, estimate);

  const int warmup = at_least_one(protocol_.warmup_time, estimate);
  for (int done = 0; done < warmup;) {
    const std::vector<Window> windows = time(std::min(warmup - done, room_for(1)), 1);
    keep_warmup(windows);
    done += static_cast<int>(windows.size());
    estimate_ = windows.back().elapsed;
    refresh();
  }
  warmup_calls_ = 1 + protocol_.estimate_calls + warmup;
}

// A call shorter than the floor is timed in groups, so that the cost and resolution of the clock do not matter. There
// are no more calls than sets where content counts: one that was met before could be answered from memory, and after a
// flush only the first call on a set is cold.
void Rig::choose_granularity() {
  const double one = static_cast<double>(std::max(estimate_, kTick).count());
  const double floor = static_cast<double>(protocol_.sample_floor.count());
  calls_per_sample_ = static_cast<int>(std::clamp(std::ceil(floor / one), 1.0, kMaximumCalls));
  if (subject_.self_time && calls_per_sample_ > 1) calls_per_sample_ += (calls_per_sample_ + 1) / 2;
  if (!subject_.self_time && subject_.grow) {
    if (calls_per_sample_ > sets_) sets_ = subject_.grow(calls_per_sample_);
    calls_per_sample_ = std::min(calls_per_sample_, sets_);  // each call meets content of its own
  }
  if (!subject_.self_time && subject_.flush_bytes > 0) calls_per_sample_ = std::min(calls_per_sample_, sets_);

  const bool worthwhile = protocol_.launch == Launch::graph_if_possible && calls_per_sample_ > 1 &&
                          !subject_.self_time && device_.captures_graphs();
  capture_ = worthwhile || protocol_.launch == Launch::graph;
  // A graph is bound to its sets: groups must use the same sets in every rotation, and leave few of them out.
  if (capture_ && sets_ > calls_per_sample_) calls_per_sample_ = sets_ / (sets_ / calls_per_sample_);
}

void Rig::group_at_most(int calls) {
  if (!capture_) calls_per_sample_ = std::clamp(calls_per_sample_, 1, std::max(calls, 1));
}

void Rig::rewarm() {
  for (int i = 0; i < protocol_.warmup_calls; ++i) {
    time(1, 1);
    refresh();
  }
}

std::vector<Window> Rig::time_block(int most) {
  return time(std::clamp(most, 1, room_for(calls_per_sample_)), calls_per_sample_);
}

// Samples of one block use different sets, so that the outputs of each can still be verified after the last.
int Rig::room_for(int calls) const {
  return std::max(1, std::min({protocol_.block, device_.most_windows(), sets_ / calls}));
}

int Rig::take_set() {
  const int set = next_set_;
  next_set_ = (next_set_ + 1) % sets_;
  return set;
}

// How long a group is nobody can foresee who counts its own calls: one in another process that would do less in the
// middle of a group, or other things at its end.
int Rig::length_of_group(int most) {
  if (!subject_.self_time || !warm_) return most;
  return std::uniform_int_distribution<int>((2 * most + 1) / 3, most)(generator_);
}

void Rig::begin_group(int calls) {
  if (!capture_) return;
  next_set_ = (next_set_ + calls - 1) / calls * calls;  // where a graph begins
  if (next_set_ + calls > sets_) next_set_ = 0;
}

std::vector<Window> Rig::time(int samples, int calls) {
  block_.clear();
  for (int i = 0; i < samples; ++i) {
    if (warm_ && subject_.flush_bytes > 0) device_.flush(subject_.flush_bytes);
    const int together = length_of_group(calls);
    begin_group(together);
    block_.push_back({.calls = together, .sets = queue(together)});
  }
  std::vector<Window> windows = subject_.self_time ? std::exchange(self_timed_, {}) : device_.collect();
  if (windows.size() == block_.size()) {
    for (std::size_t i = 0; i < windows.size(); ++i) windows[i].calls = block_[i].calls;
    return windows;
  }
  throw Error(ErrorKind::internal, fmt::format("device {} was given {} windows to time and told of {}", device_.name(),
                                               block_.size(), windows.size()));
}

// One sample, each call on the next set. In cold mode a set was last touched a whole rotation ago. Returns the sets
// with outputs that are still to be looked at.
std::vector<int> Rig::queue(int calls) {
  if (subject_.self_time) return call_by_call(calls);
  std::vector<int> sets;
  for (int i = 0; i < std::min(calls, sets_); ++i) sets.push_back((next_set_ + i) % sets_);
  if (Graph* graph = capture_ && calls == calls_per_sample_ ? graph_of(next_set_) : nullptr; graph != nullptr) {
    next_set_ = (next_set_ + calls) % sets_;
    device_.queue_window([graph] { graph->replay(); });
    return sets;
  }
  device_.queue_window([this, calls] {
    for (int i = 0; i < calls; ++i) subject_.call(take_set());
  });
  return sets;
}

// Each by the other process's clock, so that there is time between them for a look and new content.
std::vector<int> Rig::call_by_call(int calls) {
  Window window;
  std::optional<double> cycles = 0;
  int set = 0;
  for (int i = 0; i < calls; ++i) {
    if (i > 0) settle(set);
    set = take_set();
    subject_.call(set);
    const Nanoseconds took = subject_.self_time();
    const Window state = subject_.self_state ? subject_.self_state() : Window{};
    window.elapsed += took;
    if (subject_.self_told) window.told_seconds = window.told_seconds.value_or(0) + subject_.self_told();
    window.flags |= state.flags;
    cycles = cycles && state.clock_hz ? std::optional(*cycles + *state.clock_hz * Seconds(took).count()) : std::nullopt;
  }
  if (cycles && window.elapsed > Nanoseconds{}) window.clock_hz = *cycles / Seconds(window.elapsed).count();
  self_timed_.push_back(window);
  return {set};
}

void Rig::settle(int set) {
  if (warm_) {
    const Nanoseconds start = clock_.now();
    verify_some({&set, 1}, false);
    in_verification_ += clock_.now() - start;
  }
  if (subject_.refresh) subject_.refresh(set);
}

// Null once the work has turned out not to be capturable, which is an error only under the protocol that requires it.
Graph* Rig::graph_of(int first_set) {
  std::unique_ptr<Graph>& graph = graphs_[first_set];
  if (graph) return graph.get();
  Captured captured = device_.capture([&] {
    for (int i = 0; i < calls_per_sample_; ++i) subject_.call((first_set + i) % sets_);
  });
  graph = std::move(captured.graph);
  if (graph) return graph.get();
  if (protocol_.launch == Launch::graph) {
    throw Unsupported(
        fmt::format("protocol '{}': this implementation's calls cannot be captured as a graph on {}: {}; use "
                    "--protocol kernel",
                    protocol_.name, device_.name(), captured.why));
  }
  capture_ = false;
  why_not_captured_ = std::move(captured.why);
  return nullptr;
}

void Rig::verify(bool last) {
  const Nanoseconds start = clock_.now();
  std::vector<int> sets;
  for (const Queued& sample : block_) sets.insert(sets.end(), sample.sets.begin(), sample.sets.end());
  verify_some(sets, last);
  in_verification_ += clock_.now() - start;
}

// The call to verify is drawn after it, so that no implementation can know which of its calls will be compared. One
// that is right until a slow oracle has used up its time, and does nothing from then on, is met in the last block: at
// the end a call of the later half must have been compared, whatever that costs.
void Rig::verify_some(std::span<const int> sets, bool last) {
  if (subject_.look && !sets.empty()) subject_.look(sets);
  const double share = subject_.verify_share.value_or(protocol_.verify_share);
  for (std::size_t i = 0; subject_.verify && i < sets.size(); ++i) {
    ++taken_;
    const bool chosen = std::uniform_real_distribution<>(0, 1)(generator_) < share;
    const bool due = last && i + 1 == sets.size() && 2 * last_verified_ < taken_;
    if (!chosen && !due) continue;
    const auto& compare = due && subject_.verify_anyway ? subject_.verify_anyway : subject_.verify;
    if (!compare(sets[i])) continue;
    ++verified_;
    last_verified_ = taken_;
  }
}

// New content for the sets just used: by their next turn they are no longer in the caches.
void Rig::refresh() {
  for (const Queued& sample : block_) {
    for (const int set : sample.sets) {
      if (subject_.refresh) subject_.refresh(set);
    }
  }
  block_.clear();
}

}  // namespace syslab::measure
