#include "tests/laws/ladder_test.hpp"

#include "property_tests/adamw/laws.hpp"

namespace syslab::adamw {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class AdamWLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(AdamWLaw, Holds) { property::expect_holds(GetParam(), 60); }

INSTANTIATE_TEST_SUITE_P(Ladder, AdamWLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(AdamWLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::adamw
