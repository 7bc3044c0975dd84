#include "ops/accumulation/accumulation.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "core/error.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::accumulation {
namespace {

struct Known {
  const char* name;
  std::uint32_t bits;
  double value;
  double addend;
  std::int64_t last_change;
};

// Computed apart from this project, with exact rationals rounded by definition (Python's Fraction); fp16 confirmed by
// NumPy's half type.
const Known kKnown[] = {
    {"fp32", 0x4120008cU, 10.000133514404296875, 0.009999999776482582092, 1000},
    {"fp16", 0x48faU, 9.953125, 0.01000213623046875, 1000},
    {"fp32_fp16_direct", 0x412008c0U, 10.00213623046875, 0.01000213623046875, 1000},
    {"fp32_fp16_converted", 0x412008c0U, 10.00213623046875, 0.01000213623046875, 1000},
    {"bf16", 0x4080U, 4.0, 0.010009765625, 350},
};

TEST(Accumulation, EveryRungGivesTheKnownBitsInEveryCase) {
  ASSERT_EQ(cases().size(), std::size(kKnown));
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const Known& known : kKnown) {
      const Result result = rung.sum({find_case(known.name)});
      EXPECT_EQ(result.bits, known.bits) << rung.name << " " << known.name;
      EXPECT_EQ(result.value, known.value) << rung.name << " " << known.name;
      EXPECT_EQ(result.addend, known.addend) << rung.name << " " << known.name;
      EXPECT_EQ(result.last_change, known.last_change) << rung.name << " " << known.name;
    }
  }
}

TEST(Accumulation, BitsAndValueAreTheSameNumber) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const Case& how : cases()) {
      const Result result = rung.sum({how});
      const double decoded = how.accumulator == DType::f32   ? to_double(std::bit_cast<float>(result.bits))
                             : how.accumulator == DType::f16 ? to_double(f16{static_cast<std::uint16_t>(result.bits)})
                                                             : to_double(bf16{static_cast<std::uint16_t>(result.bits)});
      EXPECT_EQ(decoded, result.value) << rung.name << " " << how.name;
    }
  }
}

TEST(Accumulation, RungsAgreeToTheBitForOtherConstantsAndCounts) {
  for (const Case& how : cases()) {
    for (const std::int64_t denominator : {1, 2, 3, 7, 10, 64, 99, 1000, 1023}) {
      for (const std::int64_t count : {1, 2, 3, 255, 256, 257, 2049, 5000}) {
        const Problem problem{how, denominator, count};
        const Result exact = find_rung("reference").sum(problem), found = find_rung("host").sum(problem);
        ASSERT_EQ(found.bits, exact.bits) << how.name << " " << count << " × 1/" << denominator;
        ASSERT_EQ(found.last_change, exact.last_change) << how.name << " " << count << " × 1/" << denominator;
      }
    }
  }
}

TEST(Accumulation, CountingByOnesStallsWhereTheFormatsDigitsEnd) {
  // 2^p + 1 is a tie that goes to the even 2^p.
  EXPECT_EQ(find_rung("host").sum({find_case("fp16"), 1, 5000}).value, 2048.0);
  EXPECT_EQ(find_rung("host").sum({find_case("bf16"), 1, 5000}).value, 256.0);
  EXPECT_EQ(find_rung("host").sum({find_case("bf16"), 1, 5000}).last_change, 256);
}

TEST(Accumulation, ASumThatLeavesTheFormatIsRefusedByTheReference) {
  const Problem subnormal{find_case("fp16"), 1 << 20, 1};
  EXPECT_THROW(find_rung("reference").sum(subnormal), Error);
}

TEST(Accumulation, BitsAreWrittenAtTheWidthOfTheType) {
  EXPECT_EQ(bits_text(find_rung("host").sum({find_case("fp32")}), DType::f32), "0x4120008c");
  EXPECT_EQ(bits_text(find_rung("host").sum({find_case("bf16")}), DType::bf16), "0x4080");
}

TEST(Accumulation, UnknownNamesComeWithTheNearest) {
  try {
    find_case("bf61");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("bf16"), std::string::npos);
  }
}

}  // namespace
}  // namespace syslab::accumulation
