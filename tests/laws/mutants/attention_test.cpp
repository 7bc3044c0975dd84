// Each planted fault of attention is found by the law that is meant for it; the sound twin obeys them all.
#include "property_tests/mutants/attention.hpp"

#include <set>

#include "property_tests/attention/laws.hpp"
#include "tests/laws/ladder_test.hpp"
#include "tests/laws/mutant_test.hpp"

namespace syslab::attention {
namespace {

using check::Contract;
using check::LawResult;
using check::Outcome;

class AttentionMutant : public testing::TestWithParam<Mutant> {};

TEST_P(AttentionMutant, IsCaughtByItsLaw) {
  const Mutant& mutant = GetParam();
  // A fault of order or of memory changes its numbers from run to run.
  const bool repeats = mutant.fault != Fault::unordered_tiles && mutant.fault != Fault::kept_output &&
                       mutant.fault != Fault::kept_forward && mutant.fault != Fault::kept_mask &&
                       mutant.fault != Fault::rare_slip;
  property::expect_caught(mutant.caught_by, laws(tiled_with(mutant.fault)), laws(tiled_with(Fault::none)), repeats);
}

INSTANTIATE_TEST_SUITE_P(Planted, AttentionMutant, testing::ValuesIn(mutants()),
                         [](const auto& info) { return info.param.name; });

const property::LadderCases& twin() {
  static const property::LadderCases found = property::ladder_cases(std::vector{tiled_with(Fault::none)}, laws);
  return found;
}

class AttentionTwin : public testing::TestWithParam<property::LadderCase> {};

TEST_P(AttentionTwin, Obeys) { property::expect_holds(GetParam(), GetParam().contract == Contract::full ? 60 : 15); }

INSTANTIATE_TEST_SUITE_P(Sound, AttentionTwin, testing::ValuesIn(twin().cases),
                         [](const auto& info) { return info.param.name(); });

TEST(AttentionMutants, HaveATwinToWhichEveryLawApplies) { EXPECT_TRUE(twin().left_out.empty()); }

TEST(AttentionMutants, BitsThatDifferByChanceAreKeptState) {
  const std::vector<check::Law> faulty = laws(tiled_with(Fault::unordered_tiles));
  const check::Law& law = property::law_named("attention.bitwise_repeatable", faulty);
  const LawResult result = law.search(property::ci_request(Contract::full, 40));
  EXPECT_EQ(result.finding.kind, FindingKind::kept_state) << property::story(law, result);
}

TEST(AttentionMutants, AreCaughtUnderTheHandoutToo) {
  // The others need what the hand-out does not ask: ragged tiles, heads, repeatability, exactness.
  const std::set<Fault> asked{Fault::mask_off_by_one,   Fault::missing_rescale,    Fault::wrong_scale,
                              Fault::swapped_gradients, Fault::stale_lse,          Fault::binary_logarithm,
                              Fault::write_past_end,    Fault::no_running_maximum, Fault::shared_batch,
                              Fault::dropped_row_term};
  for (const Mutant& mutant : mutants()) {
    if (asked.count(mutant.fault) == 0) continue;
    const std::vector<check::Law> faulty = laws(tiled_with(mutant.fault));
    const check::Law& law = property::law_named(mutant.caught_by, faulty);
    const LawResult result = law.search(property::ci_request(Contract::handout, 20));
    EXPECT_EQ(result.outcome, Outcome::falsified) << property::story(law, result);
  }
}

// The hand-out's absolute tolerance would hide all of a small O, and all gradients of a small dO.
TEST(AttentionMutants, OfSomebodysOwnAreCaughtWhereValuesAreSmall) {
  const auto expect_outcome = [](Outcome outcome, Fault fault, Pass pass) {
    const std::vector<check::Law> asked = laws_of(tiled_with(fault), pass, Domain{});
    const bool forward = pass == Pass::forward;
    const check::Law& law =
        property::law_named(forward ? "attention.equals_oracle" : "attention.gradients_equal_oracle", asked);
    const LawResult result = law.search(property::ci_request(Contract::full, 30));
    EXPECT_EQ(result.outcome, outcome) << tiled_with(fault).name << property::story(law, result);
  };
  expect_outcome(Outcome::falsified, Fault::small_values, Pass::forward);
  expect_outcome(Outcome::falsified, Fault::small_gradients, Pass::backward);
  for (const Fault right : {Fault::none, Fault::rounded_weights}) {
    expect_outcome(Outcome::passed, right, Pass::forward);
    expect_outcome(Outcome::passed, right, Pass::backward);
  }
}

TEST(AttentionMutants, MultiplyInTf32ByTheHandoutsLeave) {
  const auto narrow = property::ladder_cases(std::vector{tiled_with(Fault::narrow_products)}, laws);
  for (const property::LadderCase& one : narrow.cases) {
    if (one.contract == Contract::handout) property::expect_holds(one, 15);
  }
}

// Rounds what the hand-out rounds, and nothing more: as good as a kernel in half precision can be. With this seed there
// is an input of one feature where the naive kernel's largest error is by chance a third of ours, which accuses nobody.
TEST(AttentionMutants, MayRoundWeightsInHalfPrecision) {
  const std::vector<check::Law> sound = laws(tiled_with(Fault::rounded_weights));
  const check::Law& law = property::law_named("attention.half_no_worse_than_naive", sound);
  check::LawRequest request = property::ci_request(Contract::full, 120);
  request.seed = 2033;
  const LawResult result = law.search(request);
  EXPECT_EQ(result.outcome, Outcome::passed) << property::story(law, result);
}

TEST(AttentionMutants, PutEveryLawOnTrial) {
  std::set<std::string> tried;
  for (const Mutant& mutant : mutants()) tried.insert(mutant.caught_by);
  for (const LawInfo& law : law_list()) EXPECT_EQ(tried.count(law.id), 1U) << law.id;
}

}  // namespace
}  // namespace syslab::attention
