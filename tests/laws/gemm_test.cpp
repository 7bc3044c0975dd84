#include "tests/laws/ladder_test.hpp"

#include "property_tests/gemm/laws.hpp"

namespace syslab::gemm {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class GemmLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(GemmLaw, Holds) { property::expect_holds(GetParam(), 100); }

INSTANTIATE_TEST_SUITE_P(Ladder, GemmLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(GemmLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::gemm
