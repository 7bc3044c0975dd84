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

double worth_of(const PartStanding& standing, double points) {
  if (standing.least.of == 0) return points * standing.asked.fraction();
  if (standing.asked.of == 0) return points * standing.least.fraction();
  return points * (kLeastShare * standing.least.fraction() + (1 - kLeastShare) * standing.asked.fraction());
}

}  // namespace

Standing standing_of(const std::vector<Demand>& demands, const std::vector<Part>& parts,
                     const std::function<bool(const plan::PlannedCase&)>& there) {
  Standing standing;
  standing.parts.resize(parts.size());
  for (const Demand& demand : demands) {
    if (demand.need == Need::nice) continue;
    const Share here = share_of(demand.here, there), anywhere = share_of(demand.anywhere, there);
    const Share best = anywhere.fraction() > here.fraction() || here.of == 0 ? anywhere : here;
    for (const std::size_t part : demand.parts) {
      PartStanding& one = standing.parts[part];
      add(demand.in_small ? one.small : demand.need == Need::least ? one.least : one.asked, best);
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    PartStanding& one = standing.parts[i];
    const Share& first = one.least.of > 0 ? one.least : one.asked;
    one.answered = first.of > 0 && first.all();
    one.worth = worth_of(one, parts[i].points);
    standing.answered += one.answered ? parts[i].deliverables : 0;
    standing.deliverables += parts[i].deliverables;
    standing.worth += one.worth;
    standing.points += parts[i].points;
  }
  return standing;
}

}  // namespace syslab::evidence
