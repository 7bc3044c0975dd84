#include "evidence/standing.hpp"

#include <algorithm>

#include "evidence/schedule.hpp"

namespace syslab::evidence {
namespace {

using registry::Need;

Share share_of(const plan::Plan& plan, const std::function<bool(const plan::PlannedCase&)>& there) {
  Share share;
  share.of = static_cast<int>(plan.cases.size());
  share.done = static_cast<int>(std::count_if(plan.cases.begin(), plan.cases.end(), there));
  return share;
}

void add(Share& sum, const Share& one) {
  sum.done += one.done;
  sum.of += one.of;
}

// The demands of a part, each with the same weight whichever machine's cases count for it: if its weight changed with
// that, one case more could take the part to a smaller share.
struct Covered {
  double done = 0, of = 0;
  double fraction() const { return of == 0 ? 0 : done / of; }
};

void add(Covered& sum, const Share& one, int weight) {
  sum.done += one.fraction() * weight;
  sum.of += weight;
}

struct PartCovered {
  Covered least, asked;
};

double worth_of(const PartCovered& part, double points) {
  if (part.least.of == 0) return points * part.asked.fraction();
  if (part.asked.of == 0) return points * part.least.fraction();
  return points * (kLeastShare * part.least.fraction() + (1 - kLeastShare) * part.asked.fraction());
}

}  // namespace

Standing standing_of(const std::vector<Demand>& demands, const std::vector<Part>& parts,
                     const std::function<bool(const plan::PlannedCase&)>& there) {
  Standing standing;
  standing.parts.resize(parts.size());
  std::vector<PartCovered> covered(parts.size());
  for (const Demand& demand : demands) {
    standing.demands.emplace_back();
    if (demand.need == Need::nice) continue;
    const Share here = share_of(demand.here, there), anywhere = share_of(demand.anywhere, there);
    const Share best = anywhere.fraction() > here.fraction() || here.of == 0 ? anywhere : here;
    standing.demands.back() = best;
    for (const std::size_t part : demand.parts) {
      PartStanding& one = standing.parts[part];
      add(demand.in_small ? one.small : demand.need == Need::least ? one.least : one.asked, best);
      if (demand.in_small) continue;
      add(demand.need == Need::least ? covered[part].least : covered[part].asked, best, std::max(anywhere.of, here.of));
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    PartStanding& one = standing.parts[i];
    const Share& first = one.least.of > 0 ? one.least : one.asked;
    one.answered = first.of > 0 && first.all();
    one.worth = worth_of(covered[i], parts[i].points);
    standing.answered += one.answered ? parts[i].deliverables : 0;
    standing.deliverables += parts[i].deliverables;
    standing.worth += one.worth;
    standing.points += parts[i].points;
  }
  return standing;
}

}  // namespace syslab::evidence
