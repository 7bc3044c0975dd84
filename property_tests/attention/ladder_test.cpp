#include "property_tests/ladder_test.hpp"

#include <gmock/gmock.h>

#include "property_tests/attention/laws.hpp"

namespace syslab::attention {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class AttentionLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(AttentionLaw, Holds) {
  property::expect_holds(GetParam(), GetParam().contract == check::Contract::full ? 60 : 15);
}

INSTANTIATE_TEST_SUITE_P(Ladder, AttentionLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

// The oracle does not judge the double-precision rung, nor the naive kernel itself; all else applies to all rungs.
TEST(AttentionLaws, LeaveOutOnlyWhatCannotBeAsked) {
  EXPECT_THAT(all().left_out,
              testing::UnorderedElementsAre(
                  "reference: attention.equals_oracle", "reference: attention.lse_equals_oracle",
                  "reference: attention.gradients_equal_oracle", "reference: attention.large_scores",
                  "reference: attention.half_no_worse_than_naive", "naive: attention.half_no_worse_than_naive"));
}

}  // namespace
}  // namespace syslab::attention
