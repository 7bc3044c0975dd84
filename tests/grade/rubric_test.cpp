#include "grade/rubric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "grade/pages.hpp"
#include "grade/record.hpp"
#include "report/deliverables.hpp"
#include "submission/adapters.hpp"

namespace syslab::grade {
namespace {

constexpr const char* kTwoItems = R"(
handout = "2026"
[[problem]]
id = "flash_forward"
points = 10
[[problem.item]]
part = "a"
points = 6
function = "f"
experiment = "flash_forward"
laws = ["attention.*"]
[[problem.item]]
part = "b"
points = 4
function = "f"
experiment = "flash_forward"
laws = ["attention.*"]
credit = "all"
)";

Json record(const char* state, std::initializer_list<std::pair<const char*, const char*>> laws) {
  Json list = Json::array();
  for (const auto& [name, outcome] : laws) {
    list.push_back({{"law", name}, {"experiment", "flash_forward"}, {"contract", "handout"}, {"outcome", outcome}});
  }
  return {{"adapters", Json::array({Json{{"function", "f"}, {"state", state}, {"laws", list}}})}};
}

TEST(Rubric, TheShippedOnesHaveTheHandoutsProblemsAndPoints) {
  for (const auto& [year, total] : std::map<std::string, double>{{"2025", 107}, {"2026", 137}}) {
    const Rubric rubric = default_rubric(year);
    EXPECT_DOUBLE_EQ(rubric.points(), total);
    std::map<std::string, double> points;
    for (const Problem& problem : rubric.problems) points[problem.id] = problem.points;
    for (const report::Problem& problem : report::handout_problems()) {
      const auto posed = problem.points.find(year);
      if (posed == problem.points.end() || posed->second == 0) continue;
      EXPECT_DOUBLE_EQ(points[problem.id], posed->second) << problem.id;
    }
  }
}

TEST(Rubric, TheShippedOnesNameFunctionsThatAnswerTheirExperiments) {
  for (const char* year : {"2025", "2026"}) {
    for (const Problem& problem : default_rubric(year).problems) {
      for (const Item& item : problem.items) {
        if (item.written) continue;
        bool known = false;
        for (const submission::Adapter& one : submission::adapters()) {
          const std::string ids = " " + std::string(one.experiments) + " ";
          known = known || (one.function == item.function && submission::is_of(one, year) &&
                            ids.find(" " + item.experiment + " ") != std::string::npos);
        }
        EXPECT_TRUE(known) << year << " " << problem.id << " " << item.function;
      }
    }
  }
}

TEST(Rubric, EachLawThatHoldsEarnsItsShareUnlessAllMust) {
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  const auto scores = score(rubric, record("implemented", {{"attention.a", "passed"},
                                                           {"attention.b", "falsified"},
                                                           {"attention.c", "not_run"},
                                                           {"other", "falsified"}}));
  EXPECT_DOUBLE_EQ(scores[0].items[0].earned, 2);
  EXPECT_DOUBLE_EQ(scores[0].items[1].earned, 0);
  EXPECT_DOUBLE_EQ(scores[0].checked(), 10);
  EXPECT_DOUBLE_EQ(score(rubric, record("implemented", {{"attention.a", "passed"}}))[0].earned(), 10);
}

TEST(Rubric, WhoRefusesNothingEarnsNothingByThatAlone) {
  const char* const text = R"(
handout = "2026"
[[problem]]
id = "flash_forward"
points = 6
[[problem.item]]
points = 6
function = "f"
experiment = "flash_forward"
laws = ["attention.*"]
only_with_another = ["attention.refusal"]
)";
  const Rubric rubric = parse_rubric(text, "r");
  const auto earned = [&](const char* out, const char* refusal) {
    return score(rubric, record("implemented", {{"attention.out", out}, {"attention.refusal", refusal}}))[0].earned();
  };
  EXPECT_DOUBLE_EQ(earned("passed", "passed"), 6);
  EXPECT_DOUBLE_EQ(earned("passed", "falsified"), 3);
  EXPECT_DOUBLE_EQ(earned("falsified", "passed"), 0);
}

TEST(Rubric, BeyondTheHandoutOnlyWhatCanBeTriedCounts) {
  Rubric rubric = parse_rubric(kTwoItems, "r");
  rubric.problems[0].items[0].contract = Contract::full;
  Json one = record("implemented", {{"attention.a", "passed"}, {"attention.b", "not_run"}});
  Json& laws = one["adapters"][0]["laws"];
  for (Json& law : laws) law["contract"] = "full";
  laws[1]["applies"] = false;
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[0].earned, 6);
  laws[1]["applies"] = true;  // it refused every input
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[0].earned, 3);
  laws[1]["applies"] = false;
  rubric.problems[0].items[0].contract = Contract::handout;
  for (Json& law : laws) law["contract"] = "handout";
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[0].earned, 3);
}

