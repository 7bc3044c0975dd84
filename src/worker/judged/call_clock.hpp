// What a call to another process took: by our clock around it, or by the worker's inside it, as long as both agree.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/units.hpp"
#include "measure/resolution.hpp"

namespace syslab::worker {

class CallClock {
 public:
  struct Readings {
    Nanoseconds ours{}, its_own{};
    Nanoseconds whole{};   // ours, with what was subtracted from it; the worker's cannot be longer
    Nanoseconds worked{};  // processor time of the worker's process meanwhile, as the kernel accounts for it
  };

  explicit CallClock(int processors = 1) : processors_(processors) {}
  // Of calls on a GPU, where the two agree within 2 % and 5 µs: so much handing over may vary.
  static CallClock of_gpu();
  // The same where ours runs while the worker copies its tensors to the GPU and back, too: whatever it tells of, a
  // short call is not to be told from these copies.
  static CallClock of_copies();
  // Of a step of several ranks, which are told to begin and tell of their end one after the other. On the CPU
  // `processors` as above; on a GPU, 5 µs as there.
  static CallClock of_ranks(bool on_gpu, int processors);

  // The time of the call. The worker's own reading spares it our waking up, and is believed as far as it cannot matter:
  // where it is within 2 % of ours. Else ours is the time, whoever is at fault. A question, which computes
  // nothing, has ours and is left out of the facts: among calls that hide their time it would be the one that hides
  // none.
  Nanoseconds time(std::string_view function, const Readings& readings, bool is_question = false);

  // Whether the last call was timed by ours, so that its time has the handing over in it; of the worker's own it has at
  // most 2 %.
  bool by_ours() const { return by_ours_; }
  // What a call took that computes nothing, by our clock.
  void take_empty(Nanoseconds took, bool with_results) {
    (with_results ? handover_.with_results : handover_.plain).push_back(Seconds(took).count());
  }
  // What an untimed forward call took before the last call of a backward pass, by our clock.
  void take_forward(Nanoseconds took) { forwards_.push_back(Seconds(took).count()); }
  const std::vector<double>& forwards() const { return forwards_; }
  std::int64_t empty_calls() const { return std::ssize(handover_.plain) + std::ssize(handover_.with_results); }
  std::int64_t calls_by_ours() const { return calls_ - by_its_own_; }
  // Of the calls since begin_case(): what handing one over takes, and how many have it in their time.
  measure::Handover handover() const;

  // By our clock, of the last call of that function; 0 if there was none.
  Nanoseconds last(std::string_view function) const;

  void begin_case();
  // Of the calls since: whose clock they were timed by; and under "suspect" what a worker's clock leaves out of nearly
  // every call though the worker was working: more processor time than all processors have in the time that it tells.
  // Waiting, as on a busy machine, is no reason; nor is it on a GPU, which is ours and the worker's alone. With copies
  // also where more than a tenth of the calls has our time. An empty object if there were no calls.
  Json facts() const;

 private:
  int processors_;
  Nanoseconds slack_{};    // that the two may differ besides; nothing on the CPU
  Nanoseconds meeting_{};  // of ranks, that an honest call may leave out besides
  bool copies_ = false;    // ours has them in it
  std::map<std::string, Nanoseconds, std::less<>> last_;
  std::vector<Readings> readings_;  // the latest, of a case
  std::int64_t calls_ = 0, by_its_own_ = 0;
  bool by_ours_ = false;
  measure::Handover handover_;
  std::vector<double> forwards_;
};

}  // namespace syslab::worker
