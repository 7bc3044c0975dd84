// The order in which a hand-out's evidence is measured: breadth first over the whole assignment.
//
//   const Schedule schedule = schedule_of(demands, parts, laws, [](plan::Plan& plan) { forecast(plan, …); });
//
// The order depends on the registry, the machine and the predictions given, and on nothing that was measured: if those
// are made without a store, a schedule that is taken up again goes on exactly where it was, and a longer budget takes
// the same steps and then more.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/demand.hpp"

namespace syslab::evidence {

// What comes before what: the least that answers, for all deliverables; each law once; what the hand-out asks; the
// rest.
enum class Stage { least, laws, asked, nice };
std::string_view to_string(Stage stage);

// Cases of one experiment that are run together.
struct Step {
  const registry::Experiment* experiment = nullptr;
  Stage stage = Stage::least;
  int round = 0;      // of `asked` and `nice`: how fine the grid is by then
  double points = 0;  // that its cases are worth
  Seconds seconds{};  // predicted
  std::vector<plan::PlannedCase> cases;
};

// Cases that this machine cannot run, by their reason.
struct Impossible {
  std::string reason;
  std::vector<std::string> experiments;
  int cases = 0;
};

struct Schedule {
  std::vector<Step> steps;
  std::vector<Impossible> impossible;
};

// What a case is taken to last: its measurement by the prediction, and what it has to allocate, fill and check before.
// Where nothing is predicted, of one process on the CPU arithmetic, as a rule, whose counts nobody needs to predict;
// else a few starts and looks. Nothing where it is not tried for want of memory.
Seconds seconds_of(const plan::PlannedCase& planned);

// What of a part's points the least is worth, as a rubric would have it; what is asked is worth the rest.
inline constexpr double kLeastShare = 2.0 / 3;

// Each case once, where it comes first. Within a stage and round by points per second, most first; then by time, then
// by name.
Schedule schedule_of(const std::vector<Demand>& demands, const std::vector<Part>& parts, const plan::Plan& laws,
                     const std::function<void(plan::Plan&)>& predict);

}  // namespace syslab::evidence
