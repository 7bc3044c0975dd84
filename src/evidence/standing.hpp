// How far a hand-out is answered by what is stored.
#pragma once

#include <functional>
#include <vector>

#include "evidence/demand.hpp"

namespace syslab::evidence {

// Cases there are, of those wanted.
struct Share {
  int done = 0, of = 0;
  bool all() const { return done >= of; }
  double fraction() const { return of == 0 ? 0 : static_cast<double>(done) / of; }
};

struct PartStanding {
  Share least, asked, small;
  bool answered = false;  // all of the least is there
  double worth = 0;  // points: of the least two thirds, of what is asked the rest; each case of a demand counts alike
};

struct Standing {
  std::vector<PartStanding> parts;  // as the hand-out's
  std::vector<Share> demands;       // as given; of those that are only nice, nothing
  int answered = 0, deliverables = 0;
  double worth = 0, points = 0;
};

// `there` says whether a case's result is stored. A store from another machine counts as well: of each demand, the
// cases of this machine or those of any, whichever has more.
Standing standing_of(const std::vector<Demand>& demands, const std::vector<Part>& parts,
                     const std::function<bool(const plan::PlannedCase&)>& there);

}  // namespace syslab::evidence
