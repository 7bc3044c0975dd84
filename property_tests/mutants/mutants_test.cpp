// The laws on trial: each planted fault must be found, by the law that is meant for it, within CI's budget; the sound
// twin must pass them all.
#include <algorithm>
#include <set>

#include "property_tests/attention/laws.hpp"
#include "property_tests/ladder_test.hpp"
#include "property_tests/mutants/tiled_attention.hpp"

namespace syslab::attention {
namespace {

using check::Contract;
using check::LawResult;
using check::Outcome;

check::Law law_named(const std::string& id, const Rung& rung) {
  for (const check::Law& law : laws(rung)) {
    if (law.id == id) return law;
  }
  throw Error(ErrorKind::usage, "no law is called " + id);
}

class MutantTest : public testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsCaughtByItsLaw) {
  const Mutant& mutant = GetParam();
  const check::Law law = law_named(mutant.caught_by, tiled_with(mutant.fault));
  const LawResult result = law.search(property::ci_request(Contract::full, 40));
  ASSERT_EQ(result.outcome, Outcome::falsified) << property::story(law, result);
  EXPECT_FALSE(result.counterexample.empty());

  check::LawRequest replay = property::ci_request(Contract::full, 40);
  replay.reproduce = result.reproduce;
  const LawResult again = law.search(replay);
  EXPECT_EQ(again.outcome, Outcome::falsified) << property::story(law, again);
  EXPECT_EQ(again.counterexample, result.counterexample);
  // A fault of order changes its numbers from run to run.
  if (mutant.fault != Fault::unordered_tiles) {
    EXPECT_EQ(again.message, result.message);
  }

  // The counterexample is the fault's, not the law's: the sound twin takes the same input.
  const LawResult mended = law_named(mutant.caught_by, tiled_with(Fault::none)).search(replay);
  EXPECT_EQ(mended.outcome, Outcome::passed) << property::story(law, mended);
}

INSTANTIATE_TEST_SUITE_P(Planted, MutantTest, testing::ValuesIn(mutants()),
                         [](const auto& info) { return info.param.name; });

const property::LadderCases& twin() {
  static const property::LadderCases found = property::ladder_cases(std::vector{tiled_with(Fault::none)}, laws);
  return found;
}

class TwinTest : public testing::TestWithParam<property::LadderCase> {};

TEST_P(TwinTest, Obeys) { property::expect_holds(GetParam(), GetParam().contract == Contract::full ? 60 : 15); }

INSTANTIATE_TEST_SUITE_P(Sound, TwinTest, testing::ValuesIn(twin().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(Mutants, HaveATwinToWhichEveryLawApplies) { EXPECT_TRUE(twin().left_out.empty()); }

TEST(Mutants, PutEveryLawOnTrial) {
  std::set<std::string> tried;
  for (const Mutant& mutant : mutants()) tried.insert(mutant.caught_by);
  for (const property::Statement& law : law_list()) EXPECT_EQ(tried.count(law.id), 1U) << law.id;
}

}  // namespace
}  // namespace syslab::attention
