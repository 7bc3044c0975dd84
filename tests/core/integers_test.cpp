#include "core/integers.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace syslab {
namespace {

TEST(Integers, CeilDivCountsWhatCovers) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(1, 4), 1);
  EXPECT_EQ(ceil_div(4, 4), 1);
  EXPECT_EQ(ceil_div(5, 4), 2);
  EXPECT_EQ(ceil_div(std::int64_t{1} << 40, 3), 366503875926);
}

TEST(Integers, RoundUpGivesMultiples) {
  EXPECT_EQ(round_up(std::size_t{0}, 128), 0U);
  EXPECT_EQ(round_up(std::size_t{1}, 128), 128U);
  EXPECT_EQ(round_up(std::size_t{128}, 128), 128U);
  EXPECT_EQ(round_up(std::size_t{129}, 128), 256U);
}

}  // namespace
}  // namespace syslab
