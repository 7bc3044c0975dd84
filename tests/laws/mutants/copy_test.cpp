// Each planted fault of the copy is found by the law that is meant for it; the sound twin obeys them all.
#include "property_tests/mutants/copy.hpp"

#include <set>

#include "property_tests/copy/laws.hpp"
#include "tests/laws/ladder_test.hpp"
#include "tests/laws/mutant_test.hpp"

namespace syslab::copy {
namespace {

class CopyMutant : public testing::TestWithParam<Mutant> {};

TEST_P(CopyMutant, IsCaughtByItsLaw) {
  property::expect_caught(GetParam().caught_by, laws(plain_with(GetParam().fault)), laws(plain_with(Fault::none)));
}

INSTANTIATE_TEST_SUITE_P(Planted, CopyMutant, testing::ValuesIn(mutants()),
                         [](const auto& info) { return info.param.name; });

TEST(CopyMutants, HaveATwinThatObeysEveryLaw) {
  const auto twin = property::ladder_cases(std::vector{plain_with(Fault::none)}, laws);
  EXPECT_TRUE(twin.left_out.empty());
  for (const property::LadderCase& one : twin.cases) property::expect_holds(one, 60);
}

TEST(CopyMutants, PutEveryLawOnTrial) {
  std::set<std::string> tried;
  for (const Mutant& mutant : mutants()) tried.insert(mutant.caught_by);
  for (const LawInfo& law : law_list()) EXPECT_EQ(tried.count(law.id), 1U) << law.id;
}

}  // namespace
}  // namespace syslab::copy
