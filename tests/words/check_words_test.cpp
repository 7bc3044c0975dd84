#include "words/check_words.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

namespace syslab::words {
namespace {

using verdict::CheckedLaws;
using verdict::LawFact;
using verdict::LawsAsked;
using verdict::Part;
using enum FindingKind;

LawFact held(Part part) { return {.part = part, .outcome = Outcome::passed}; }
LawFact fails(Part part, FindingKind kind) {
  return {.part = part, .outcome = Outcome::falsified, .finding = kind, .same_as = "one"};
}

TEST(CountedFindings, AreFailuresWhereTheyDecide) {
  const std::vector facts{held(Part::handout), fails(Part::beyond, wrong_value)};
  const auto said = [](const std::vector<LawFact>& of, const LawsAsked& asked) {
    return counted_beyond(judge(of, asked), asked);
  };
  EXPECT_EQ(said(facts, {}), "1 warning: 1 wrong value");
  EXPECT_EQ(said(facts, {.strict = true}), "1 failure: 1 wrong value by --strict");
  EXPECT_EQ(said(facts, {.beyond_decides = true}), "1 failure: 1 wrong value under --contract full");
  EXPECT_EQ(said({fails(Part::beyond, wrong_value)}, {}), "1 failure: 1 wrong value");
  EXPECT_EQ(said({held(Part::handout)}, {.strict = true}), "0 failures");
}

TEST(CountedFindings, NameKindsInOneAndMore) {
  EXPECT_EQ(counted_findings({{crash, 1}, {write_outside, 2}}), "3 warnings: 2 writes outside, 1 crash");
  EXPECT_EQ(counted_findings({{wrong_value, 1}}, "failure"), "1 failure: 1 wrong value");
  EXPECT_EQ(counted_findings({}), "0 warnings");
}

CheckedLaws laws_of(const std::vector<LawFact>& facts) {
  CheckedLaws laws{.year = "2026", .cases = 100, .within = std::chrono::seconds(20)};
  laws.verdict = judge(facts, laws.asked);
  return laws;
}

TEST(LastLine, SaysWhatTheHandoutsLawsCameToAndWhatWasFoundBeyondThem) {
  EXPECT_EQ(last_line(laws_of({held(Part::handout), held(Part::handout)})), "hand-out 2026: PASS (2 of 2)");
  EXPECT_EQ(last_line(laws_of({held(Part::handout), fails(Part::beyond, crash)})),
            "hand-out 2026: PASS (1 of 1), 1 warning: 1 crash");
  EXPECT_EQ(last_line(laws_of({held(Part::handout), LawFact{.part = Part::beyond}})),
            "hand-out 2026: PASS (1 of 1), nothing tried beyond it");
  CheckedLaws broken = laws_of({held(Part::handout), fails(Part::handout, wrong_value)});
  broken.broken = {"attention.oracle"};
  broken.chosen_by = "-k oracle";
  EXPECT_EQ(
      last_line(broken),
      "hand-out 2026: FAIL (1 of 2; attention.oracle fails on what is promised; only the laws that -k oracle chose)");
}

TEST(LastLine, SaysThatTheHandoutsOwnLawsHoldWhereOthersDecide) {
  CheckedLaws laws = laws_of({});
  laws.asked.beyond_decides = true;
  laws.verdict = judge(std::vector{held(Part::handout), fails(Part::beyond, wrong_value)}, laws.asked);
  EXPECT_EQ(last_line(laws),
            "hand-out 2026: FAIL (all 1 of its own laws hold), 1 failure: 1 wrong value under --contract full");
}

TEST(LastLine, OfLawsThatNoHandoutAsksCountsThoseThatWereTried) {
  EXPECT_EQ(last_line(laws_of({held(Part::beyond)})),
            "beyond the hand-out: PASS (1 of 1 laws that were tried), 0 failures");
  EXPECT_EQ(last_line(laws_of({held(Part::unposed), LawFact{.part = Part::unposed}})),
            "what no hand-out poses: PASS (1 of 1 laws that were tried)");
}

TEST(Details, AreALineForEachThingThatWasNotTried) {
  EXPECT_EQ(details(laws_of({held(Part::handout)})), "");
  CheckedLaws laws = laws_of({held(Part::handout), held(Part::beyond)});
  laws.first_call_seconds = 12.4;
  laws.cut = {{"flash_forward", "attention.oracle", true, 7}, {"flash_backward", "attention.repeats", false, 9}};
  laws.of_several_experiments = laws.of_ranks = true;
  laws.never_tried["needs a GPU"] = {"attention.graph"};
  laws.open["torch.foo"] = {"a", "b", "c", "d", "e", "f", "g"};
  laws.left_out["attention"] = {false, "", "dropout"};
  laws.mask_command = "syslab check flash_forward";
  EXPECT_EQ(details(laws),
            "  first calls (imports, compilation) took 12 s, which the laws' time does not include\n"
            "  never tried: all 100 inputs, since the laws share the 20 s of this depth; tried: flash_forward "
            "attention.oracle of the hand-out 7, flash_backward attention.repeats 9; try: --cases 100, without a time "
            "limit\n"
            "  open: torch.foo: a, b, c and 4 more laws; try: another Python, --python FILE\n"
            "  never tried: attention.graph: needs a GPU\n"
            "  never tried: more than 100 inputs per law; try: --deep, with 1000\n"
            "  never tried, at any depth: more than 4 ranks, GPUs (--device cuda), ranks that use different parameters "
            "in one step, groups of some ranks\n"
            "  never tried, at any depth: dropout\n"
            "  the hand-out does not test the causal mask; to let it decide: syslab check flash_forward\n");
}

TEST(Details, OfManyLawsThatWereCutNameThoseThatWereTriedLeast) {
  CheckedLaws laws = laws_of({held(Part::handout)});
  for (const int cases : {90, 7, 80, 8, 70, 9, 60}) {
    laws.cut.push_back({"flash_forward", fmt::format("attention.law{}", cases), false, cases});
  }
  EXPECT_NE(
      details(laws).find("; tried: attention.law7 7, attention.law8 8, attention.law9 9 and 4 more laws, each 60 or "
                         "more; try: --cases 100"),
      std::string::npos)
      << details(laws);
}

TEST(TextOf, AFindingNamesItsLawsItsMessageAndItsInput) {
  EXPECT_EQ(text_of({"", {"a.b"}, "out differs", "seq=3"}), "a.b: out differs\n      with seq=3");
  EXPECT_EQ(text_of({"", {"a.b", "a.c"}, "out differs", "seq=3"}), "a.b, a.c (2 laws): out differs\n      with seq=3");
}

}  // namespace
}  // namespace syslab::words
