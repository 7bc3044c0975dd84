// How fast results go into the store through finish_attempt: rows a second, one committed and synced transaction an
// attempt; attempts a second of one process and of many that write to one file; and the disk's own syncs beside them.
//
//   meson test -C build --benchmark store_bench -v
#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

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

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What this disk can do: a log's pages of an attempt, written over and synced.
void disk_syncs(benchmark::State& state) {
  const Folder folder;
  const std::vector<char> pages(std::size_t{12} * 4120, 'x');
  const int file = ::open((folder / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  off_t at = 0;
  for (auto _ : state) {
    const bool written = ::pwrite(file, pages.data(), pages.size(), at) == static_cast<ssize_t>(pages.size());
    if (!written || ::fdatasync(file) != 0) return state.SkipWithError("the disk does not write");
    at = (at + static_cast<off_t>(pages.size())) % (4 << 20);
  }
  ::close(file);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(disk_syncs)->UseRealTime()->Unit(benchmark::kMicrosecond);

void one_writer(benchmark::State& state) { store_attempts(state, an_attempt(0), 1); }
BENCHMARK(one_writer)->UseRealTime()->Unit(benchmark::kMicrosecond);

// So many wait, and go in together. The bar: 2,000 attempts a second of 64, each at most 20 ms late.
void waiting_attempts(benchmark::State& state) {
  const Folder folder;
  Store store = Store::open(folder / "bench.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  const std::vector<AttemptRow> waiting(static_cast<std::size_t>(state.range(0)), an_attempt(0));
  double longest = 0;
  for (auto _ : state) {
    const double begin = now_seconds();
    benchmark::DoNotOptimize(store.finish_attempts(run, waiting));
    longest = std::max(longest, now_seconds() - begin);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["latest_ms"] = 1e3 * longest;
}
BENCHMARK(waiting_attempts)->Arg(1)->Arg(8)->Arg(64)->UseRealTime()->Unit(benchmark::kMicrosecond);

// Shared by the processes of many_writers.
struct Race {
  int ready = 0;
  bool has_begun = false;
  double longest_seconds = 0;  // that an attempt waited
};

[[noreturn]] void write_in_a_race(const fs::path& path, Race& race, int attempts) {
  Store store = Store::open(path, Mode::read_write);
  const RowId run = store.find_run("latest")->id;
  __atomic_add_fetch(&race.ready, 1, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&race.has_begun, __ATOMIC_SEQ_CST)) ::usleep(1000);
  double longest = 0;
  for (int i = 0; i < attempts; ++i) {
    const double begin = now_seconds();
    store.finish_attempt(run, an_attempt(0));
    longest = std::max(longest, now_seconds() - begin);
  }
  double seen = 0;
  __atomic_load(&race.longest_seconds, &seen, __ATOMIC_SEQ_CST);
  while (seen < longest && !__atomic_compare_exchange(&race.longest_seconds, &seen, &longest, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST)) {
  }
  ::_exit(0);
}

// So many processes, each with its next attempt at once: transactions take turns, and syncs are shared.
void many_writers(benchmark::State& state) {
  const int writers = static_cast<int>(state.range(0));
  constexpr int kEach = 50;
  double longest = 0;
  for (auto _ : state) {
    const Folder folder;
    Store::open(folder / "bench.db", Mode::create).begin_run(a_run(), a_plan(1));
    auto* const race =
        new (::mmap(nullptr, sizeof(Race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Race;
    std::vector<pid_t> children;
    for (int i = 0; i < writers; ++i) {
      children.push_back(::fork());
      if (children.back() == 0) write_in_a_race(folder / "bench.db", *race, kEach);
    }
    while (__atomic_load_n(&race->ready, __ATOMIC_SEQ_CST) < writers) ::usleep(1000);
    const double begin = now_seconds();
    __atomic_store_n(&race->has_begun, true, __ATOMIC_SEQ_CST);
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      if (status != 0) return state.SkipWithError("a writer failed");
    }
    state.SetIterationTime(now_seconds() - begin);
    longest = std::max(longest, race->longest_seconds);
    ::munmap(race, sizeof(Race));
  }
  state.SetItemsProcessed(state.iterations() * writers * kEach);
  state.counters["longest_wait_ms"] = 1e3 * longest;
}
BENCHMARK(many_writers)->Arg(1)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);

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
