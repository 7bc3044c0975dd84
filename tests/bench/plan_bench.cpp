// What planning costs: the whole `paper` grid of every experiment in this binary.
//
//   meson test -C build --benchmark plan_bench -v
#include <benchmark/benchmark.h>

#include "plan/plan.hpp"
#include "registry/registry.hpp"

namespace syslab {
namespace {

void plan_the_paper_preset(benchmark::State& state) {
  plan::Selection selection;
  selection.patterns = {"all"};
  selection.preset = "paper";
  std::size_t cases = 0;
  for (auto _ : state) cases = plan::make_plan(registry::Registry::global(), selection).cases.size();
  state.counters["cases"] = static_cast<double>(cases);
}
BENCHMARK(plan_the_paper_preset)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syslab

int main(int argc, char** argv) {
  syslab::registry::Registry::global().seal();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
