#include "plan/sides.hpp"

#include <gtest/gtest.h>

#include "tests/plan/selection.hpp"

namespace syslab::plan {
namespace {

const registry::Registry& house() {
  static const registry::Registry registry = [] {
    registry::Registry made;
    made.add(registry::experiment("attention")
                 .title("t")
                 .axis("seq", {i64(128), i64(512)}, "length")
                 .axis("causal", {false, true}, "mask")
                 .implementation({.name = "naive", .teaches = ""})
                 .implementation({.name = "tiled", .teaches = ""})
                 .accepts_mine()
                 .runs([](worker::CaseContext&) {}));
    made.add(registry::experiment("ddp")
                 .title("t")
                 .axis("strategy", {"bucketed", "planned"}, "how")
                 .axis("bucket_mb", {i64(0), i64(1), i64(25)}, "bucket")
                 .skip_if("only buckets have a size",
                          [](const Params& params, std::string_view) {
                            return (params.text("strategy") == "planned") != (params.integer("bucket_mb") == 0);
                          })
                 .runs([](worker::CaseContext&) {}));
    made.seal();
    return made;
  }();
  return registry;
}

struct Asked {
  std::vector<std::string> assignments, mine_names;
  bool same_on_purpose = false;
  std::string path = "/k.so";
  bool same_words = false;
};

// Words as on a command line: names and sides.
ComparisonPlan plan_of(std::vector<std::string> words, const Asked& asked = {}) {
  const Sides sides = take_sides(words);
  Selection selection = select(words, asked.assignments);
  for (const std::string& name : asked.mine_names) {
    const bool is_command = asked.path.starts_with("in ") && !asked.same_words;
    selection.mine.push_back(submitted_of(name, is_command ? asked.path + " " + name : asked.path, ""));
    selection.mine.back().digest = "digest";
  }
  return make_comparison_plan(house(), selection, sides, asked.same_on_purpose);
}

std::string refusal(std::vector<std::string> words, const Asked& asked = {}) {
  try {
    plan_of(std::move(words), asked);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "not refused";
}

TEST(Sides, AxesThatNoSideAssignsFormTheSweep) {
  const ComparisonPlan plan = plan_of({"attention", "A:impl=naive", "B:impl=tiled"}, {.assignments = {"seq=16,32"}});
  ASSERT_EQ(plan.points.size(), 4U);
  const ComparisonPoint& second = plan.points[1];
  EXPECT_EQ(second.shared.label(), "causal=true seq=16");
  EXPECT_EQ(second.a.implementation, "naive");
  EXPECT_EQ(second.b.implementation, "tiled");
  EXPECT_EQ(second.a.seed, second.b.seed) << "both sides meet the same inputs";
  EXPECT_EQ(second.a.index, 2);
  EXPECT_EQ(second.b.index, 3);
}

TEST(Sides, ASharedImplementationIsAPointEach) {
  const ComparisonPlan plan = plan_of({"attention", "A:causal=false", "B:causal=true"}, {.assignments = {"seq=16"}});
  ASSERT_EQ(plan.points.size(), 2U);
  EXPECT_EQ(plan.points[0].shared_impl, "naive");
  EXPECT_EQ(plan.points[0].shared.label(), "seq=16") << "what differs is not shared";
}

TEST(Sides, AnAxisOfOneSideTakesOnTheOtherWhatIsNotSkipped) {
  const ComparisonPlan plan = plan_of({"ddp", "A:strategy=bucketed,bucket_mb=25", "B:strategy=planned"});
  ASSERT_EQ(plan.points.size(), 1U);
  EXPECT_EQ(plan.points[0].b.params.integer("bucket_mb"), 0);
  EXPECT_EQ(plan.sides.a.label(), "strategy=bucketed bucket_mb=25");
}

TEST(Sides, WhatASideLeavesOpenIsAskedBack) {
  EXPECT_NE(refusal({"ddp", "A:strategy=planned,bucket_mb=0", "B:strategy=bucketed"})
                .find("could be 1, 25; add B:bucket_mb=1"),
            std::string::npos);
  EXPECT_NE(refusal({"attention", "A:impl=naive,seq=16", "B:seq=32"}).find("B:impl=naive"), std::string::npos);
}

TEST(Sides, AMissingSideIsFilledInWhereItCanMeanOneThingOnly) {
  const ComparisonPlan builds = plan_of({"attention", "A:build=old/syslab"});
  EXPECT_EQ(builds.points.size(), 8U);
  EXPECT_EQ(builds.sides.a.build, "old/syslab");
  EXPECT_EQ(builds.sides.b.build, "");
  const ComparisonPlan mine = plan_of({"attention", "A:impl=naive"}, {.assignments = {}, .mine_names = {"me"}});
  EXPECT_EQ(mine.points[0].b.implementation, "me");
  EXPECT_EQ(plan_of({"attention", "A:impl=naive", "B:mine=me"}, {.assignments = {}, .mine_names = {"me"}})
                .points[0]
                .b.implementation,
            "me");
  EXPECT_NE(refusal({"attention", "A:impl=naive"}).find("side B is missing"), std::string::npos);
  EXPECT_NE(refusal({"attention"}).find("two sides"), std::string::npos);
}

TEST(Sides, OfProgramsTwoAreTheSidesInTheirOrderAndAReferenceIsOneOnlyWhereThereIsOneBesideIt) {
  const auto sides_of = [](std::vector<std::string> words, const std::vector<std::string>& names) {
    words.insert(words.begin(), "attention");
    const ComparisonPlan made = plan_of(words, {.mine_names = names, .path = "in /x: ./k"});
    return made.points[0].a.implementation + " " + made.points[0].b.implementation;
  };
  EXPECT_EQ(sides_of({}, {"old", "new"}), "old new");
  EXPECT_EQ(sides_of({}, {"me", "reference"}), "reference me");
  EXPECT_EQ(sides_of({}, {"old", "new", "reference"}), "old new");
  EXPECT_EQ(sides_of({"B:impl=old"}, {"old", "new", "reference"}), "new old");
  EXPECT_EQ(sides_of({"A:impl=reference", "B:impl=new"}, {"old", "new", "reference"}), "reference new");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"attention"}, std::vector<std::string>{"attention", "A:impl=reference"}}) {
    const std::string said = refusal(words, {.mine_names = {"old", "new", "third", "reference"}, .path = "in /x: ./k"});
    EXPECT_TRUE(said.find("two sides") != std::string::npos || said.find("is missing") != std::string::npos) << said;
  }
}

