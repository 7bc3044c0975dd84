// The reserved axis `world_size`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "plan/predict.hpp"
#include "plan/sides.hpp"
#include "tests/plan/selection.hpp"

namespace syslab::plan {
namespace {

using registry::Registry;

const Registry& house() {
  static const Registry registry = [] {
    Registry made;
    made.add(registry::experiment("all_reduce")
                 .title("sum")
                 .axis("bytes", {i64(1024), i64(4096)}, "of a rank")
                 .world_sizes({i64(2), i64(6)})
                 .preset("smoke", {{"world_size", {i64(1), i64(2)}}, {"bytes", {i64(16)}}})
                 .preset("laptop", {{"bytes", {i64(16)}}})
                 .implementation({.name = "shm", .teaches = "", .dtypes = {}})
                 .implementation({.name = "nccl", .teaches = "", .dtypes = {}, .device = DeviceKind::cuda})
                 .memory([](const Params& params, std::string_view) { return params.number("bytes"); })
                 .runs([](worker::CaseContext&) {}));
    made.add(registry::experiment("alone")
                 .title("one process")
                 .axis("n", {i64(1)}, "n")
                 .implementation({.name = "loops", .teaches = "", .dtypes = {}})
                 .runs([](worker::CaseContext&) {}));
    made.seal();
    return made;
  }();
  return registry;
}

std::vector<int> sizes_of(const Plan& plan) {
  std::vector<int> sizes;
  for (const PlannedCase& planned : plan.cases) sizes.push_back(planned.world_size);
  return sizes;
}

std::string error_of(const Selection& selection) {
  return usage_error([&] { make_plan(house(), selection); });
}

TEST(WorldSize, IsTheExperimentsThenThePresetsThenTheAssignments) {
  EXPECT_EQ(sizes_of(make_plan(house(), select({"all_reduce"}))), (std::vector<int>{2, 6, 2, 6}));
  Selection selection = select({"all_reduce"});
  selection.preset = "smoke";
  EXPECT_EQ(sizes_of(make_plan(house(), selection)), (std::vector<int>{1, 2}));
  selection.preset = "laptop";
  EXPECT_EQ(sizes_of(make_plan(house(), selection)), (std::vector<int>{2, 6}));
  selection.assignments = {parse_assignment("world_size=4,4,3")};
  EXPECT_EQ(sizes_of(make_plan(house(), selection)), (std::vector<int>{4, 3}));
}

// The same case, for the store: the number of ranks stands in a column of its own.
TEST(WorldSize, IsNoPartOfTheCaseOrOfItsSeed) {
  const Plan plan = make_plan(house(), select({"all_reduce"}));
  EXPECT_EQ(plan.cases[0].case_uid, plan.cases[1].case_uid);
  EXPECT_EQ(plan.cases[0].seed, plan.cases[1].seed);
  EXPECT_EQ(plan.cases[0].params.label(), "bytes=1024");
  EXPECT_EQ(to_json(plan.cases[1]).at("world_size"), 6);
  EXPECT_NE(duration_key(plan.cases[0]), duration_key(plan.cases[1]));
}

TEST(WorldSize, LeavesExperimentsOfOneProcessAlone) {
  const Plan plan = make_plan(house(), select({"all"}, {"world_size=2"}));
  ASSERT_EQ(plan.cases.size(), 3U);
  EXPECT_EQ(plan.cases[2].experiment->id, "alone");
  EXPECT_EQ(plan.cases[2].world_size, 1);
  EXPECT_NE(error_of(select({"alone"}, {"world_size=2"})).find("alone: axis 'world_size' takes 1, not '2'"),
            std::string::npos);
  EXPECT_EQ(make_plan(house(), select({"alone"}, {"world_size=1"})).cases.size(), 1U);
}

TEST(WorldSize, TakesWhatOneHostCanHave) {
  for (const char* text : {"world_size=0", "world_size=-1", "world_size=65", "world_size=many"}) {
    EXPECT_NE(error_of(select({"all_reduce"}, {text})).find("takes 1 to 64 ranks"), std::string::npos) << text;
  }
  EXPECT_EQ(sizes_of(make_plan(house(), select({"all_reduce"}, {"world_size=64", "bytes=1"}))), std::vector<int>{64});
}

TEST(WorldSize, BeyondTheGpusIsUnsupportedAndSaysWhatItNeeds) {
  Selection selection = select({"all_reduce"}, {"bytes=16"});
  selection.devices = {"cuda", "cpu"};
  selection.machine.gpu = "NVIDIA H200";
  selection.machine.gpus = 4;
  const Plan plan = make_plan(house(), selection);
  ASSERT_EQ(plan.cases.size(), 4U);
  for (const PlannedCase& planned : plan.cases) {
    const bool beyond = planned.implementation == "nccl" && planned.world_size == 6;
    EXPECT_EQ(planned.unsupported, beyond);
    EXPECT_EQ(planned.skip_reason.value_or(""), beyond ? "needs 6 GPUs" : "");
    EXPECT_EQ(planned.needs, beyond ? std::optional(Shortage{Shortage::Of::gpus, 6}) : std::nullopt);
  }
}

TEST(WorldSize, OfAStoredCaseIsJudgedByThisMachineAndKeepsItsReasonWhereThatCouldRunIt) {
  Selection selection = select({"all_reduce"}, {"bytes=16", "world_size=6"});
  selection.devices = {"cuda"};
  selection.machine.gpu = "NVIDIA H200";
  selection.machine.gpus = 6;
  PlannedCase stored = make_plan(house(), selection).cases.at(0);
  stored.skip_reason = "needs six GPUs";
  skip_again(stored, selection.machine);
  EXPECT_EQ(stored.skip_reason, "needs six GPUs");
  EXPECT_FALSE(stored.unsupported);
  selection.machine.gpus = 4;
  skip_again(stored, selection.machine);
  EXPECT_EQ(stored.skip_reason, "needs 6 GPUs");
  EXPECT_TRUE(stored.unsupported);
  EXPECT_EQ(stored.needs, (Shortage{Shortage::Of::gpus, 6}));
}

TEST(WorldSize, RanksOnTheCpuShareItsMemory) {
  Selection selection = select({"all_reduce"}, {"bytes=1024"});
  selection.devices = {"cuda", "cpu"};
  selection.machine.gpu = "NVIDIA H200";
  selection.machine.gpus = 8;
  const Plan plan = make_plan(house(), selection);
  ASSERT_EQ(plan.cases.size(), 4U);
  EXPECT_EQ(plan.cases[2].predicted_bytes, 6.0 * 1024);  // shm
  EXPECT_EQ(plan.cases[3].predicted_bytes, 1024.0);      // nccl: each rank on a GPU of its own
}

TEST(WorldSize, IsToldToWhatAnExperimentExpectsBeforeThereIsAPlan) {
  Registry registry;
  registry.add(registry::experiment("step")
                   .title("s")
                   .axis("batch", {i64(4)}, "rows")
                   .world_sizes({i64(2)})
                   .expects([](const Params& params) {
                     if (params.integer("batch") % params.integer("world_size") != 0) {
                       throw Error(ErrorKind::usage, "uneven rows");
                     }
                   })
                   .runs([](worker::CaseContext&) {}));
  registry.add(registry::experiment("alone")
                   .title("a")
                   .expects([](const Params& params) { EXPECT_EQ(params.integer("world_size"), 1); })
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  const auto refused = [&](const Selection& selection) { return usage_error([&] { make_plan(registry, selection); }); };
  const Plan plan = make_plan(registry, select({"step"}, {"world_size=1,4"}));
  EXPECT_EQ(sizes_of(plan), (std::vector<int>{1, 4}));
  EXPECT_FALSE(plan.cases[0].params.has("world_size")) << "it is no axis of the case";
  EXPECT_EQ(refused(select({"step"}, {"batch=3"})), "uneven rows");
  EXPECT_EQ(refused(select({"step"}, {"world_size=2,3"})), "uneven rows");
  make_plan(registry, select({"alone"}));
}

TEST(WorldSize, CanBeASideOfAComparisonOrShared) {
  Selection selection = select({"all_reduce"}, {"bytes=16"});
  selection.devices = {"cpu"};
  std::vector<std::string> words{"A:world_size=2", "B:world_size=4"};
  const ComparisonPlan sides = make_comparison_plan(house(), selection, take_sides(words), false);
  ASSERT_EQ(sides.points.size(), 1U);
  EXPECT_EQ(sides.points[0].a.world_size, 2);
  EXPECT_EQ(sides.points[0].b.world_size, 4);
  words = {"A:bytes=16", "B:bytes=32"};
  selection.assignments.clear();
  EXPECT_EQ(make_comparison_plan(house(), selection, take_sides(words), false).points.size(), 2U);  // of 2 and 6 ranks
}

TEST(WorldSize, IsRefusedWhereAnExperimentDeclaresWhatCannotBe) {
  const auto declared = [](Values values, registry::Preset preset) {
    registry::experiment("e")
        .title("e")
        .world_sizes(std::move(values))
        .preset("smoke", std::move(preset))
        .runs([](worker::CaseContext&) {})
        .
        operator registry::Experiment();
  };
  EXPECT_NO_THROW(declared({i64(2)}, {{"world_size", {i64(1)}}}));
  EXPECT_THROW(declared({i64(0)}, {}), Error);
  EXPECT_THROW(declared({i64(65)}, {}), Error);
  EXPECT_THROW(declared({std::string("two")}, {}), Error);
  EXPECT_THROW(declared({}, {}), Error);
  EXPECT_THROW(declared({i64(2)}, {{"world_size", {i64(100)}}}), Error);
  EXPECT_THROW(registry::experiment("e")
                   .title("e")
                   .preset("smoke", {{"world_size", {i64(2)}}})
                   .runs([](worker::CaseContext&) {})
                   .
                   operator registry::Experiment(),
               Error);
}

}  // namespace
}  // namespace syslab::plan
