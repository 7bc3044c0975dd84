#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/random_bits.hpp"

namespace syslab {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers published with Random123 (kat_vectors, philox 4x32 10).
TEST(Philox, MeetsThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, BeginsWithTheWordsOfItsFirstBlock) {
  const RandomStream stream(0);
  EXPECT_EQ(stream.bits(0), 0x6627e8d5U);
  EXPECT_EQ(stream.bits(3), 0x9b00dbd8U);
}

TEST(RandomStream, DerivesUnrelatedKeysFromEachPart) {
  const auto key = [](std::uint64_t seed, const char* experiment, const char* uid, const char* name) {
    return RandomStream::derive(seed, experiment, uid, name).key();
  };
  const std::vector<std::uint64_t> keys{key(1, "e", "c", "q"), key(2, "e", "c", "q"), key(1, "f", "c", "q"),
                                        key(1, "e", "d", "q"), key(1, "e", "c", "k"), key(1, "ec", "", "q"),
                                        key(1, "", "ec", "q"), key(1, "e", "cq", "")};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(std::count(keys.begin(), keys.end(), keys[i]), 1) << i;
  }
  EXPECT_EQ(keys[0], key(1, "e", "c", "q"));
}

TEST(RandomStream, UniformsLieInTheHalfOpenUnitInterval) {
  const RandomStream stream(7);
  double sum = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const float u = stream.uniform(static_cast<std::uint64_t>(i));
    ASSERT_TRUE(u >= 0.0F && u < 1.0F);
    sum += u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
}

// Exact on every machine and compiler: a change here changes the inputs of every stored case.
TEST(RandomStream, NormalsAreBitExact) {
  const RandomStream stream = RandomStream::derive(1, "golden", "case", "q");
  EXPECT_EQ(stream.key(), 0x3c8066a43c007db0ULL);
  const std::array<std::uint32_t, 8> golden{0x3d89f23a, 0x3f7599af, 0x3e6a77d1, 0xbf9afaed,
                                            0xbeea7112, 0x3fb5831b, 0xbf1b5bae, 0xbe9bedb2};
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(stream.normal(i)), golden[i]) << i;
  }
}

