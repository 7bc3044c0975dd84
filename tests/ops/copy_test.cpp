#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "device/buffer.hpp"
#include "ops/copy/copy.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::copy {
namespace {

std::vector<std::uint8_t> pattern(std::size_t bytes) {
  std::vector<std::uint8_t> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::uint8_t>(i * 167 + i / 251);
  return values;
}

TEST(Copy, EveryRungMovesEveryByteWhateverItIs) {
  // Bytes of every value: NaNs, infinities and subnormals among them must arrive as bits.
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const std::size_t elements : {1UL, 3UL, 31UL, 4097UL, (1UL << 19) + 7, (1UL << 20) + 1}) {
      const Problem problem{static_cast<std::int64_t>(elements), DType::bf16};
      if (rung.supports(problem)) continue;  // no streaming stores
      std::vector<std::uint8_t> from = pattern(2 * elements), to(2 * elements + 16, 0xAA);
      const Args args{ConstTensorView(from.data(), problem.dtype, Shape{problem.elements}),
                      TensorView(to.data() + 6, problem.dtype, Shape{problem.elements})};
      validate(problem, args);
      rung.run(problem, args, {});
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 6)) << rung.name << " " << elements;
      EXPECT_EQ(std::accumulate(to.begin(), to.begin() + 6, 0), 6 * 0xAA) << rung.name;
      EXPECT_EQ(std::accumulate(to.end() - 10, to.end(), 0), 10 * 0xAA) << rung.name;
    }
  }
}

TEST(Copy, CountsWhatIsReadAndWhatIsWritten) { EXPECT_EQ(traffic_bytes({1024, DType::f64}), 16384.0); }

TEST(Copy, RefusesWhatItCannotTakeByName) {
  EXPECT_THROW(validate(Problem{0, DType::f32}), Error);
  std::vector<float> memory(8);
  const Problem problem{4, DType::f32};
  EXPECT_THROW(validate(problem, {ConstTensorView(memory.data(), DType::f32, Shape{4}, {2}),
                                  TensorView(memory.data(), DType::f32, Shape{4})}),
               Error);
  EXPECT_THROW(find_rung("memcopy"), Error);
}

}  // namespace
}  // namespace syslab::copy
