// What one isolated case costs, from the spawn of its worker to its end: bar 15 ms, goal 8 ms (on an idle machine).
//   meson test --benchmark, or: empty_case_benchmark [syslab worker]
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "runner/runner.hpp"

namespace {

std::vector<std::string> g_worker{std::getenv("SYSLAB_TEST_WORKER") == nullptr ? ""
                                                                               : std::getenv("SYSLAB_TEST_WORKER")};

void empty_case(benchmark::State& state) {
  syslab::registry::Experiment experiment;
  experiment.id = "selftest_empty";
  syslab::plan::PlannedCase planned;
  planned.experiment = &experiment;
  planned.implementation = "selftest";
  syslab::plan::Plan plan;
  plan.cases = {planned};
  syslab::runner::RunOptions options;
  options.worker_command = g_worker;
  for (auto _ : state) {
    syslab::runner::run_plan(plan, options, {.finished = [&](const syslab::runner::AttemptResult& result) {
                               if (result.status != syslab::worker::Status::ok) state.SkipWithError("not ok");
                             }});
  }
}
BENCHMARK(empty_case)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1) g_worker.assign(argv + 1, argv + argc);
  benchmark::RunSpecifiedBenchmarks();
}
