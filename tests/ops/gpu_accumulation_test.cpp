#include "ops/accumulation/accumulation.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::accumulation {
namespace {

class GpuAccumulation : public device::GpuTest {};

TEST_F(GpuAccumulation, GivesTheBitsOfTheReferenceForEveryConstantAndCount) {
  for (const Case& how : cases()) {
    for (const std::int64_t denominator : {1, 3, 7, 64, 99, 100, 1000, 1023}) {
      for (const std::int64_t count : {1, 2, 255, 257, 1000, 5000}) {
        const Problem problem{how, denominator, count};
        const Result exact = find_rung("reference").sum(problem), found = find_rung("gpu").sum(problem);
        ASSERT_EQ(found.bits, exact.bits) << how.name << " " << count << " × 1/" << denominator;
        ASSERT_EQ(found.value, exact.value) << how.name;
        ASSERT_EQ(found.addend, exact.addend) << how.name;
        ASSERT_EQ(found.last_change, exact.last_change) << how.name << " " << count << " × 1/" << denominator;
      }
    }
  }
}

}  // namespace
}  // namespace syslab::accumulation