// The map from bits to value once more, as its words say it: around every border between octaves and segments.
TEST(RandomStream, NormalsFollowTheTableAtEveryBorder) {
  static constexpr std::int32_t kTable[] = {
#include "core/normal_table.inc"
  };
  const auto expected = [](std::uint32_t t) {
    const int octave = std::max(static_cast<int>(std::bit_width(t)) - random_bits::kOctaveBottom, 0);
    const int within_bits = 10 + std::max(octave - 1, 0);
    const std::uint32_t begin = octave == 0 ? 0 : 1U << (15 + octave);
    const std::uint32_t node = 64 * static_cast<std::uint32_t>(octave) + ((t - begin) >> within_bits);
    const std::int64_t drop = kTable[node] - kTable[node + 1], within = (t - begin) % (1U << within_bits);
    return static_cast<float>(kTable[node] - drop * within / (std::int64_t{1} << within_bits)) * 0x1p-28F;
  };
  for (int power = 0; power < 31; ++power) {
    for (std::uint32_t segment = 0; segment < 64; ++segment) {
      for (const std::uint32_t near : {0U, 1U, 2U, 0xffffffffU}) {
        const std::uint32_t t = ((1U << power) + ((1U << power) >> 6) * segment + near) & 0x7fffffffU;
        ASSERT_EQ(random_bits::normal(t, kTable), expected(t)) << t;
        ASSERT_EQ(random_bits::normal(t | 0x80000000U, kTable), -expected(t)) << t;
      }
    }
  }
  EXPECT_EQ(random_bits::normal(0x7fffffffU, kTable), expected(0x7fffffffU));
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST(RandomStream, NormalsHaveTheMomentsAndQuantilesOfANormal) {
  constexpr std::size_t kCount = 1 << 20;
  std::vector<float> z(kCount);
  fill(TensorView(z.data(), DType::f32, {static_cast<std::int64_t>(kCount)}), RandomStream(11), Distribution::normal);
  double sum = 0, sum2 = 0, sum3 = 0, sum4 = 0;
  for (const double x : z) sum += x, sum2 += x * x, sum3 += x * x * x, sum4 += x * x * x * x;
  const double n = kCount;
  // Five standard errors of each sample moment.
  EXPECT_NEAR(sum / n, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(sum2 / n, 1.0, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(sum3 / n, 0.0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(sum4 / n, 3.0, 5 * std::sqrt(96 / n));
  for (const double cut : {-4.5, -4.0, -3.0, -2.0, -1.0, -0.3, 0.0, 0.3, 1.0, 2.0, 3.0, 4.0, 4.5}) {
    const double p = normal_cdf(cut);
    const auto below = std::count_if(z.begin(), z.end(), [cut](float x) { return x < cut; });
    EXPECT_NEAR(static_cast<double>(below) / n, p, 5 * std::sqrt(p * (1 - p) / n)) << "below " << cut;
  }
}

// The whole map from bits to value at once: z must rise with the bits' rank and hit the quantile it stands for.
TEST(RandomStream, NormalQuantilesAreTrueToTheTable) {
  // Inverts by search: the stream's values sorted are compared with the exact quantiles through their own probability.
  constexpr std::size_t kCount = 1 << 16;
  const RandomStream stream(3);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint32_t bits = stream.bits(i);
    const double q = ((bits & 0x7fffffffU) + 0.5) * 0x1p-32;  // upper tail
    const double z = std::abs(static_cast<double>(stream.normal(i)));
    ASSERT_EQ(std::signbit(stream.normal(i)), bits >> 31 != 0 && z != 0);
    ASSERT_NEAR(1.0 - normal_cdf(z), q, 2e-5 * q + 1e-5) << "bits " << bits;
    ASSERT_LT(z, 5.5);
  }
}

template <typename T>
std::vector<double> filled(DType dtype, Distribution distribution, float scale) {
  std::vector<T> memory(24);
  const TensorView view(memory.data(), dtype, {2, 3, 4});
  fill(view, RandomStream(5), distribution, scale);
  return to_doubles(view);
}

TEST(Fill, RoundsOnceFromFloatToTheDtype) {
  const auto exact = filled<float>(DType::f32, Distribution::normal, 0.37F);
  EXPECT_EQ(filled<double>(DType::f64, Distribution::normal, 0.37F), exact);
  const auto half = filled<f16>(DType::f16, Distribution::normal, 0.37F);
  const auto brain = filled<bf16>(DType::bf16, Distribution::normal, 0.37F);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(half[i], to_float(to_f16(static_cast<float>(exact[i]))));
    EXPECT_EQ(brain[i], to_float(to_bf16(static_cast<float>(exact[i]))));
  }
}

TEST(Fill, GivesEachElementTheNumberOfItsRowMajorIndex) {
  const RandomStream stream(9);
  constexpr std::uint64_t kFirst = 1'000'003;
  for (const Distribution distribution : {Distribution::normal, Distribution::uniform, Distribution::ramp}) {
    std::vector<float> plain(24);
    fill(TensorView(plain.data(), DType::f32, {2, 3, 4}), stream, distribution, 2.0F, kFirst);
    // The same tensor transposed in memory, with gaps that must stay as they were.
    std::vector<float> spread(200, -77.0F);
    const TensorView strided(spread.data(), DType::f32, {2, 3, 4}, {5, 50, 13});
    fill(strided, stream, distribution, 2.0F, kFirst);
    for (int a = 0; a < 2; ++a) {
      for (int b = 0; b < 3; ++b) {
        for (int c = 0; c < 4; ++c) {
          EXPECT_EQ(spread[static_cast<std::size_t>(5 * a + 50 * b + 13 * c)],
                    plain[static_cast<std::size_t>((a * 3 + b) * 4 + c)]);
        }
      }
    }
    EXPECT_EQ(std::count(spread.begin(), spread.end(), -77.0F), 200 - 24);
  }
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{61}, kFirst, std::uint64_t{1} << 40}) {
    std::vector<float> many(1000);
    fill(TensorView(many.data(), DType::f32, {1000}), stream, Distribution::normal, 0.37F, begin);
    for (std::size_t i = 0; i < many.size(); ++i)
      ASSERT_EQ(many[i], stream.normal(begin + i) * 0.37F) << begin << " " << i;
    fill(TensorView(many.data(), DType::f32, {1000}), stream, Distribution::uniform, 1.0F, begin);
    for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(many[i], stream.uniform(begin + i)) << begin << " " << i;
  }
  std::vector<float> tail(4);
  fill(TensorView(tail.data(), DType::f32, {4}), stream, Distribution::normal, 1.0F, kFirst);
  EXPECT_EQ(tail[2], stream.normal(kFirst + 2));
}

TEST(Fill, WritesNothingIntoAnEmptyTensorAndOneNumberIntoAScalar) {
  float cell = 42.0F;
  fill(TensorView(&cell, DType::f32, {3, 0}), RandomStream(1), Distribution::zeros);
  EXPECT_EQ(cell, 42.0F);
  fill(TensorView(&cell, DType::f32, Shape{}), RandomStream(1), Distribution::zeros);
  EXPECT_EQ(cell, 0.0F);
}

}  // namespace
}  // namespace syslab
