#include "tests/laws/ladder_test.hpp"

#include "property_tests/elementwise/laws.hpp"

namespace syslab::elementwise {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class ElementwiseLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(ElementwiseLaw, Holds) { property::expect_holds(GetParam(), 60); }

INSTANTIATE_TEST_SUITE_P(Ladder, ElementwiseLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(ElementwiseLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::elementwise
