// From how the ranks of a launch ended to the launch's one status, reason, records and facts.
#pragma once

#include <optional>
#include <vector>

#include "runner/verdict.hpp"

namespace syslab::runner {

struct RankEnding {
  Ending ending;
  std::optional<int> bad;  // it ended otherwise than ok by itself, as the bad-th: 0 is the first
  bool silenced = false;   // it was killed when the time to say something, after another's bad end, was over
};

// All ok, with a check that passed and none that failed on any of them: ok. Otherwise the first culprit decides: the
// first that blames itself (worker::EndRecord::fault; a death does, unless its exit code says otherwise); where all
// blame others, one that said nothing at all, as a timeout; else the first that spoke. The reason names the rank, and
// says what became of the others.
//
// Records keep their rank, whatever their process wrote there. Checks have "(rank 1)" behind their name, artifacts of
// other ranks than 0 behind their kind. Metrics of rank worker::kAllRanks are added (runner/slowest.hpp). Facts are
// what the ranks agree on, and "ranks", an array of each one's own.
Launch judge_ranks(std::vector<RankEnding>& ranks, const RunOptions& options, const OomWitness& witness);

}  // namespace syslab::runner
