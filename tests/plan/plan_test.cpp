#include "plan/plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "plan/predict.hpp"
#include "tests/plan/selection.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::plan {
namespace {

using registry::Implementation;
using registry::Registry;

const Registry& house() {
  static const Registry registry = [] {
    Registry made;
    made.add(registry::experiment("flash_forward")
                 .title("forward")
                 .tags({"attention"})
                 .problem("2026", "flash_forward", 15)
                 .axis("seq", {i64(128), i64(512)}, "length")
                 .closed_axis("dtype", {"fp32"}, "type", {"bf16"})
                 .axis("causal", {false, true}, "mask")
                 .axis("scale", {0.5}, "scale")
                 .preset("smoke", {{"seq", {i64(16)}}, {"impl", {"tiled"}}})
                 .implementation({.name = "reference", .teaches = "", .dtypes = {}, .role = Role::reference})
                 .implementation({.name = "naive", .teaches = "", .dtypes = {}})
                 .implementation({.name = "tiled", .teaches = "", .dtypes = {"fp32"}})
                 .laws({{"a.oracular", "", true}, {"a.no_oracle_needed", ""}})
                 .skip_if("naive needs n² memory",
                          [](const Params& params, std::string_view implementation) {
                            return implementation == "naive" && params.integer("seq") > 1000;
                          })
                 .memory([](const Params& params, std::string_view) { return 4.0 * params.number("seq"); })
                 .accepts_mine()
                 .runs([](worker::CaseContext&) {}));
    made.add(registry::experiment("weighted_sum")
                 .title("sum")
                 .axis("dim", {i64(64)}, "columns")
                 .implementation({.name = "loops", .teaches = "", .dtypes = {}})
                 .runs([](worker::CaseContext&) {}));
    made.seal();
    return made;
  }();
  return registry;
}

std::string plan_error(const Selection& selection) {
  return usage_error([&] { make_plan(house(), selection); });
}

using Texts = std::vector<std::string>;

// A word of the hand-outs becomes the value that it stands for: no case holds the word.
TEST(MakePlan, TakesAWordByItsHandout) {
  Registry registry;
  Axis axis{"model", {"xl25", "xl26"}, "size", true, {}, {{"xl", {{"2025", "xl25"}, {"2026", "xl26"}}}}};
  registry.add(registry::experiment("train")
                   .title("t")
                   .problem("2025", "train", 1)
                   .problem("2026", "train", 1)
                   .axes({axis})
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  Selection selection = select({"train"}, {"model=xl"});
  for (const char* year : {"25", "26"}) {
    selection.handout = std::string("20") + year;
    const Plan plan = make_plan(registry, selection);
    ASSERT_EQ(plan.cases.size(), 1U);
    EXPECT_EQ(plan.cases[0].params.text("model"), std::string("xl") + year);
  }
  selection.handout.clear();
  const std::string said = usage_error([&] { make_plan(registry, selection); });
  EXPECT_NE(said.find("--handout 2025 (xl25) or --handout 2026 (xl26)"), std::string::npos) << said;
}

// An implementation that this build is without is planned, and says so, in cases and in laws.
TEST(MakePlan, ShowsWhatIsUnavailableAndSkipsIt) {
  Registry registry;
  registry.add(registry::experiment("attention")
                   .title("a")
                   .axis("seq", {i64(8)}, "length")
                   .preset("smoke", {{"impl", {"tiled", "wgmma"}}})
                   .implementation({.name = "tiled", .teaches = "", .dtypes = {}})
                   .implementation({.name = "wgmma", .teaches = "", .dtypes = {}, .unavailable = "needs CUDA"})
                   .laws({{"a.law", ""}})
                   .skip_if("never", [](const Params&, std::string_view) { return false; })
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  Selection selection = select({"attention"});
  selection.preset = "smoke";
  for (const Plan& plan : {make_plan(registry, selection), make_law_plan(registry, selection, Contract::full)}) {
    ASSERT_EQ(plan.cases.size(), 2U);
    EXPECT_FALSE(plan.cases[0].skip_reason);
    EXPECT_EQ(plan.cases[1].skip_reason, "wgmma needs CUDA");
  }
}

TEST(ParseAssignment, ReadsListsRangesAndPowers) {
  EXPECT_EQ(parse_assignment("seq=128,1024").values, (Texts{"128", "1024"}));
  EXPECT_EQ(parse_assignment("seq=128:512:128").values, (Texts{"128", "256", "384", "512"}));
  EXPECT_EQ(parse_assignment("seq=1:6:2").values, (Texts{"1", "3", "5"}));
  EXPECT_EQ(parse_assignment("seq=pow2:7:9,1000").values, (Texts{"128", "256", "512", "1000"}));
  EXPECT_EQ(parse_assignment("seq=1k:5k,3:3").values, (Texts{"1000", "2000", "4000", "3"}));
  EXPECT_EQ(parse_assignment("seq=4611686018427387904:9223372036854775807").values, (Texts{"4611686018427387904"}));
  EXPECT_EQ(parse_assignment("bytes=1Ki:3Ki:1Ki").values, (Texts{"1024", "2048", "3072"}));
  EXPECT_EQ(parse_assignment(" dtype = bf16 ").values, (Texts{"bf16"}));
  EXPECT_EQ(parse_assignment("side=A:strategy").values, (Texts{"A:strategy"}));
}

TEST(ParseAssignment, RefusesWhatIsMalformed) {
  for (const char* text :
       {"seq", "=5", "seq=", "seq=1,,2", "seq=5:1:1", "seq=1:5:0", "seq=5:1", "seq=0:5", "seq=1:2:3:4", "seq=pow2:9:7",
        "seq=pow2:1:99", "seq=0:9223372036854775807:1", "seq=1:x:2"}) {
    EXPECT_NE(usage_error([&] { parse_assignment(text); }).find(text), std::string::npos) << text;
  }
}

TEST(ParseMine, RefusesMissingFilesAndNamesWithoutFiles) {
  for (const char* text : {"kernel.so", "=kernel.so", "me=", "me=/nonexistent/kernel.so", "me=/nonexistent/flash.py",
                           "my kernel=/nonexistent/k.so"}) {
    usage_error([&] { parse_mine(text); });
  }
}

TEST(ParseMine, IsSplitAsItIsParsedWhetherThereIsAFileOrNot) {
  const MineWords words = split_mine("me=/nonexistent/a:b/flash.py:Flash");
  EXPECT_EQ(words.name, "me");
  EXPECT_EQ(words.file, "/nonexistent/a:b/flash.py");
  EXPECT_EQ(words.inside, "Flash");
  EXPECT_EQ(split_mine("me=/a:b/kernel").inside, "");
  for (const char* text : {"flash.py:Flash", "=flash.py", "me=", "my kernel=k.so", "me=flash.py:"}) {
    EXPECT_EQ(usage_error([&] { split_mine(text); }), usage_error([&] { parse_mine(text); }));
  }
}

TEST(ParseMine, RefusesAPathThatNoMessageToAWorkerCanHold) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "flash\xff.py").string();
  std::ofstream(file) << "class Flash: pass";
  EXPECT_NE(usage_error([&] { parse_mine("me=" + file + ":Flash"); }).find("its path is not UTF-8"), std::string::npos);
  EXPECT_NE(usage_error([&] { parse_python_place("--reference", file + ":f"); }).find("is not UTF-8"),
            std::string::npos);
}

TEST(ParseMine, AFunctionIsReadWhateverItsFoldersAreCalled) {
  const test::TemporaryFolder folder;
  const std::string inner = (folder / "work on it against time").string();
  std::filesystem::create_directory(inner);
  for (const char* name : {"f.py", "r.py", "i.py"}) std::ofstream(inner + "/" + name) << name;
  const auto text = [&] { return fmt::format("me={0}/f.py:fn against {0}/r.py:ref on {0}/i.py:cases", inner); };
  const Submitted mine = parse_mine(text());
  EXPECT_EQ(mine.path(), inner + "/f.py");
  EXPECT_EQ(mine.comparison()->reference, inner + "/r.py:ref");
  EXPECT_EQ(mine.comparison()->inputs, inner + "/i.py:cases");
  // What it is judged by belongs to it.
  std::ofstream(inner + "/i.py") << "other cases";
  EXPECT_NE(parse_mine(text()).digest, mine.digest);
}

TEST(MakePlan, IsTheGridWithImplementationsInnermost) {
  const Plan plan = make_plan(house(), select({"flash_forward"}));
  ASSERT_EQ(plan.cases.size(), 2U * 2 * 3);
  EXPECT_EQ(plan.cases[0].implementation, "reference");
  EXPECT_EQ(plan.cases[2].implementation, "tiled");
  EXPECT_EQ(plan.cases[0].params, plan.cases[2].params);
  EXPECT_EQ(plan.cases[3].params.flag("causal"), true);
  for (std::size_t i = 0; i < plan.cases.size(); ++i) EXPECT_EQ(plan.cases[i].index, static_cast<int>(i));
}

TEST(MakePlan, LetsAssignmentsWinOverPresetsAndPresetsOverDefaults) {
  Selection selection = select({"flash_forward"}, {"causal=true"});
  selection.preset = "smoke";
  Plan plan = make_plan(house(), selection);
  ASSERT_EQ(plan.cases.size(), 1U);
  EXPECT_EQ(plan.cases[0].params.label(), "causal=true dtype=fp32 scale=0.5 seq=16");
  EXPECT_EQ(plan.cases[0].implementation, "tiled");
  selection.assignments.push_back(parse_assignment("seq=4Ki"));
  selection.implementations = {"na*"};
  plan = make_plan(house(), selection);
  ASSERT_EQ(plan.cases.size(), 1U);
  EXPECT_EQ(plan.cases[0].params.integer("seq"), 4096);
  EXPECT_EQ(plan.cases[0].implementation, "naive");
}

TEST(MakePlan, TypesValuesByTheirAxis) {
  const Plan plan = make_plan(house(), select({"flash_forward"}, {"seq=1k", "scale=1", "causal=1", "impl=naive"}));
  ASSERT_EQ(plan.cases.size(), 1U);
  EXPECT_EQ(plan.cases[0].params.to_json().dump(), R"({"causal":true,"dtype":"fp32","scale":1.0,"seq":1000})");
}

TEST(MakePlan, TakesNoNegativeSizes) {
  EXPECT_NE(plan_error(select({"weighted_sum"}, {"dim=-64"})).find("nothing below 0, not '-64'"), std::string::npos);
  EXPECT_EQ(make_plan(house(), select({"weighted_sum"}, {"dim=0"})).cases.size(), 1U);
}

TEST(MakePlan, TakesAValueGivenTwiceOnce) {
  EXPECT_EQ(make_plan(house(), select({"weighted_sum"}, {"dim=64,64", "dim=65"})).cases.size(), 2U);
}

TEST(MakePlan, SkipsWithAReason) {
  const Plan plan = make_plan(house(), select({"flash_forward"}, {"seq=2048", "causal=false", "dtype=bf16"}));
  ASSERT_EQ(plan.cases.size(), 3U);
  EXPECT_FALSE(plan.cases[0].skip_reason.has_value());
  EXPECT_EQ(plan.cases[1].skip_reason, "naive needs n² memory");
  EXPECT_EQ(plan.cases[2].skip_reason, "tiled has no bf16 kernel");
  EXPECT_EQ(plan.cases[0].predicted_bytes, 8192.0);
}

// What the worker would refuse the plan says, with the status of that answer and nothing that it would need.
TEST(MakePlan, SaysWhatAnImplementationWouldRefuse) {
  Registry registry;
  registry.add(registry::experiment("train")
                   .title("t")
                   .closed_axis("precision", {"fp32", "bf16"}, "dtypes")
                   .implementation({.name = "host", .teaches = "", .dtypes = {}})
                   .implementation({.name = "gpu", .teaches = "", .dtypes = {}})
                   .refuses([](const Params& params, std::string_view implementation) -> std::optional<std::string> {
                     if (params.integer("world_size") > 1) return "it is one process's work";
                     if (implementation == "gpu" || params.text("precision") == "fp32") return std::nullopt;
                     return "host has no bf16";
                   })
                   .world_sizes({std::int64_t{1}})
                   .memory([](const Params&, std::string_view) { return 64.0; })
                   .accepts_mine()
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  const Plan plan = make_plan(registry, select({"train"}));
  ASSERT_EQ(plan.cases.size(), 4U);
  for (const PlannedCase& planned : plan.cases) {
    const bool refused = planned.implementation == "host" && planned.params.text("precision") == "bf16";
    EXPECT_EQ(planned.skip_reason.value_or(""), refused ? "host has no bf16" : "");
    EXPECT_EQ(planned.unsupported, refused);
    EXPECT_EQ(planned.predicted_bytes, refused ? 0 : 64);
  }
  EXPECT_EQ(refusal_of(plan.cases[0].experiment[0], {{"precision", "bf16"}}, "somebody's", 1), std::nullopt);
  EXPECT_EQ(refusal_of(plan.cases[0].experiment[0], {{"precision", "fp32"}}, "host", 2), "it is one process's work");
}

TEST(MakePlan, RefusesAPointThatMakesNoSenseBeforeThereIsAPlan) {
  Registry registry;
  registry.add(registry::experiment("toy")
                   .title("t")
                   .axis("blocks", {i64(8)}, "of the stack")
                   .expects([](const Params& params) {
                     if (params.integer("blocks") < 1) throw Error(ErrorKind::usage, "a stack of no blocks");
                   })
                   .expects([](const Params& params) {
                     if (params.integer("blocks") > 9) throw Error(ErrorKind::usage, "a stack too high");
                   })
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  EXPECT_EQ(make_plan(registry, select({"toy"}, {"blocks=1,4"})).cases.size(), 2U);
  EXPECT_EQ(usage_error([&] { make_plan(registry, select({"toy"}, {"blocks=4,0"})); }), "a stack of no blocks");
  EXPECT_EQ(usage_error([&] { make_plan(registry, select({"toy"}, {"blocks=4,10"})); }), "a stack too high");
}

TEST(MakePlan, SeedsDependOnRootExperimentAndParametersButNotOnTheImplementation) {
  const auto seeds = [](std::uint64_t root) {
    Selection selection = select({"flash_forward"});
    selection.root_seed = root;
    std::vector<std::uint64_t> all;
    for (const PlannedCase& planned : make_plan(house(), selection).cases) all.push_back(planned.seed);
    return all;
  };
  const auto one = seeds(1);
  EXPECT_EQ(one, seeds(1));
  EXPECT_NE(one, seeds(2));
  EXPECT_EQ(one[0], one[1]);
  EXPECT_EQ(one[0], one[2]);
  EXPECT_EQ(std::set<std::uint64_t>(one.begin(), one.end()).size(), 4U);
  const Plan plan = make_plan(house(), select({"flash_forward"}));
  EXPECT_EQ(plan.cases[0].case_uid, plan.cases[2].case_uid);
  EXPECT_NE(plan.cases[0].case_uid, plan.cases[3].case_uid);
}

TEST(MakePlan, AppliesAnAxisToThoseExperimentsThatHaveIt) {
  const Plan plan = make_plan(house(), select({"all"}, {"seq=16", "causal=true"}));
  EXPECT_EQ(plan.cases.size(), 3U + 1U);
}

TEST(MakePlan, LeavesOutExperimentsThatLackThePresetOfOthers) {
  Selection selection = select({"all"});
  selection.preset = "smoke";
  for (const PlannedCase& planned : make_plan(house(), selection).cases) {
    EXPECT_EQ(planned.experiment->id, "flash_forward");
  }
}

TEST(MakePlan, NamesTheNearestOfWhatIsUnknown) {
  EXPECT_NE(plan_error(select({"flash_foward"})).find("'flash_forward'"), std::string::npos);
  EXPECT_NE(plan_error(select({"flash_forward"}, {"sek=1"})).find("'seq'"), std::string::npos);
  EXPECT_NE(plan_error(select({"flash_forward"}, {"dtype=bf61"})).find("'bf16'"), std::string::npos);
  EXPECT_NE(plan_error(select({"flash_forward"}, {"seq=many"})).find("whole numbers"), std::string::npos);
  EXPECT_NE(plan_error(select({"flash_forward"}, {"world_size=4"})).find("'world_size' takes 1, not '4'"),
            std::string::npos);
  EXPECT_NE(plan_error(select({"flash_forward"}, {"impl=tyled"})).find("'tiled'"), std::string::npos);
  Selection selection = select({"flash_forward"});
  selection.preset = "smoek";
  EXPECT_NE(plan_error(selection).find("'smoke'"), std::string::npos);
  selection = select({"all"});
  selection.handout = "2025";
  EXPECT_NE(plan_error(selection).find("2025"), std::string::npos);
}

TEST(MakePlan, JoinsMineWhereItIsAccepted) {
  Selection selection = select({"all"}, {"seq=16", "causal=true"});
  selection.mine = {submitted_of("me", "/x/k.so", "")};
  const Plan plan = make_plan(house(), selection);
  ASSERT_EQ(plan.cases.size(), 5U);
  EXPECT_EQ(plan.cases[3].implementation, "me");
  EXPECT_EQ(plan.cases[4].experiment->id, "weighted_sum");
  selection.implementations = {"me"};
  EXPECT_EQ(make_plan(house(), selection).cases.size(), 1U);
  selection.patterns = {"weighted_sum"};
  selection.assignments.clear();
  plan_error(selection);  // nothing there accepts it
  selection = select({"flash_forward"});
  selection.mine = {submitted_of("naive", "/x/k.so", "")};
  EXPECT_NE(plan_error(selection).find("naive"), std::string::npos);
}

TEST(MakeLawPlan, IsEveryLawForEveryImplementationButTheOracleAgainstItself) {
  const Plan plan = make_law_plan(house(), select({"all"}), Contract::full);
  ASSERT_EQ(plan.cases.size(), 5U);
  EXPECT_EQ(plan.cases[0].implementation, "reference");
  EXPECT_EQ(plan.cases[0].law, "a.no_oracle_needed");
  EXPECT_EQ(plan.cases[1].law, "a.oracular");
  EXPECT_EQ(plan.cases[0].params.text("contract"), "full");
  EXPECT_EQ(plan.cases[0].task, Task::law);
  EXPECT_EQ(plan.cases[0].seed, plan.cases[2].seed);
  EXPECT_NE(plan.cases[1].seed, plan.cases[2].seed);
}

TEST(MakeLawPlan, ChecksMineAloneUnlessOthersAreNamed) {
  Selection selection = select({"flash_forward"});
  selection.mine = {submitted_of("me", "/x/k.so", "")};
  EXPECT_EQ(make_law_plan(house(), selection, Contract::handout).cases.size(), 2U);
  selection.implementations = {"me", "tiled"};
  EXPECT_EQ(make_law_plan(house(), selection, Contract::handout).cases.size(), 4U);
}

TEST(MakeLawPlan, LeavesOutWhoseEveryCaseIsSkipped) {
  const Selection selection = select({"flash_forward"}, {"dtype=bf16", "seq=16"});  // tiled has no bf16 kernel
  Plan laws = make_law_plan(house(), selection, Contract::full);
  ASSERT_EQ(laws.cases.back().implementation, "tiled");
  leave_out_unmeasured(laws, make_plan(house(), selection));
  std::set<std::string> left;
  for (const PlannedCase& law : laws.cases) left.insert(law.implementation);
  EXPECT_EQ(left, (std::set<std::string>{"reference", "naive"}));
  EXPECT_EQ(laws.cases.back().index, static_cast<int>(laws.cases.size()) - 1);

  laws = make_law_plan(house(), selection, Contract::full);
  const std::size_t all = laws.cases.size();
  leave_out_unmeasured(laws, make_plan(house(), select({"flash_forward"}, {"dtype=fp32,bf16"})));  // one case will do
  EXPECT_EQ(laws.cases.size(), all);
}

// do_bench's own first call and estimate come before its warm-up: of a call that takes seconds they are most of it.
TEST(Predict, CountsTheCallsThatAnEstimateTakes) {
  Registry registry;
  registry.add(registry::experiment("slow")
                   .title("s")
                   .axis("seq", {i64(8)}, "length")
                   .flops([](const Params&) { return 1e10; })
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  const auto predicted = [&](int estimate_calls) {
    Plan plan = make_plan(registry, select({"slow"}));
    Basis basis;
    basis.cpu.best.flops = 1e10;  // a second a call
    basis.cpu.course = {.warmup_calls = 1, .max_samples = 1, .estimate_calls = estimate_calls};
    predict(plan, basis);
    return Seconds(plan.cases.at(0).predicted_time).count();
  };
  EXPECT_NEAR(predicted(5) - predicted(0), 6, 1e-6);
}

TEST(PlannedCase, AsJsonHasTheSeedAsText) {
  const Plan plan = make_plan(house(), select({"weighted_sum"}));
  const Json json = to_json(plan.cases[0]);
  EXPECT_EQ(json["seed"], std::to_string(plan.cases[0].seed));
  EXPECT_EQ(json["params"]["dim"], 64);
  EXPECT_FALSE(json.contains("skip"));
}

}  // namespace
}  // namespace syslab::plan
