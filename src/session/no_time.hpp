// An attempt that was measured and has no time to tell: the reason as its facts carry it, and what can be done.
#pragma once

#include <optional>
#include <string>

#include "stats/timing_warning.hpp"

namespace syslab::cli {

struct NoTime {
  stats::TimingReason reason = stats::TimingReason::none;
  double seconds = 0;                        // that a call seemed to take
  double handover = 0, with_results = 0;     // the lab's own, up to: without and with copying of results
  double least = 0, least_with_results = 0;  // the same, at the least; 0: not known
  int launch = 0;                            // counted from 1; 0: there is one
};

// With hand-overs as short as the shortest it would have its time, and some were several times as long: others had the
// processors, and the call is not too short.
bool was_busy(const NoTime& it);

// Of an attempt's facts; nothing: its times may be told.
std::optional<NoTime> no_time(const std::string& facts_json);
// The warnings among them.
std::vector<stats::TimingWarning> timing_warnings(const std::string& facts_json);
// Of those, the ones about results, which matter where no time is asked for, too.
std::vector<stats::TimingWarning> of_results(const std::vector<stats::TimingWarning>& warnings);
// Whether they name elements that nothing judged.
bool leave_unjudged(const std::vector<stats::TimingWarning>& warnings);

// "handing over a call takes up to 64 us, and a call with it 77 us; expected at most a tenth; try: …", or "in launch 2
// handing over a call took up to …", a part of a sentence.
std::string in_words(const NoTime& it);
inline constexpr std::string_view kBusy = "the machine was busy";  // was_busy()
// "is too short to time", or "has no time: the machine was busy".
std::string verdict_of(const NoTime& it);

}  // namespace syslab::cli
