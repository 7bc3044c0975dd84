#include "verdict/law_verdict.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/finding_kind.hpp"

namespace syslab::verdict {
namespace {

using enum FindingKind;

LawFact held(Part part) { return {.part = part, .outcome = Outcome::passed}; }
LawFact barely() { return {.part = Part::handout, .outcome = Outcome::passed, .barely = true}; }
LawFact not_run(Part part) { return {.part = part, .outcome = Outcome::not_run}; }
LawFact fails(Part part, FindingKind kind, bool promised = false, const char* same_as = "a") {
  const bool gone = kind == crash || kind == hang || kind == unanswered;
  return {.part = part,
          .outcome = gone ? Outcome::error : Outcome::falsified,
          .finding = kind,
          .promised = promised || part == Part::handout,
          .same_as = same_as};
}

// For want of what this Python lacks.
LawFact lacks(Part part, Outcome outcome = Outcome::falsified, FindingKind kind = raised) {
  return {.part = part, .outcome = outcome, .finding = kind, .promised = true, .same_as = "b", .lacking = true};
}

struct Row {
  const char* name;
  std::vector<LawFact> facts;
  LawsAsked asked;
  Word handout;
  Standing standing;
  std::int64_t warned;
};

class HandoutVerdict : public testing::TestWithParam<Row> {};

TEST_P(HandoutVerdict, FollowsFromTheFacts) {
  const Row& row = GetParam();
  const LawVerdict verdict = judge(row.facts, row.asked);
  EXPECT_EQ(to_string(verdict.handout), to_string(row.handout));
  EXPECT_EQ(static_cast<int>(verdict.standing), static_cast<int>(row.standing));
  EXPECT_EQ(verdict.warned(), row.warned);
}

constexpr Part kHandout = Part::handout, kBeyond = Part::beyond;

INSTANTIATE_TEST_SUITE_P(
    Table, HandoutVerdict,
    testing::Values(
        Row{"AllHeld", {held(kHandout), held(kBeyond)}, {}, Word::pass, Standing::well, 0},
        Row{"NothingWasTried", {not_run(kHandout), not_run(kBeyond)}, {}, Word::not_checked, Standing::incomplete, 0},
        Row{"OneWasNotTried", {held(kHandout), not_run(kHandout)}, {}, Word::not_checked, Standing::incomplete, 0},
        Row{"AllThatIsNotWrongHeldBarely", {held(kHandout), barely()}, {}, Word::not_checked, Standing::incomplete, 0},
        Row{"OneIsWrong", {held(kHandout), fails(kHandout, wrong_value)}, {}, Word::fail, Standing::wrong, 0},
        Row{"OneIsWrongAndOneHeldBarely", {barely(), fails(kHandout, wrong_value)}, {}, Word::fail, Standing::wrong, 0},
        Row{"WhatThisPythonLacksLeavesItOpen", {lacks(kHandout)}, {}, Word::open, Standing::incomplete, 0},
        Row{"WhatWasNotTriedForThatLeavesItOpen",
            {held(kHandout), lacks(kHandout, Outcome::not_run, none)},
            {},
            Word::open,
            Standing::incomplete,
            0},
        Row{"OneIsWrongAndOneLacksSomething",
            {lacks(kHandout), fails(kHandout, wrong_value)},
            {},
            Word::fail,
            Standing::wrong,
            0},
        Row{"NoLackExcusesACrash",
            {held(kHandout), lacks(kHandout, Outcome::error, crash)},
            {},
            Word::fail,
            Standing::wrong,
            0},
        Row{"WhatHoldsAllTheSameHolds", {lacks(kHandout, Outcome::passed, none)}, {}, Word::pass, Standing::well, 0},
        Row{"BeyondTheHandoutALackIsNoWarning",
            {held(kHandout), lacks(kBeyond)},
            {.strict = true},
            Word::pass,
            Standing::well,
            0},
        // Each of these ended with exit 3, or with PASS.
        Row{"ItCrashes", {held(kHandout), fails(kHandout, crash)}, {}, Word::fail, Standing::wrong, 0},
        Row{"ItHangs", {held(kHandout), fails(kHandout, hang)}, {}, Word::fail, Standing::wrong, 0},
        Row{"ItCouldNotBeAsked",
            {held(kHandout), fails(kHandout, unanswered)},
            {},
            Word::not_checked,
            Standing::incomplete,
            0},
        Row{"ItFoundTooFewInputsToAsk",
            {held(kHandout), {.part = kHandout, .outcome = Outcome::gave_up}},
            {},
            Word::not_checked,
            Standing::incomplete,
            0},
        Row{"AnotherLawCouldNotBeAsked",
            {held(kHandout), fails(kBeyond, unanswered)},
            {},
            Word::pass,
            Standing::well,
            1},
        Row{"StrictLeavesOpenWhatCouldNotBeAsked",
            {held(kHandout), fails(kBeyond, unanswered)},
            {.strict = true},
            Word::not_checked,
            Standing::incomplete,
            1},
        Row{"TheFullContractLeavesOpenWhatCouldNotBeAsked",
            {held(kHandout), fails(kBeyond, unanswered)},
            {.beyond_decides = true},
            Word::not_checked,
            Standing::incomplete,
            1},
        Row{"StrictFailsForAFaultNextToWhatCouldNotBeAsked",
            {held(kHandout), fails(kBeyond, unanswered), fails(kBeyond, raised, false, "b")},
            {.strict = true},
            Word::fail,
            Standing::wrong,
            2},
        Row{"AnotherLawMeetsACrashOnWhatIsPromised",
            {held(kHandout), fails(kBeyond, crash, true)},
            {},
            Word::fail,
            Standing::wrong,
            0},
        Row{"AnotherLawMeetsKeptStateOnWhatIsPromised",
            {held(kHandout), fails(kBeyond, kept_state, true)},
            {},
            Word::fail,
            Standing::wrong,
            0},
        Row{"AnotherLawMeetsAWrongValueOnWhatIsPromised",
            {held(kHandout), fails(kBeyond, wrong_value, true)},
            {},
            Word::pass,
            Standing::well,
            1},
        Row{"ACrashBeyondWhatIsPromisedIsAWarning",
            {held(kHandout), fails(kBeyond, crash)},
            {},
            Word::pass,
            Standing::well,
            1},
        Row{"WhatTwoLawsSayAlikeIsOneWarning",
            {held(kHandout), fails(kBeyond, crash), fails(kBeyond, crash)},
            {},
            Word::pass,
            Standing::well,
            1},
        Row{"WhatTheHandoutsLawsSaidIsNoWarning",
            {fails(kHandout, wrong_value), fails(kBeyond, wrong_value)},
            {},
            Word::fail,
            Standing::wrong,
            0},
        Row{"StrictFailsForAWarning",
            {held(kHandout), fails(kBeyond, wrong_value)},
            {.strict = true},
            Word::fail,
            Standing::wrong,
            1},
        Row{"StrictPassesWithoutOne", {held(kHandout), held(kBeyond)}, {.strict = true}, Word::pass, Standing::well, 0},
        Row{"TheFullContractFailsForAWarning",
            {held(kHandout), fails(kBeyond, raised)},
            {.beyond_decides = true},
            Word::fail,
            Standing::wrong,
            1}),
    [](const auto& row) { return row.param.name; });

TEST(LawVerdict, BeyondAloneDecides) {
  const LawVerdict verdict = judge(std::vector{held(kBeyond), fails(kBeyond, raised)}, {});
  EXPECT_EQ(verdict.beyond, Word::fail);
  EXPECT_EQ(verdict.standing, Standing::wrong);
  EXPECT_EQ(judge(std::vector{not_run(kBeyond)}, {}).standing, Standing::incomplete);
  const LawVerdict open = judge(std::vector{held(kBeyond), fails(kBeyond, unanswered)}, {});
  EXPECT_EQ(open.beyond, Word::not_checked);
  EXPECT_EQ(open.standing, Standing::incomplete);
}

TEST(LawVerdict, AWordAndItsExitCodeAgree) {
  for (const Part part : {kHandout, kBeyond, Part::unposed, Part::ours}) {
    for (const FindingKind kind : {wrong_value, crash, unanswered}) {
      const LawVerdict verdict = judge(std::vector{held(part), fails(part, kind)}, {});
      const Word word = part == kHandout ? verdict.handout : part == kBeyond ? verdict.beyond : verdict.unposed;
      EXPECT_EQ(verdict.standing == Standing::wrong, kind != unanswered) << to_string(kind);
      EXPECT_NE(verdict.standing, Standing::well);
      if (part == Part::ours) continue;
      EXPECT_EQ(word == Word::fail, verdict.standing == Standing::wrong) << to_string(kind);
    }
  }
}

TEST(LawVerdict, BeyondAloneIsOpenToo) {
  const LawVerdict verdict = judge(std::vector{lacks(kBeyond)}, {});
  EXPECT_EQ(to_string(verdict.beyond), "OPEN");
  EXPECT_EQ(verdict.standing, Standing::incomplete);
}

TEST(LawVerdict, OfOperatorsThatNoHandOutPosesEveryFaultCounts) {
  EXPECT_EQ(judge(std::vector{held(Part::unposed), fails(Part::unposed, crash)}, {}).standing, Standing::wrong);
  EXPECT_EQ(judge(std::vector{held(Part::unposed), not_run(Part::unposed)}, {}).standing, Standing::well);
  const LawFact few{.part = Part::unposed, .outcome = Outcome::passed, .barely = true};
  EXPECT_EQ(judge(std::vector{held(Part::unposed), few}, {}).standing, Standing::well);
}

TEST(LawVerdict, KeepsAnExactListOfWhatNoToleranceExcuses) {
  for (const FindingKind kind : kFindingKinds) {
    const bool excused = kind == none || kind == wrong_value || kind == raised || kind == unanswered;
    EXPECT_EQ(fails_handout(kBeyond, Outcome::falsified, kind, true), !excused) << to_string(kind);
    EXPECT_FALSE(fails_handout(kBeyond, Outcome::falsified, kind, false)) << to_string(kind);
    EXPECT_TRUE(fails_handout(kHandout, Outcome::falsified, kind, true)) << to_string(kind);
    EXPECT_FALSE(fails_handout(kHandout, Outcome::passed, kind, true)) << to_string(kind);
    EXPECT_EQ(finding_kind_of(to_string(kind)), kind);
  }
}

}  // namespace
}  // namespace syslab::verdict