// What keeps the PASS of `check` away keeps points away.
TEST(Rubric, ASevereFaultOnWhatIsPromisedHoldsNoItemOfTheHandout) {
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  Json one = record("implemented", {{"attention.a", "passed"}});
  Json& laws = one["adapters"][0]["laws"];
  laws.push_back({{"law", "attention.keeps_no_state"},
                  {"experiment", "flash_forward"},
                  {"contract", "full"},
                  {"outcome", "falsified"},
                  {"finding", "kept_state"},
                  {"promised", true}});
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[0].earned, 3);
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[1].earned, 0);
  laws[1]["promised"] = false;
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[1].earned, 4);
  laws[1]["promised"] = true;
  laws[1]["finding"] = "wrong_value";
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].items[1].earned, 4);
}

TEST(Rubric, WhatWasNotBegunHoldsNoLaw) {
  const auto scores = score(parse_rubric(kTwoItems, "r"),
                            record("implemented", {{"attention.a", "passed"}, {"attention.b", "not_run"}}));
  EXPECT_DOUBLE_EQ(scores[0].items[0].earned, 3);
}

TEST(Rubric, WhatASubmissionRefusesIsNoLawLess) {
  for (const char* contract : {"handout", "full"}) {
    Json one = record("implemented", {{"attention.a", "passed"}, {"attention.b", "gave_up"}});
    for (Json& law : one["adapters"][0]["laws"]) law["contract"] = contract;
    const Rubric rubric = parse_rubric(std::string(kTwoItems) + "contract = \"" + contract + "\"\n", "r");
    const auto scores = score(rubric, one);
    EXPECT_EQ(scores[0].items.back().why, "1 of 2 laws hold") << contract;
    EXPECT_DOUBLE_EQ(scores[0].items.back().earned, 0) << contract;
  }
}

TEST(Rubric, AsksBeyondTheHandoutForTheLawsOfSuchItemsAlone) {
  EXPECT_TRUE(parse_rubric(kTwoItems, "r").laws_beyond_handout().empty());
  EXPECT_EQ(default_rubric("2025").laws_beyond_handout(), std::vector<std::string>{"attention.causal_prefix"});
  std::string text = kTwoItems;
  text += "contract = \"full\"\n";  // of the last item
  EXPECT_EQ(parse_rubric(text, "r").laws_beyond_handout(), std::vector<std::string>{"attention.*"});
}

TEST(Rubric, WhatRanOutOfTimeIsCalledSo) {
  Json one = record("implemented", {{"attention.a", "passed"}, {"attention.b", "error"}});
  EXPECT_FALSE(ran_out_of_time(one));
  one["adapters"][0]["laws"][1]["out_of_time"] = true;
  EXPECT_TRUE(ran_out_of_time(one));
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  const auto scores = score(rubric, one);
  EXPECT_DOUBLE_EQ(scores[0].items[0].earned, 3);
  EXPECT_EQ(scores[0].items[0].why, "1 of 2 laws hold; 1 ran out of time");
  EXPECT_EQ(note_of({"ada", one, scores}), "some of it ran out of time");
  const Json whole{{"error", "it ran out of time: stopped after 8 s"}, {"out_of_time", true}};
  EXPECT_TRUE(ran_out_of_time(whole));
  EXPECT_EQ(note_of({"ada", whole, score(rubric, whole)}), "it ran out of time: stopped after 8 s");
}

TEST(Rubric, WhoseProcessWasEndedFromOutsideIsTriedAgain) {
  Json one = record("implemented", {{"attention.a", "passed"}, {"attention.b", "error"}});
  EXPECT_FALSE(is_provisional(one));
  Json& law = one["adapters"][0]["laws"][1];
  law["finding"] = "crash";
  law["message"] = "the worker 'me' ended while running f (killed by signal 9 (Killed))";  // in its own words
  EXPECT_FALSE(is_provisional(one));
  law["finding"] = "killed";
  EXPECT_TRUE(is_provisional(one));
  one[kKilledAgain] = true;  // whoever ends himself does so each time
  EXPECT_FALSE(is_provisional(one));
}

TEST(Rubric, SumsOfPointsHaveNoTail) {
  ItemScore first, second;
  first.earned = 11.47;
  second.earned = 3.89;
  const Graded one{"ada", Json::object(), {{nullptr, {first}}, {nullptr, {second}}}};
  EXPECT_EQ(one.earned(), 15.36);
}

Json lack(const char* name) { return to_json(Lack{LackKind::attribute, "torch.nn.Module", name, "1.13.0"}); }

// By a field that `check` sets, and by no text: what is handed in may write any message.
TEST(Rubric, WhatThisPythonLacksLeavesAnItemOpenUnlessSomethingIsWrong) {
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  Json one = record("implemented", {{"attention.a", "not_run"}, {"attention.b", "falsified"}});
  Json& laws = one["adapters"][0]["laws"];
  for (Json& law : laws) law["message"] = "needs torch >= 2.1, which has a hook";
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 10);
  laws[0]["open"] = true;
  laws[0]["lacks"] = lack("hook");
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 10) << "the other is wrong";
  laws[1]["open"] = true;
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 0);
  EXPECT_EQ(score(rubric, one)[0].items[0].text(),
            "f needs what this Python lacks: torch 1.13.0 has no torch.nn.Module.hook");
  laws[1] = record("implemented", {{"attention.b", "passed"}})["adapters"][0]["laws"][0];
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 0) << "the rest holds";
  EXPECT_EQ(note_of({"ada", one, score(rubric, one)}),
            "f needs what this Python lacks: torch 1.13.0 has no torch.nn.Module.hook");
}

