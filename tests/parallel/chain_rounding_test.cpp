// The bounds of the laws of full sharding are no smaller than what fp16 rounds, also where its numbers are too small.
#include "property_tests/data_parallel/rounding.hpp"

#include <gtest/gtest.h>

namespace syslab::data_parallel {
namespace {

double in_fp16(double value) { return to_float(to_f16(static_cast<float>(value))); }

constexpr double kSizes[]{1.1e-8, 3.3e-7, 5e-6, 1.7e-5, 3.1e-4, 0.0049, 0.23, 0.9};

TEST(ChainRounding, BoundsProductsAndTheirSumsInFp16) {
  const Rounding by = rounding_in(DType::f16);
  for (const double weight : kSizes) {
    for (const double x : kSizes) {
      Bounded y, gradient;
      double found = 0;
      constexpr int kTerms = 4;
      for (int i = 0; i < kTerms; ++i) {
        add_product(y, weight, 0, x, kTerms, by);
        found = in_fp16(found + in_fp16(in_fp16(weight) * in_fp16(x)));
      }
      EXPECT_LE(std::abs(found - y.value), y.error) << weight << " times " << x;
      const Bounded of_output = as_read(weight, 0, by);
      add_to_gradient(gradient, of_output, x, by);
      EXPECT_LE(std::abs(in_fp16(in_fp16(weight) * in_fp16(x)) - gradient.value), gradient.error)
          << weight << " times " << x;
    }
  }
}

TEST(ChainRounding, BoundsMeansInFp16ThatAreScaledBeforeOrBehindTheSum) {
  const Rounding by = rounding_in(DType::f16);
  constexpr int kRanks = 3;
  for (const double part : kSizes) {
    double before = 0, behind = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      before = in_fp16(before + in_fp16(in_fp16(part) / kRanks));
      behind = in_fp16(behind + in_fp16(part));
    }
    behind = in_fp16(behind / kRanks);
    const Bounded sum{kRanks * part, kRanks * part, kRanks * by.of(part)};
    EXPECT_LE(std::abs(before - part), error_of_mean(sum, kRanks, by)) << part;
    EXPECT_LE(std::abs(behind - part), error_of_mean(sum, kRanks, by)) << part;
  }
}

}  // namespace
}  // namespace syslab::data_parallel
