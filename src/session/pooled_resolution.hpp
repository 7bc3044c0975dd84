// Whether launches have a time to tell, decided once of all of them. To leave out those that alone have none would
// leave out the fast ones first, since the same handing over is a larger part of a shorter time.
#pragma once

#include <optional>
#include <string>

#include "session/no_time.hpp"

namespace syslab::cli {

class PooledResolution {
 public:
  // A side's facts of one more launch.
  void take(const std::string& facts_json);

  int launches() const { return launches_; }
  int too_short_alone() const { return alone_; }
  double mean_share() const;  // of the time, what is the lab's own

  // The mean over launches is beyond what Resolution permits: the launch with the largest part says how.
  std::optional<NoTime> no_time() const;
  // More launches will not fix it: it is far beyond that limit, and with the shortest hand-over and call of three
  // launches it would be beyond it on a quiet machine as well. Where those are not known, the former decides.
  bool is_hopeless() const;

 private:
  bool is_beyond(double factor) const;
  bool may_do_on_a_quiet_machine() const;

  int launches_ = 0, alone_ = 0;
  double shares_ = 0, shares_with_results_ = 0;  // sums
  double largest_ = 0;
  double least_ = 0, least_with_results_ = 0;  // hand-overs of all launches; 0: not known
  double shortest_call_ = 0;                   // seconds that a call seemed to take; 0: not known
  std::optional<NoTime> worst_;
};

// "2 of 12 launches of me would have no time alone; …", a sentence; empty where there is none.
std::string in_words(const PooledResolution& it, const std::string& side);

}  // namespace syslab::cli
