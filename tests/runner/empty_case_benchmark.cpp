// What one isolated case costs, from the spawn of its worker to its end (bar 15 ms, goal 8 ms on an idle machine), and
// what a judged process adds to it, without and with walls (bar 12 ms, goal 8 ms for both).
//   meson test --benchmark, or: empty_case_benchmark [syslab worker]; SYSLAB_PLUGINS: where the libraries of the tests
//   are
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "runner/runner.hpp"
#include "worker/judged/foreign.hpp"

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
                               if (result.status != syslab::Status::ok) state.SkipWithError("not ok");
                             }});
  }
}
BENCHMARK(empty_case)->Unit(benchmark::kMillisecond)->UseRealTime();

// A library's process from its start to its end, with its folder, its greeting and no call.
void judged_process(benchmark::State& state) {
  const char* plugins = std::getenv("SYSLAB_PLUGINS");
  const std::string library = plugins == nullptr ? "" : std::string(plugins) + "/naive_attention.so";
  if (!std::filesystem::exists(library)) {
    state.SkipWithError("SYSLAB_PLUGINS names no folder with naive_attention.so");
    return;
  }
  syslab::worker::ForeignOptions options;
  options.command = {g_worker.front(), "judged", "me=" + library};
  options.environment.emplace("SYSLAB_WALLS", state.range(0) == 0 ? "none" : "");
  if (state.range(0) != 0) options.walls = syslab::judge::Profile::native;
  for (auto _ : state) const syslab::worker::ForeignWorker started(options);
}
BENCHMARK(judged_process)->ArgName("walls")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1) g_worker.assign(argv + 1, argv + argc);
  benchmark::RunSpecifiedBenchmarks();
}
