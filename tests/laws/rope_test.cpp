#include "tests/laws/ladder_test.hpp"

#include <gmock/gmock.h>

#include <algorithm>

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

TEST(RopeLaws, DrawTablesOfAsManyRowsAndOfMoreThanTheSequenceHas) {
  Rung rung = find_rung("naive");
  rung.digest = "00ff";  // handed in
  std::int64_t least = 1, most = 0;
  rung.forward = [&, call = rung.forward](const Problem& p, const Args& args, ops::Workspace workspace,
                                          device::Stream stream) {
    least = std::min(least, args.cos.size(0) - p.seq);
    most = std::max(most, args.cos.size(0) - p.seq);
    EXPECT_EQ(args.sin.size(0), args.cos.size(0));
    call(p, args, workspace, stream);
  };
  for (const check::Law& law : laws(rung)) {
    if (law.id == "rope.gradient_equals_oracle") continue;  // its calls are backward alone
    least = 1;
    most = 0;
    const check::LawResult result = law.search(property::ci_request(check::Contract::full, 20));
    ASSERT_EQ(result.outcome, check::Outcome::passed) << result.message;
    EXPECT_EQ(least, 0) << law.id;
    EXPECT_EQ(most, 64) << law.id;
    EXPECT_THAT(result.finding.never_drawn, testing::HasSubstr("seq > 200; head_dim > 160"));
    EXPECT_THAT(result.finding.never_drawn, testing::HasSubstr("rows of cos and sin behind seq > 64"));
  }
}

TEST(RopeLaws, OfOurOwnRungsNothingIsLeftOut) {
  EXPECT_EQ(laws(find_rung("naive")).front().search(property::ci_request(check::Contract::full, 5)).finding.never_drawn,
            "");
}

}  // namespace
}  // namespace syslab::rope
