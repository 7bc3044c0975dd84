#include "cli/last_failed.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "session/selection.hpp"

namespace syslab::cli {
namespace {

// Experiment, implementation, law, contract.
using Key = std::tuple<std::string, std::string, std::string, std::string>;

// In order of time: the newest answer to a law counts, however few laws were searched with it. One that was stopped
// from outside is none.
constexpr const char* kSearched =
    "SELECT t.experiment, coalesce(p.mine_path, t.implementation), t.law, coalesce(t.params ->> '$.contract', ''),"
    "       t.ending IN ('failed', 'oom')"
    "  FROM v_attempt t"
    "  JOIN plan_case p ON p.run_id = t.run_id AND p.seq = t.plan_seq"
    " WHERE t.task = 'law' AND t.measured_here AND t.ending <> 'aborted'"
    " ORDER BY t.attempt_uid";

Key key_of(const plan::Plan& plan, const plan::PlannedCase& planned) {
  std::string who = planned.implementation;
  for (const Submitted& mine : plan.mine) {
    if (mine.name == planned.implementation) who = path_of(mine);
  }
  const auto contract = plan::contract_of(planned);
  return {planned.experiment->id, who, planned.law, std::string(contract ? to_string(*contract) : "")};
}

}  // namespace

bool keep_last_failed(const Console& console, const store::Store& store, plan::Plan& plan) {
  std::map<Key, bool> failed;
  for (const auto& row : store.query(kSearched, {}).rows) {
    failed[{row[0].text, row[1].text, row[2].text, row[3].text}] = row[4].integer != 0;
  }
  const auto failed_last = [&](const plan::PlannedCase& planned) {
    const auto found = failed.find(key_of(plan, planned));
    return found != failed.end() && found->second;
  };
  if (std::none_of(plan.cases.begin(), plan.cases.end(), failed_last)) {
    console.note("--last-failed: none of these laws failed when it was last searched; all are searched now");
    return false;
  }
  std::erase_if(plan.cases, [&](const plan::PlannedCase& planned) { return !failed_last(planned); });
  for (std::size_t i = 0; i < plan.cases.size(); ++i) plan.cases[i].index = static_cast<int>(i);
  return true;
}

}  // namespace syslab::cli
