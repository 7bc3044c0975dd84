// What the lab's own machinery costs on the host: messages and statistics. No kernel is run and nothing gates by time;
// the numbers stand in reports/ledger/lab.md.
//
//   meson test -C build --benchmark host_bench -v
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/process/pipe.hpp"
#include "stats/noise.hpp"
#include "stats/summary.hpp"
#include "worker/wire/wire.hpp"

namespace syslab {
namespace {

std::vector<double> times(std::int64_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<double> noise(1e-3, 1e-5);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < count; ++i) seconds.push_back(noise(generator));
  return seconds;
}

worker::Record metric() {
  return worker::MetricRecord{.name = "time", .unit = "s", .value = 1.25e-3, .low = 1.2e-3, .high = 1.3e-3, .n = 68};
}

worker::Record samples(std::int64_t count) {
  return worker::SampleRecord{.series = "time", .unit = "s", .values = times(count)};
}

struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  void close_writing() {
    ::close(ends[1]);
    ends[1] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

// There to a thread that answers with the same, as a worker would, and back.
void record_there_and_back(benchmark::State& state) {
  Pipe there, back;
  std::thread far([&] {
    FrameReader reader(there.ends[0]);
    for (auto got = reader.read(std::nullopt); got.state == FrameReader::State::frame;
         got = reader.read(std::nullopt)) {
      write_frame(back.ends[1], Json::parse(got.text));
    }
  });
  FrameReader reader(back.ends[0]);
  const worker::Record record = metric();
  for (auto _ : state) {
    write_frame(there.ends[1], worker::to_json(record));
    benchmark::DoNotOptimize(worker::record_from_json(Json::parse(reader.read(std::nullopt).text)));
  }
  there.close_writing();
  far.join();
}
BENCHMARK(record_there_and_back)->UseRealTime()->Unit(benchmark::kMicrosecond);

void json_of(benchmark::State& state, const worker::Record& record) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(worker::record_from_json(Json::parse(worker::to_json(record).dump())));
  }
}
void json_of_a_metric(benchmark::State& state) { json_of(state, metric()); }
void json_of_samples(benchmark::State& state) { json_of(state, samples(state.range(0))); }
BENCHMARK(json_of_a_metric)->Unit(benchmark::kMicrosecond);
BENCHMARK(json_of_samples)->Arg(20)->Arg(2000)->Unit(benchmark::kMicrosecond);

// What one look of the sampler at its precision costs; there are at most 13 in a case.
void look(benchmark::State& state) {
  const std::vector<double> seconds = times(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stats::summarize(seconds));
}
BENCHMARK(look)->Arg(20)->Arg(2000)->Unit(benchmark::kMicrosecond);

void median_interval(benchmark::State& state) {
  const std::vector<double> seconds = times(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stats::median_interval(seconds));
}
BENCHMARK(median_interval)->Arg(20)->Arg(2000)->Unit(benchmark::kMicrosecond);

void noise_labels(benchmark::State& state) {
  const std::vector<double> seconds = times(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stats::noise_labels(seconds));
}
BENCHMARK(noise_labels)->Arg(20)->Arg(2000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace syslab

BENCHMARK_MAIN();
