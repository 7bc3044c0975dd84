#include "worker/cases/glance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace syslab::worker {
namespace {

std::optional<Far> far(const std::vector<float>& output, const Glimpse& glimpse, double bound) {
  return far_from(ConstTensorView(output.data(), DType::f32, {static_cast<std::int64_t>(output.size())}), glimpse,
                  bound);
}

TEST(Glance, SeesAStretchThatAnswersAnotherQuestionThoughTheBoundIsWider) {
  const std::vector<float> output{9, 0.02F, -0.01F, 0.03F, 9};
  EXPECT_FALSE(far(output, {0, 1, {0.02, -0.01, 0.03}}, 1e-2));
  EXPECT_FALSE(far(output, {0, 1, {0.0201, -0.0101, 0.0301}}, 1e-2)) << "half precision";
  const std::optional<Far> found = far(output, {0, 1, {0.02, 0.01, 0.03}}, 1e-2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->element, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(found->found), -0.01F);
}

TEST(Glance, SeesASingleElementBeyondTheBound) {
  std::vector<float> output(200, 1.0F);
  Glimpse glimpse{0, 0, std::vector<double>(200, 1.0)};
  output[150] = 1.0001F;  // a norm of many numbers differs by as little from that of others
  ASSERT_TRUE(far(output, glimpse, 1e-6));
  EXPECT_EQ(far(output, glimpse, 1e-6)->element, 150);
  EXPECT_FALSE(far(output, glimpse, 1e-4));
}

TEST(Glance, ATrifleBesideTheBoundIsNoSign) {
  EXPECT_FALSE(far({1e-8F, -1e-8F}, {0, 0, {0, 1e-17}}, 1e-6)) << "what cancels is rounding, whatever its size";
}

TEST(Glance, InfinitiesMustBeMetAndNansAreFar) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(far({-INFINITY}, {0, 0, {-kInfinity}}, 1e-3));
  EXPECT_TRUE(far({1}, {0, 0, {-kInfinity}}, 1e-3));
  EXPECT_TRUE(far({NAN}, {0, 0, {1}}, 1e-3));
}

}  // namespace
}  // namespace syslab::worker