TEST(Sides, EqualSidesAreRefusedUnlessMeant) {
  EXPECT_NE(refusal({"attention", "A:impl=naive", "B:impl=naive"}).find("--same-on-purpose"), std::string::npos);
  EXPECT_EQ(plan_of({"attention", "A:impl=naive", "B:impl=naive"}, {.same_on_purpose = true}).points.size(), 4U);
  EXPECT_EQ(plan_of({"attention", "A:impl=naive,build=x", "B:impl=naive"}).points.size(), 4U);
}

TEST(Sides, OneThingUnderTwoNamesIsRefused) {
  for (const char* path : {"/k.so", "in /x: ./k {seq}"}) {
    const Asked asked{.mine_names = {"old", "new"}, .path = path, .same_words = true};
    const std::string said = refusal({"attention", "A:impl=old", "B:impl=new"}, asked);
    EXPECT_NE(said.find("both sides are attention old, and new is the same under another name"), std::string::npos)
        << said;
    Asked on_purpose = asked;
    on_purpose.same_on_purpose = true;
    EXPECT_FALSE(plan_of({"attention", "A:impl=old", "B:impl=new"}, on_purpose).points.empty());
  }
  const Asked apart{.mine_names = {"old", "new"}, .path = "in /x: ./k"};
  EXPECT_FALSE(plan_of({"attention", "A:impl=old", "B:impl=new"}, apart).points.empty());
}

TEST(Sides, WhatIsSaidTwiceIsRefused) {
  EXPECT_NE(refusal({"attention", "A:seq=16", "B:seq=32"}, {.assignments = {"seq=64"}}).find("'seq'"),
            std::string::npos);
  EXPECT_NE(refusal({"attention", "A:seq=16,seq=32", "B:seq=1"}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({"attention", "A:impl=naive,mine=me", "B:seq=1"}).find("twice"), std::string::npos);
}

TEST(Sides, WhatDoesNotExistIsNamedWithItsNeighbours) {
  EXPECT_NE(refusal({"attention", "A:sek=16", "B:seq=32"}).find("seq"), std::string::npos);
  EXPECT_NE(refusal({"attention", "A:impl=tilde", "B:impl=naive"}).find("tiled"), std::string::npos);
  EXPECT_NE(refusal({"attention", "A:impl", "B:impl=naive"}).find("A:impl=NAME"), std::string::npos);
  EXPECT_NE(refusal({"attention", "A:seq=many", "B:seq=1"}).find("whole numbers"), std::string::npos);
}

}  // namespace
}  // namespace syslab::plan
