#include "tests/laws/ladder_test.hpp"

#include "ops/swiglu/eager.hpp"
#include "property_tests/swiglu/laws.hpp"

namespace syslab::swiglu {
namespace {

const property::LadderCases& all() {
  static const std::vector<Rung> rungs =
      property::with_eager(ladder(), find_rung("naive"), eager_workspace_bytes, eager_forward, eager_backward);
  static const property::LadderCases found = property::ladder_cases(rungs, laws);
  return found;
}

class SwigluLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(SwigluLaw, Holds) { property::expect_holds(GetParam(), 100); }

TEST(SwigluLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

INSTANTIATE_TEST_SUITE_P(Ladder, SwigluLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace syslab::swiglu
