// What is known of a measured time besides its value, as values that travel with it: why no verdict is told, and what
// may make a side look faster than it is. Sentences are made of them where they are shown.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"

namespace syslab::stats {

// Why no time and no verdict is told, where it is not the spread of the samples.
enum class TimingReason {
  none,
  under_resolution,  // too much of the time is the lab's own handing over (measure/resolution.hpp)
};
std::string_view to_string(TimingReason reason);

enum class WarningCode {
  arguments_repeat,       // an argument holds what it held in earlier calls: results may be kept by content
  argument_constant,      // an argument is the same in every call, while others vary
  rows_equal,             // most rows of an argument are equal: one of them may be computed and copied
  reference_shares_code,  // the reference's process loads a file that the function is made of
  library_patched,        // a file replaces parts of a library by which the reference computes
  forward_untimed,        // the untimed forward call of a backward pass takes the time that is gained
  results_copied,         // more than a tenth of the time is the handing over, with the copying of results
  elements_unjudged,      // elements differ by more than rounding explains, and their bounds allow it
  bound_exceeds_values,   // elements whose declared bound is as large as their value: zeros would pass
  ties_differ,            // integers other than the reference's, which are right because they tie
  terms_exceed_inputs,    // a declared sum is longer than all arguments together
  left_running,           // a program ends and leaves processes at work, which are in no time
};
std::string_view to_string(WarningCode code);

struct TimingWarning {
  WarningCode code{};
  std::string side;   // whose time it is about; empty: of all sides
  std::string about;  // an argument, an output, a file, a name in a library, a program; or empty
  // arguments_repeat, rows_equal, results_copied, elements_unjudged, bound_exceeds_values, ties_differ: the part, of
  // 1. terms_exceed_inputs: the terms (`about`: the elements of the arguments). forward_untimed: seconds that the
  // forward call takes more than the other side's. left_running: the most processes after a call. Else 0.
  double number = 0;

  bool operator==(const TimingWarning&) const = default;
};

Json to_json(const std::vector<TimingWarning>& warnings);
// Whatever is no warning, or has a code that this version does not know, is left out: the list may be a stranger's.
std::vector<TimingWarning> warnings_from_json(const Json& json);

// "50 %", of a part; of less than a tenth "2.6 %".
std::string percent_of(double part);
// One sentence.
std::string sentence(const TimingWarning& warning);

// Adds those that say something new: of the same code, side and thing the larger number stays.
void add_warnings(std::vector<TimingWarning>& all, const std::vector<TimingWarning>& more);

}  // namespace syslab::stats
