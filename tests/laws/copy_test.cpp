#include "tests/laws/ladder_test.hpp"

#include "property_tests/copy/laws.hpp"

namespace syslab::copy {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class CopyLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(CopyLaw, Holds) { property::expect_holds(GetParam(), 100); }

INSTANTIATE_TEST_SUITE_P(Ladder, CopyLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(CopyLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::copy
