#include "tests/laws/ladder_test.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "property_tests/weighted_sum/laws.hpp"

namespace syslab::weighted_sum {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class WeightedSumLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(WeightedSumLaw, Holds) { property::expect_holds(GetParam(), 100); }

INSTANTIATE_TEST_SUITE_P(Ladder, WeightedSumLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(WeightedSumLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

// What the largest draws were, and that the line about what is never drawn says the same.
TEST(WeightedSumLaws, DrawLongRowsAndColumnsUnderEachContract) {
  for (const check::Contract contract : {check::Contract::handout, check::Contract::full}) {
    Rung rung = find_rung("naive");
    rung.digest = "00ff";  // handed in
    std::int64_t rows = 0, dim = 0, elements = 0;
    rung.forward = [&, call = rung.forward](const Problem& p, const ForwardArgs& args, ops::Workspace workspace,
                                            device::Stream stream) {
      rows = std::max(rows, p.rows);
      dim = std::max(dim, p.dim);
      elements = std::max(elements, p.rows * p.dim);
      call(p, args, workspace, stream);
    };
    const check::LawResult result = laws(rung).front().search(property::ci_request(contract, 100));
    ASSERT_EQ(result.outcome, check::Outcome::passed) << result.message;
    EXPECT_GE(dim, 1024) << to_string(contract);
    EXPECT_GE(rows, 1024) << to_string(contract);
    EXPECT_LE(std::max(rows, dim), 4096);
    EXPECT_LE(elements, 40'000);
    const bool handout = contract == check::Contract::handout;
    EXPECT_THAT(result.finding.never_drawn,
                testing::HasSubstr(handout ? "rows or dim other than 16, 32, 64, 128, 256, 1024, 2048"
                                           : "rows > 4096 and some above 600; dim > 4096 and some above 600"));
    EXPECT_THAT(result.finding.never_drawn, testing::HasSubstr("elements of x > 40000"));
  }
}

}  // namespace
}  // namespace syslab::weighted_sum
