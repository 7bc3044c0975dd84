// What a range of the model costs: with nobody listening, and recorded. A step of `tiny` has some 130 of them, one of
// 36 layers some 4,000.
//
//   meson test -C build --benchmark trace_bench -v
#include <benchmark/benchmark.h>

#include "trace/recorder.hpp"

namespace syslab::trace {
namespace {

void unheard(benchmark::State& state) {
  for (auto _ : state) {
    const device::NvtxRange range("gemm", device::RangeKind::kernel, {}, "host BLAS");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(unheard);

void recorded(benchmark::State& state) {
  Recorder recorder;
  const device::Listening listening(recorder);
  for (auto _ : state) {
    {
      const device::NvtxRange range("gemm", device::RangeKind::kernel, {}, "host BLAS");
      benchmark::ClobberMemory();
    }
    if (recorder.spans().size() >= 100'000) {
      state.PauseTiming();
      recorder.clear();
      state.ResumeTiming();
    }
  }
}
BENCHMARK(recorded);

}  // namespace
}  // namespace syslab::trace

BENCHMARK_MAIN();
