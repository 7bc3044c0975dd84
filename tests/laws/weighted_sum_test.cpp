#include "tests/laws/ladder_test.hpp"

#include "property_tests/weighted_sum/laws.hpp"

namespace syslab::weighted_sum {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class WeightedSumLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(WeightedSumLaw, Holds) { property::expect_holds(GetParam(), 100); }

INSTANTIATE_TEST_SUITE_P(Ladder, WeightedSumLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(WeightedSumLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::weighted_sum
