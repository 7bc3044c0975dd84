// Whether a time is long enough to be told: how much of it is the lab's own handing over of the call.
//
// A call in another process is timed from the release of its inputs until its outputs are complete. That interval has
// the two processes' waking in it, and the copying of results that do not lie in the shared memory. Calls that compute
// nothing go the same way between the timed ones, and say how long both take at that moment, on that machine.
//
// Of the time t of a call let h be the handing over, s = h / t. Two calls with the same h and the true ratio R show the
// ratio (R (t − h) + h) / t, and with that (1 − s) of the true difference R − 1: s is the part of a difference that is
// lost. Nothing is subtracted, since who is judged could make an empty call slow.
//   waking and releasing   at most a tenth. A difference of 10 % is then told within 1 %, the smallest that counts.
//                          On a busy machine it is 50 times as long as on a quiet one.
//   copying of results     at most half, together with the above. It grows with the results and does not scatter, so it
//                          makes no false word, but it makes differences smaller: a time that has more than a tenth of
//                          it is told with a warning. The shortest such call counts there, not a long wait.
#pragma once

#include <string_view>
#include <vector>

namespace syslab::measure {

struct Handover {
  std::vector<double> plain, with_results;  // seconds that empty calls took, without and with copying of results
  double share_of_calls = 0;                // of all calls, those that have the handing over in their time
};

struct Resolution {
  double handover = 0, handover_high = 0;    // median of the plain ones, and the end of its 95 % interval
  double with_results = 0;                   // the same end of the others
  double least = 0, least_with_results = 0;  // the shortest of both kinds: as on a quiet machine
  double share = 0, share_with_results = 0;  // of the time, by the ends of the intervals
  double least_share_with_results = 0;       // of the time, by the shortest
  int empty_calls = 0;                       // 0: nothing is known, and no time is refused

  bool is_under() const { return share > kMostHandover || share_with_results > kMostOfLab; }
  bool warns_of_results() const { return !is_under() && least_share_with_results > kMostHandover; }

  static constexpr double kMostHandover = 0.1, kMostOfLab = 0.5;
};

// Of `seconds`, the median of a series. All is 0 where most of its calls have no handing over in their time.
Resolution resolution_of(const Handover& handover, double seconds);

}  // namespace syslab::measure
