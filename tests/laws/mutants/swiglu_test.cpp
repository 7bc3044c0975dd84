// Each planted fault is found by the law that is meant for it; the sound twin obeys them all.
#include "property_tests/mutants/swiglu.hpp"

#include <set>

#include "property_tests/swiglu/laws.hpp"
#include "tests/laws/ladder_test.hpp"
#include "tests/laws/mutant_test.hpp"

namespace syslab::swiglu {
namespace {

class SwigluMutant : public testing::TestWithParam<Mutant> {};

TEST_P(SwigluMutant, IsCaughtByItsLaw) {
  property::expect_caught(GetParam().caught_by, laws(naive_with(GetParam().fault)), laws(naive_with(Fault::none)));
}

INSTANTIATE_TEST_SUITE_P(Planted, SwigluMutant, testing::ValuesIn(mutants()),
                         [](const auto& info) { return info.param.name; });

TEST(SwigluMutants, PutEveryLawOnTrial) {
  std::set<std::string> tried;
  for (const Mutant& mutant : mutants()) tried.insert(mutant.caught_by);
  for (const LawInfo& law : law_list()) EXPECT_EQ(tried.count(law.id), 1U) << law.id;
}

}  // namespace
}  // namespace syslab::swiglu
