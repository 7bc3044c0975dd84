#include "worker/judged/call_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
namespace syslab::worker {
namespace {

constexpr int kAgreement = 50;  // the two clocks may differ by one in so many parts: 2 %
constexpr Nanoseconds kWaking{std::chrono::microseconds(200)};  // of two processes that sleep, and copies of outputs
// By so much more an honest call on a GPU may differ, though ours is its time: handing over takes longer where a call
// works through much memory (18 µs were seen on an H100).
constexpr Nanoseconds kHandingOver{std::chrono::microseconds(20)};
// Ranks hear of a step from the process that has forked them, one after the other, and wait for the last: 0.4 ms of a
// step of 20 were left out at load 8.
constexpr Nanoseconds kMeeting{std::chrono::milliseconds(1)};
constexpr std::size_t kKept = 10'000;

// Only a tenth of the values is smaller: a busy machine makes most waits long, and hardly all of them.
Nanoseconds low(std::vector<Nanoseconds> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

CallClock CallClock::of_gpu() {
  CallClock made;
  made.slack_ = std::chrono::microseconds(5);
  return made;
}

CallClock CallClock::of_copies() {
  CallClock made = of_gpu();
  made.copies_ = true;
  return made;
}

CallClock CallClock::of_ranks(bool on_gpu, int processors) {
  CallClock made(processors);
  if (on_gpu) made.slack_ = of_gpu().slack_;
  made.meeting_ = kMeeting;
  return made;
}

Nanoseconds CallClock::time(std::string_view function, const Readings& readings, bool is_question) {
  last_.insert_or_assign(std::string(function), readings.ours);
  if (is_question) return readings.ours;
  if (readings_.size() < kKept) {
    readings_.push_back(readings);
  } else {
    readings_[static_cast<std::size_t>(calls_) % kKept] = readings;
  }
  ++calls_;
  const Nanoseconds apart = std::chrono::abs(readings.ours - readings.its_own);
  by_ours_ = apart > readings.ours / kAgreement + slack_;
  if (by_ours_) return readings.ours;
  ++by_its_own_;
  return readings.its_own;
}

Nanoseconds CallClock::last(std::string_view function) const {
  const auto found = last_.find(function);
  return found == last_.end() ? Nanoseconds{} : found->second;
}

void CallClock::begin_case() {
  readings_.clear();
  calls_ = by_its_own_ = 0;
  handover_ = {};
  forwards_.clear();
}

measure::Handover CallClock::handover() const {
  measure::Handover told = handover_;
  if (calls_ > 0) told.share_of_calls = static_cast<double>(calls_ - by_its_own_) / static_cast<double>(calls_);
  return told;
}

Json CallClock::facts() const {
  if (readings_.empty()) return Json::object();
  Json facts{{"calls_timed", calls_}, {"calls_timed_by_its_own_clock", by_its_own_}};
  const bool on_gpu = slack_ > Nanoseconds{};
  std::vector<Nanoseconds> ours, its_own, missing;
  for (const Readings& each : readings_) {
    ours.push_back(each.ours);
    its_own.push_back(each.its_own);
    const Nanoseconds left_out = each.ours - each.its_own - meeting_;
    missing.push_back(on_gpu ? left_out : std::min(left_out, each.worked - processors_ * each.its_own));
  }
  const Nanoseconds usual = low(ours);
  const bool agree = copies_ ? 10 * by_its_own_ >= 9 * calls_
                             : low(missing) <= usual / kAgreement + (on_gpu ? slack_ + kHandingOver : kWaking);
  if (agree) return facts;
  facts["suspect"] = fmt::format(
      "its own clock tells of {} a call, the lab's of {}{} (first deciles of {} calls); the lab's is the time",
      format_duration(low(its_own)), format_duration(usual), copies_ ? " with copies to the GPU and back" : "",
      readings_.size());
  return facts;
}

}  // namespace syslab::worker
