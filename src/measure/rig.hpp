// A subject set up on a device: warmed up, its calls grouped into samples, timed a block of samples at a time. The
// sampler decides how many blocks, a burst how long; this is the part that touches the device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "measure/clock.hpp"
#include "measure/clock_settling.hpp"
#include "measure/device.hpp"
#include "measure/protocol.hpp"
#include "measure/subject.hpp"

namespace syslab::measure {

// Unsupported, saying what to use instead, when the protocol insists on graphs and there is no capturing here:
// the device does not, or the calls happen in another process, unless they are captured there.
void require_launch(const Protocol& protocol, const Device& device, bool in_another_process,
                    bool captured_there = false);

class Rig {
 public:
  // Everything is borrowed. `random` picks the samples to verify. Unsupported as require_launch().
  Rig(const Protocol& protocol, const Subject& subject, Device& device, Clock& clock, std::uint64_t random);

  // Calls until warm, then fixes calls_per_sample().
  void warm_up();
  // A few calls that nobody times, after a pause.
  void rewarm();

  // Of an implementation in another process at most: each of its groups has a random length, down to two thirds.
  int calls_per_sample() const { return calls_per_sample_; }
  std::int64_t warmup_calls() const { return warmup_calls_; }
  const std::vector<double>& warmup_seconds() const { return warmup_seconds_; }  // of its first calls, in order
  // Whether the device's clock had stopped rising when the warm-up ended; nothing where the device does not tell its
  // clock, the protocol's warm-up is a recipe of its own, or calls are so long that there were too few readings.
  std::optional<bool> clock_settled() const {
    return clock_rate_.knows() ? std::optional(clock_rate_.settled()) : std::nullopt;
  }
  Nanoseconds call_estimate() const { return estimate_; }
  // Of a call of the warm-up, on the wall: with new content for the next. 0 without a warm-up.
  Nanoseconds wall_estimate() const { return wall_estimate_; }
  // No more calls than that in a sample, where none is captured.
  void group_at_most(int calls);
  int samples_wanted() const { return samples_wanted_; }  // by the protocol's estimate; 0: it makes none
  bool uses_graphs() const { return capture_; }
  const std::string& why_not_captured() const { return why_not_captured_; }  // empty: it was, or nobody tried

  // Queues up to `most` samples, as many as the device and the input sets allow in one go (at least one), and waits for
  // them: a window each, in order. Outputs stay as the calls left them until refresh().
  std::vector<Window> time_block(int most);
  // Looks at all that the last block left and verifies calls by chance; with `last`, the last one if none of the later
  // half of all was. An implementation in another process is timed call by call: but for the last call of a sample this
  // happens between the calls, each of which meets content of its own.
  void verify(bool last);
  // Gives the sets of the last block new content. Before the next block, if there is one.
  void refresh();

  std::int64_t verified() const { return verified_; }               // calls
  Nanoseconds in_verification() const { return in_verification_; }  // on the clock

 private:
  struct Queued {
    int calls = 0;
    std::vector<int> sets;  // whose outputs still are what the calls left
  };

  int length_of_group(int most);
  void begin_group(int calls);
  int take_set();
  int room_for(int calls) const;
  std::vector<Window> time(int samples, int calls);
  std::vector<int> queue(int calls);
  std::vector<int> call_by_call(int calls);
  void settle(int set);
  void verify_some(std::span<const int> sets, bool last);
  void warm_up_for_a_time();
  void warm_up_by_estimate();
  void keep_warmup(const std::vector<Window>& windows);
  bool clock_is_steady();
  void choose_granularity();
  Graph* graph_of(int first_set);

  const Protocol& protocol_;
  const Subject& subject_;
  Device& device_;
  Clock& clock_;
  std::mt19937_64 generator_;

  std::int64_t warmup_calls_ = 0;
  std::vector<double> warmup_seconds_;
  Nanoseconds estimate_{}, wall_estimate_{};  // of one call
  int samples_wanted_ = 0;
  int calls_per_sample_ = 1;
  bool warm_ = false, capture_ = false;
  ClockSettling clock_rate_;
  std::string why_not_captured_;
  std::map<int, std::unique_ptr<Graph>> graphs_;  // of a sample, by its first set

  int sets_ = 1, next_set_ = 0;
  std::vector<Queued> block_;       // samples that are not settled yet
  std::vector<Window> self_timed_;  // of the block, where the implementation has a clock of its own
  std::int64_t verified_ = 0, taken_ = 0, last_verified_ = 0;  // calls; the last: which of those taken
  Nanoseconds in_verification_{};
};

}  // namespace syslab::measure
