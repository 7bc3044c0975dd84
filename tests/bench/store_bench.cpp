// How fast results go into the store: rows a second through finish_attempt, one committed transaction an attempt.
//
//   meson test -C build --benchmark store_bench -v
#include <benchmark/benchmark.h>

#include <filesystem>

#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

AttemptRow attempt_with_metrics(int metrics) {
  AttemptRow attempt;
  attempt.records.emplace_back(a_check());
  for (int i = 0; i < metrics; ++i) {
    attempt.records.emplace_back(worker::MetricRecord{
        .name = "metric_" + std::to_string(i), .unit = "s", .value = 1e-3 * i, .low = 0.0, .high = 1.0, .n = 20});
  }
  return attempt;
}

AttemptRow attempt_with_samples(int samples) {
  AttemptRow attempt = attempt_with_metrics(10);
  attempt.records.emplace_back(worker::SampleRecord{
      .series = "time", .unit = "s", .values = std::vector<double>(static_cast<std::size_t>(samples), 1e-3)});
  return attempt;
}

// Stores `attempt` over and over; rows are what it carries.
void store_attempts(benchmark::State& state, const AttemptRow& attempt, std::int64_t rows) {
  const Folder folder;
  Store store = Store::open(folder / "bench.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  for (auto _ : state) benchmark::DoNotOptimize(store.finish_attempt(run, attempt));
  state.SetItemsProcessed(state.iterations() * rows);
}

// The bar: 100,000 metric rows a second.
void metric_rows(benchmark::State& state) {
  const int metrics = static_cast<int>(state.range(0));
  store_attempts(state, attempt_with_metrics(metrics), metrics);
}
BENCHMARK(metric_rows)->Arg(10)->Arg(100)->UseRealTime()->Unit(benchmark::kMicrosecond);

void sample_rows(benchmark::State& state) {
  const int samples = static_cast<int>(state.range(0));
  store_attempts(state, attempt_with_samples(samples), samples);
}
BENCHMARK(sample_rows)->Arg(300)->Arg(10'000)->UseRealTime()->Unit(benchmark::kMicrosecond);

// What a start pays: an existing store opened to write, and to read.
void open_existing(benchmark::State& state, Mode mode) {
  const Folder folder;
  {
    Store store = Store::open(folder / "bench.db", Mode::create);
    const RowId run = store.begin_run(a_run(), a_plan(1));
    for (int i = 0; i < 100; ++i) store.finish_attempt(run, attempt_with_metrics(10));
  }
  for (auto _ : state) benchmark::DoNotOptimize(Store::open(folder / "bench.db", mode));
}
BENCHMARK_CAPTURE(open_existing, to_write, Mode::read_write)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(open_existing, to_read, Mode::read_only)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syslab::store

BENCHMARK_MAIN();
