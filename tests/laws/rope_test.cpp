#include "tests/laws/ladder_test.hpp"

#include "ops/rope/eager.hpp"
#include "property_tests/rope/laws.hpp"

namespace syslab::rope {
namespace {

const property::LadderCases& all() {
  static const std::vector<Rung> rungs =
      property::with_eager(ladder(), find_rung("naive"), eager_workspace_bytes, eager_forward, eager_backward);
  static const property::LadderCases found = property::ladder_cases(rungs, laws);
  return found;
}

class RopeLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(RopeLaw, Holds) { property::expect_holds(GetParam(), 100); }

TEST(RopeLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

INSTANTIATE_TEST_SUITE_P(Ladder, RopeLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace syslab::rope
