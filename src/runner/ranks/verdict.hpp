// Combines the ranks' endings into the launch's status, reason, records and facts.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "runner/verdict.hpp"

namespace syslab::runner {

struct RankEnding {
  Ending ending;
  std::optional<int> bad;  // it ended otherwise than ok by itself, as the bad-th: 0 is the first
  bool silenced = false;   // it was killed when the time to say something, after another's bad end, was over
  // It had said nothing, and the kernel told that it was stopped (SIGSTOP), not slow: since when at least; 0: it was
  // not.
  std::chrono::nanoseconds stopped_for{};
  bool overdue = false;  // and that for longer than a rank waits for another
};

// All ok, with a check that passed and none that failed on any of them: ok. Otherwise the first culprit decides: one
// that was stopped for longer than others wait for it, which no other can have caused; else the first that blames
// itself (worker::EndRecord::fault; a death does, unless its exit code says otherwise); where all blame others, or are
// blamed themselves, the one that was stopped for longest; else the first that is blamed; else one that said nothing at
// all, as a timeout; else the first that spoke. The reason names the rank, and says what became of the others.
//
// Records keep their rank, whatever their process wrote there. Checks have "(rank 1)" after their name, artifacts of
// ranks other than 0 after their kind. Metrics of rank worker::kAllRanks are added (runner/slowest.hpp). Facts are
// what the ranks agree on, and "ranks", an array of each one's own.
Launch judge_ranks(std::vector<RankEnding>& ranks, const MeasureSpec& spec, const OomWitness& witness);

}  // namespace syslab::runner