TEST(Rubric, WhatCannotBeImportedForThatIsOpen) {
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  Json one = record("fails", {});
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 10);
  one["adapters"][0]["open"] = true;
  one["adapters"][0]["lacks"] = lack("hook");
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 0);
}

// A name may be made of what was drawn.
TEST(Rubric, PagesOfAHiddenSeedDoNotNameWhatIsLacking) {
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  Json one = record("implemented", {{"attention.a", "falsified"}});
  one["adapters"][0]["laws"][0]["open"] = true;
  one["adapters"][0]["laws"][0]["lacks"] = lack("drawn_7");
  const Graded graded{.id = "ada", .record = one, .scores = score(rubric, one)};
  EXPECT_NE(evidence_page(rubric, graded, {}, {}).find("drawn_7"), std::string::npos)
      << evidence_page(rubric, graded, {}, {});
  EXPECT_EQ(evidence_page(rubric, graded, {.seed_is_hidden = true}, {}).find("drawn"), std::string::npos);
}

TEST(Rubric, ItsExperimentsAreThoseWhoseLawsEarnPoints) {
  EXPECT_EQ(parse_rubric(kTwoItems, "r").experiments(), std::vector<std::string>{"flash_forward"});
  const std::vector<std::string> all = default_rubric("2026").experiments();
  EXPECT_TRUE(std::ranges::find(all, "fsdp") != all.end());
  EXPECT_TRUE(std::ranges::find(all, "") == all.end());
}

// A practice item, say: what it asks for does not hold because it earns nothing.
TEST(Rubric, AnItemOfNoPointsPassesOnlyWhereItsLawsHold) {
  std::string text = kTwoItems;
  for (const char* points : {"points = 10", "points = 6", "points = 4"}) {
    text.replace(text.find(points), std::string_view(points).size(), "points = 0");
  }
  const Rubric rubric = parse_rubric(text, "r");
  const auto said = [&](const Json& one) {
    const Graded graded{.id = "ada", .record = one, .scores = score(rubric, one)};
    const std::string results = gradescope_results(rubric, graded, {});
    const std::string status = parse_json(results)["tests"][0]["status"];
    const bool fails = junit(rubric, {graded}, {}).find("<failure") != std::string::npos;
    EXPECT_EQ(status == "failed", fails) << results;
    return status;
  };
  EXPECT_EQ(said(record("implemented", {{"attention.a", "passed"}})), "passed");
  EXPECT_EQ(said(record("implemented", {{"attention.a", "passed"}, {"attention.b", "falsified"}})), "failed");
  EXPECT_EQ(said(record("not implemented", {})), "failed");
  EXPECT_EQ(said({{"error", "refused"}}), "failed");
}

TEST(Rubric, WhatIsTimedIsSearchedAndWhatAPersonGradesIsNot) {
  const std::string head = "handout = \"2026\"\n[[problem]]\nid = \"p\"\npoints = 2\n[[problem.item]]\npoints = 2\n";
  EXPECT_TRUE(parse_rubric(head + "written = true\n", "r").experiments().empty());
  const std::string timed = "function = \"f\"\nexperiment = \"flash_forward\"\nreference = \"naive\"\nwithin = [2]\n";
  EXPECT_EQ(parse_rubric(head + timed, "r").experiments(), std::vector<std::string>{"flash_forward"});
  // A benchmark of ranks has no laws of a class: those are searched that its problem has.
  const std::string on_ranks =
      "function = \"get_ddp_bucketed\"\nexperiment = \"ddp_bucketed_benchmarking\"\nreference = "
      "\"ours_in_torch\"\nwithin = [2]\n";
  EXPECT_EQ(parse_rubric(head + on_ranks, "r").experiments(), std::vector<std::string>{"ddp_overlap_bucketed"});
}

TEST(Rubric, WhatCannotBeCheckedHereIsOpenAndWhatFailsIsNot) {
  const Rubric rubric = parse_rubric(kTwoItems, "r");
  Json one = record("implemented", {});
  one["adapters"][0]["not_checked"] = "needs a GPU";
  EXPECT_DOUBLE_EQ(score(rubric, one)[0].checked(), 0);
  for (const char* state : {"not implemented", "fails", "not there"}) {
    EXPECT_DOUBLE_EQ(score(rubric, record(state, {}))[0].checked(), 10) << state;
    EXPECT_DOUBLE_EQ(score(rubric, record(state, {}))[0].earned(), 0) << state;
  }
  EXPECT_DOUBLE_EQ(score(rubric, {{"error", "refused"}})[0].checked(), 10);
}

}  // namespace
}  // namespace syslab::grade
