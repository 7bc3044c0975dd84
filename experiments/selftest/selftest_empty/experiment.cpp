// A case that does nothing but pass: what one isolated case costs.
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_selftest_empty {
namespace {

void run_case(worker::CaseContext& context) {
  worker::CheckRecord check;
  check.name = "selftest";
  check.outcome = Outcome::passed;
  check.cases_run = 1;
  context.emit(check);
}

registry::Experiment describe() {
  return registry::experiment("selftest_empty")
      .title("An empty case")
      .question("What does one isolated case cost, from the spawn of its worker to its end?")
      .tags({"selftest"})
      .axis("repeat", {std::int64_t{1}}, "a number without meaning, to ask for several cases")
      .implementation({.name = "selftest", .teaches = "what nothing costs"})
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_empty, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_empty
