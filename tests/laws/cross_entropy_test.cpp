#include "tests/laws/ladder_test.hpp"

#include "property_tests/cross_entropy/laws.hpp"

namespace syslab::cross_entropy {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class CrossEntropyLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(CrossEntropyLaw, Holds) { property::expect_holds(GetParam(), 60); }

INSTANTIATE_TEST_SUITE_P(Ladder, CrossEntropyLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(CrossEntropyLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::cross_entropy
