// Ranks that sum numbers by a communicator, again and again: what `selftest_rank_faults` kills and stops.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "comm/connect.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_selftest_collectives {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<comm::Communicator> meet(const worker::CaseContext& context) {
  comm::ConnectOptions options;
  options.rendezvous = context.request().rendezvous;
  options.rank = context.rank();
  options.size = context.world_size();
  options.backend = context.request().implementation;
  options.limit = std::chrono::milliseconds(context.params().integer("limit_ms"));
  return comm::connect(options);
}

// How many of the sums were wrong.
std::int64_t sum_again_and_again(comm::Communicator& ranks, std::int64_t steps) {
  alignas(16) float numbers[4] = {};
  const auto expected = static_cast<float>(ranks.size() * (ranks.size() + 1) / 2);
  std::int64_t wrong = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (float& number : numbers) number = static_cast<float>(ranks.rank() + 1);
    const TensorView view(numbers, DType::f32, {4});
    ranks.wait(ranks.all_reduce(view, comm::Reduction::sum, {"gradient", "selftest"}, {}));
    for (const float number : numbers) wrong += number == expected ? 0 : 1;
    std::this_thread::sleep_for(200us);
  }
  return wrong;
}

void run_case(worker::CaseContext& context) {
  const std::unique_ptr<comm::Communicator> ranks = meet(context);
  const std::int64_t wrong = sum_again_and_again(*ranks, context.params().integer("steps"));
  worker::CheckRecord check;
  check.name = "selftest:sums";
  check.outcome = wrong == 0 ? Outcome::passed : Outcome::falsified;
  check.cases_run = context.params().integer("steps");
  if (wrong != 0) check.message = fmt::format("{} numbers are not the sum over {} ranks", wrong, ranks->size());
  context.emit(check);
  if (wrong != 0) throw worker::CheckFailed(check.message);
}

registry::Experiment describe() {
  return registry::experiment("selftest_collectives")
      .title("Ranks that meet again and again")
      .question("Are the sums over all ranks right, however often they are asked for?")
      .tags({"selftest"})
      .axis("steps", {std::int64_t{100}}, "all-reduces")
      .axis("limit_ms", {std::int64_t{2'000}}, "how long a rank waits for another, in milliseconds")
      .limits_waits_by("limit_ms")
      .world_sizes({std::int64_t{2}, std::int64_t{3}})
      .preset("smoke", {{"world_size", {std::int64_t{2}}}})
      .implementation({.name = "shm", .teaches = "what watches over ranks that meet in memory"})
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_collectives, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_collectives
