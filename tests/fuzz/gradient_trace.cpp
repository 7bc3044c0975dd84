// A trace for plan-buckets: CSV, JSON or a profiler's.
#include "planning/gradient_trace.hpp"

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  syslab::fuzz::read_or_refuse([&] {
    const auto trace = syslab::parallel::read_gradient_trace(syslab::fuzz::text_of(data, size));
    trace.pieces();
    trace.ready();
  });
  return 0;
}
