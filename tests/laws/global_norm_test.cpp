#include "tests/laws/ladder_test.hpp"

#include "property_tests/global_norm/laws.hpp"

namespace syslab::global_norm {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class GlobalNormLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(GlobalNormLaw, Holds) { property::expect_holds(GetParam(), 60); }

INSTANTIATE_TEST_SUITE_P(Ladder, GlobalNormLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(GlobalNormLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::global_norm
