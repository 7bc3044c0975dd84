#include "tests/laws/ladder_test.hpp"

#include "property_tests/embedding/laws.hpp"

namespace syslab::embedding {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class EmbeddingLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(EmbeddingLaw, Holds) { property::expect_holds(GetParam(), 60); }

INSTANTIATE_TEST_SUITE_P(Ladder, EmbeddingLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(EmbeddingLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

}  // namespace
}  // namespace syslab::embedding
