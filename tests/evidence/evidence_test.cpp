// The hand-outs' evidence, on the experiments that the program has; and the order in which it is measured.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "evidence/schedule.hpp"
#include "evidence/standing.hpp"
#include "model/config.hpp"
#include "plan/predict.hpp"

namespace syslab::evidence {
namespace {

using registry::Need;

const registry::Registry& experiments() {
  registry::Registry::global().seal();
  return registry::Registry::global();
}

plan::Selection on(const plan::Machine& machine) {
  plan::Selection selection;
  selection.machine = machine;
  return selection;
}

plan::Machine two_gpus() {
  plan::Machine machine;
  machine.gpu = "NVIDIA H200";
  machine.sm = 90;
  machine.gpus = 2;
  machine.gpu_memory_bytes = std::uint64_t{140} << 30;
  return machine;
}

// Where a function of somebody's joins: experiment, and device, of its cases that are measured or searched.
std::set<std::pair<std::string, DeviceKind>> joined_by(Submitted mine, const plan::Machine& machine) {
  plan::Selection selection = on(machine);
  selection.mine = {std::move(mine)};
  std::set<std::pair<std::string, DeviceKind>> found;
  const auto add = [&](const plan::Plan& plan) {
    for (const plan::PlannedCase& one : plan.cases) {
      if (one.implementation == "me") found.insert({one.experiment->id, one.device});
    }
  };
  for (const Demand& demand : demands_of(experiments(), "2026", parts_of("2026"), selection)) add(demand.here);
  add(all_laws(experiments(), "2026", selection));
  return found;
}

TEST(Evidence, WhatIsHandedInJoinsWhatItAnswersWhereOursRun) {
  using Found = std::set<std::pair<std::string, DeviceKind>>;
  Submitted mine = submitted_of("me", "/adapters.py", "get_ddp()");
  mine.digest = "1";
  mine.answers = {"naive_ddp", "naive_ddp_benchmarking"};
  EXPECT_EQ(joined_by(mine, plan::Machine{}),
            (Found{{"naive_ddp", DeviceKind::cpu}, {"naive_ddp_benchmarking", DeviceKind::cpu}}));
  // Its benchmark has a GPU's sizes there, and ranks of CPUs none of them.
  EXPECT_EQ(joined_by(mine, two_gpus()), (Found{{"naive_ddp", DeviceKind::cpu}}));
  mine.answers = {"tp_calcs"};  // which takes nobody's
  EXPECT_EQ(joined_by(mine, plan::Machine{}), Found{});
}

// Without a store: durations from operations and assumed rates alone.
void predict(plan::Plan& plan) { plan::predict(plan, plan::Basis{}); }

struct Whole {
  std::vector<Part> parts;
  std::vector<Demand> demands;
  Schedule schedule;
};

Whole whole(const std::string& handout, const plan::Machine& machine) {
  Whole made;
  made.parts = parts_of(handout);
  made.demands = demands_of(experiments(), handout, made.parts, on(machine));
  made.schedule = schedule_of(made.demands, made.parts, all_laws(experiments(), handout, on(machine)), predict);
  return made;
}

const Whole& of_2025() {
  static const Whole made = whole("2025", plan::Machine{});
  return made;
}
const Whole& of_2026() {
  static const Whole made = whole("2026", plan::Machine{});
  return made;
}

std::vector<std::string> keys(const Step& step) {
  std::vector<std::string> all;
  for (const plan::PlannedCase& one : step.cases) all.push_back(plan::duration_key(one));
  return all;
}

std::vector<std::string> keys(const std::vector<Step>& steps) {
  std::vector<std::string> all;
  for (const Step& step : steps) {
    const std::vector<std::string> more = keys(step);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(Parts, AreWorthWhatTheHandoutsGive) {
  for (const auto& [handout, points] : {std::pair{"2025", 107.0}, {"2026", 137.0}}) {
    const std::vector<Part> parts = parts_of(handout);
    const double sum =
        std::accumulate(parts.begin(), parts.end(), 0.0, [](double all, const Part& one) { return all + one.points; });
    EXPECT_DOUBLE_EQ(sum, points);
    for (const Part& part : parts) EXPECT_GT(part.deliverables, 0) << part.name();
  }
  EXPECT_THROW(parts_of("2024"), Error);
}

TEST(Evidence, EveryPartWithPointsHasTheLeastThatAnswersIt) {
  for (const Whole* made : {&of_2025(), &of_2026()}) {
    std::vector<int> cases(made->parts.size());
    for (const Demand& demand : made->demands) {
      if (demand.need != Need::least || demand.in_small) continue;
      for (const std::size_t part : demand.parts) cases[part] += static_cast<int>(demand.anywhere.cases.size());
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_TRUE(cases[i] > 0 || made->parts[i].points == 0) << made->parts[i].name();
    }
  }
}

TEST(Evidence, NoDeclarationIsEmpty) {
  for (const Whole* made : {&of_2025(), &of_2026()}) {
    for (const Demand& demand : made->demands) {
      EXPECT_FALSE(demand.anywhere.cases.empty()) << demand.experiment->id;
      EXPECT_FALSE(demand.parts.empty()) << demand.experiment->id;
    }
  }
}

TEST(Evidence, InSmallIsForMachinesWithoutAGpu) {
  const auto in_small = [](const Whole& made) {
    return std::ranges::count_if(made.demands, [](const Demand& one) { return one.in_small; });
  };
  EXPECT_GT(in_small(of_2026()), 0);
  EXPECT_EQ(in_small(whole("2026", two_gpus())), 0);
}

TEST(Evidence, WhatAMachineCannotRunIsNamedOnceWithItsReason) {
  std::set<std::string> reasons;
  for (const Impossible& one : of_2026().schedule.impossible) {
    EXPECT_TRUE(reasons.insert(one.reason).second) << one.reason;
    EXPECT_GT(one.cases, 0);
    EXPECT_FALSE(one.experiments.empty());
  }
  EXPECT_FALSE(reasons.empty());
  for (const Step& step : of_2026().schedule.steps) {
    for (const plan::PlannedCase& one : step.cases) EXPECT_FALSE(one.skip_reason) << *one.skip_reason;
  }
}

// What the hand-outs' texts ask by name, beyond what the registry's own declarations would tell of themselves.
class Asked : public ::testing::Test {
 protected:
  // Cases that a need of the experiment's has on a machine with all that it takes.
  static std::vector<const plan::PlannedCase*> cases(const Whole& made, const std::string& experiment, Need most) {
    std::vector<const plan::PlannedCase*> all;
    for (const Demand& demand : made.demands) {
      if (demand.experiment->id != experiment || demand.need > most || demand.in_small) continue;
      for (const plan::PlannedCase& one : demand.anywhere.cases) all.push_back(&one);
    }
    return all;
  }
  static std::set<std::string> texts(const std::vector<const plan::PlannedCase*>& cases, const std::string& axis) {
    std::set<std::string> all;
    for (const plan::PlannedCase* one : cases) all.insert(one->params.text(axis));
    return all;
  }
};

TEST_F(Asked, MemoryIsProfiledOnThe27BOf2025) {
  EXPECT_EQ(texts(cases(of_2025(), "memory_profiling", Need::least), "model"), (std::set<std::string>{"xl26"}));
  EXPECT_EQ(model::find_model("2.7B"), model::find_model("xl26"));
}

TEST_F(Asked, DataParallelAndShardedStepsAreOfTheHandOutsOwnXl) {
  for (const char* name : {"naive_ddp_benchmarking", "minimal_ddp_flat_benchmarking",
                           "ddp_overlap_individual_parameters_benchmarking", "optimizer_state_sharding_accounting"}) {
    EXPECT_EQ(texts(cases(of_2025(), name, Need::asked), "model"), (std::set<std::string>{"xl25"})) << name;
    EXPECT_EQ(texts(cases(of_2026(), name, Need::asked), "model"), (std::set<std::string>{"xl26"})) << name;
  }
  EXPECT_EQ(texts(cases(of_2026(), "fsdp_accounting", Need::asked), "model"), (std::set<std::string>{"xl26"}));
}

TEST_F(Asked, CollectivesRunOnTwoFourAndSixRanks) {
  const std::string name = "distributed_communication_single_node";
  const auto ranks = [&](const Whole& made, const std::string& implementation) {
    std::set<int> all;
    for (const plan::PlannedCase* one : cases(made, name, Need::asked)) {
      if (one->implementation == implementation) all.insert(one->world_size);
    }
    return all;
  };
  EXPECT_EQ(ranks(of_2025(), "nccl"), (std::set<int>{2, 4, 6}));
  EXPECT_EQ(ranks(of_2025(), "gloo"), (std::set<int>{2, 4, 6}));
  EXPECT_EQ(ranks(of_2026(), "nccl"), (std::set<int>{2, 4, 6}));
}

TEST_F(Asked, CheckpointSegmentsOfHalfOneAndTwoBlocksAreMeasured) {
  std::set<double> segments;
  for (const plan::PlannedCase* one : cases(of_2026(), "gradient_checkpointing", Need::least)) {
    segments.insert(one->params.number("segment"));
  }
  EXPECT_EQ(segments, (std::set<double>{0.5, 1, 2}));
}

TEST_F(Asked, SomeLimitMakesFewerBucketsThanAQuarterOfTheTensors) {
  std::set<std::string> models;
  std::int64_t largest = 0;
  for (const plan::PlannedCase* one : cases(of_2025(), "ddp_bucketed_benchmarking", Need::least)) {
    models.insert(one->params.text("model"));
    largest = std::max(largest, one->params.integer("bucket_mb"));
  }
  ASSERT_EQ(models, (std::set<std::string>{"xl25"}));
  // Two buckets that follow each other are together over the limit, or they would be one.
  const model::ModelConfig config = model::find_model("xl25");
  const double tensors = 9.0 * static_cast<double>(config.layers) + 3;
  const double bytes = 4 * static_cast<double>(model::parameter_count(config));
  EXPECT_LT(1 + 2 * bytes / (0x1p20 * static_cast<double>(largest)), tensors / 4);
}

TEST_F(Asked, TheLeaderboardsAreMeasuredByTheirOwnProtocols) {
  ASSERT_FALSE(cases(of_2025(), "leaderboard_2025", Need::least).empty());
  EXPECT_EQ(cases(of_2025(), "leaderboard_2025", Need::least).front()->experiment->protocol, "leaderboard");
  ASSERT_FALSE(cases(of_2026(), "leaderboard_2026", Need::least).empty());
  EXPECT_EQ(cases(of_2026(), "leaderboard_2026", Need::least).front()->experiment->protocol, "leaderboard_2026");
}

// Steps of minutes in all: what one problem times, the others that compare with it find.
TEST_F(Asked, NoStepOfRanksIsTimedByTwoProblems) {
  for (const Whole* made : {&of_2025(), &of_2026()}) {
    std::set<std::string> timed, naive, overlap;
    for (const char* name : {"naive_ddp_benchmarking", "minimal_ddp_flat_benchmarking",
                             "ddp_overlap_individual_parameters_benchmarking"}) {
      std::set<std::string> own;
      for (const plan::PlannedCase* one : cases(*made, name, Need::asked)) own.insert(one->params.text("strategy"));
      for (const std::string& one : own) EXPECT_TRUE(timed.insert(one).second) << name << " times " << one << " again";
    }
    EXPECT_EQ(timed, (std::set<std::string>{"none", "naive", "flat_copy", "flat_view", "overlap"}));
  }
}

TEST_F(Asked, WhatOverlapIsHeldAgainstCountsForIt) {
  const Whole& made = of_2026();
  std::set<std::string> strategies;
  for (const Demand& demand : made.demands) {
    if (demand.need != Need::least || demand.in_small) continue;
    const bool counts = std::ranges::any_of(demand.parts, [&](std::size_t part) {
      return made.parts[part].problem == "ddp_overlap_individual_parameters_benchmarking";
    });
    for (const plan::PlannedCase& one : demand.anywhere.cases) {
      if (counts) strategies.insert(one.params.text("strategy"));
    }
  }
  EXPECT_EQ(strategies, (std::set<std::string>{"none", "naive", "flat_copy", "overlap"}));
}

TEST_F(Asked, EverySizeOfTheTableIsTimed) {
  EXPECT_EQ(texts(cases(of_2026(), "benchmarking_script", Need::least), "model"),
            (std::set<std::string>{"small", "medium", "large", "xl26", "10B"}));
  EXPECT_EQ(texts(cases(of_2025(), "benchmarking_script", Need::least), "model"),
            (std::set<std::string>{"small", "medium", "large", "xl25", "xl26"}));
}

TEST_F(Asked, ThreeQuartersOfTheAttentionGridAreLeast) {
  std::set<std::pair<std::int64_t, std::int64_t>> points;
  for (const plan::PlannedCase* one : cases(of_2026(), "pytorch_attention", Need::least)) {
    if (one->params.integer("seq") <= 16384)
      points.insert({one->params.integer("seq"), one->params.integer("head_dim")});
  }
  EXPECT_GT(points.size(), 15U) << "of 20";
  std::set<std::tuple<std::int64_t, std::int64_t, std::string>> both;
  for (const plan::PlannedCase* one : cases(of_2026(), "flash_benchmarking", Need::least)) {
    both.insert({one->params.integer("seq"), one->params.integer("head_dim"), one->params.text("dtype")});
  }
  EXPECT_EQ(both.size(), 80U);
}

TEST(EndsAndMiddle, OfAList) {
  const Values many{std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4}, std::int64_t{5}};
  EXPECT_EQ(ends_and_middle(many), (Values{std::int64_t{1}, std::int64_t{3}, std::int64_t{5}}));
  EXPECT_EQ(ends_and_middle({true, false}), (Values{true, false}));
  EXPECT_EQ(ends_and_middle({}), Values{});
}

TEST(Seconds, OfACaseAreItsMeasurementAndWhatItHasToFillBefore) {
  plan::PlannedCase step;
  step.device = DeviceKind::cuda;
  step.world_size = 2;
  const Seconds small = seconds_of(step);
  step.predicted_bytes = 60e9;
  EXPECT_GT(seconds_of(step).count(), small.count() + 5) << "60 GB are not filled in no time";
  step.predicted_from = "estimated";
  step.predicted_time = std::chrono::seconds(1);
  EXPECT_GT(seconds_of(step).count(), 6);
  step.time_was_measured = true;
  EXPECT_EQ(seconds_of(step).count(), 1) << "what was measured holds all of it";
  step.predicted_oom = "needs 128 GiB";
  EXPECT_EQ(seconds_of(step).count(), 0);
  plan::PlannedCase arithmetic;
  arithmetic.device = DeviceKind::cpu;
  EXPECT_LT(seconds_of(arithmetic).count(), 0.1);
}

TEST(Schedule, HasEachCaseOnce) {
  const std::vector<std::string> all = keys(of_2026().schedule.steps);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(Schedule, GoesBreadthFirst) {
  const std::vector<Step>& steps = of_2026().schedule.steps;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LE(std::tuple(steps[i - 1].stage, steps[i - 1].round), std::tuple(steps[i].stage, steps[i].round));
  }
  // One protocol a run.
  for (const Step& step : steps) {
    for (const plan::PlannedCase& one : step.cases) EXPECT_EQ(one.experiment, step.experiment);
  }
}

TEST(Schedule, IsAFunctionOfDataAlone) {
  EXPECT_EQ(keys(whole("2026", plan::Machine{}).schedule.steps), keys(of_2026().schedule.steps));
}

// Pieces of any number of cases, each scheduled anew, make the schedule in one.
TEST(Schedule, InPiecesIsTheScheduleInOne) {
  const Whole& made = of_2025();
  const plan::Plan laws = all_laws(experiments(), "2025", on(plan::Machine{}));
  const std::vector<std::string> in_one = keys(made.schedule.steps);
  std::vector<std::string> done;
  std::set<std::string> stored;
  std::mt19937 random(7);
  while (done.size() < in_one.size()) {
    auto piece = std::uniform_int_distribution<std::size_t>(100, 900)(random);
    for (const std::string& key : keys(schedule_of(made.demands, made.parts, laws, predict).steps)) {
      if (piece == 0) break;
      if (!stored.insert(key).second) continue;
      done.push_back(key);
      --piece;
    }
  }
  EXPECT_EQ(done, in_one);
}

TEST(Standing, BeginsAtNothingAndEndsAtAll) {
  const Whole& made = of_2026();
  const Standing none = standing_of(made.demands, made.parts, [](const plan::PlannedCase&) { return false; });
  EXPECT_EQ(none.answered, 0);
  EXPECT_EQ(none.worth, 0);
  EXPECT_DOUBLE_EQ(none.points, 137);
  const Standing all = standing_of(made.demands, made.parts, [](const plan::PlannedCase&) { return true; });
  EXPECT_EQ(all.answered, all.deliverables);
  EXPECT_NEAR(all.worth, 137, 1e-9);
}

TEST(Standing, EvidenceFromAMachineWithGpusCountsOnOneWithout) {
  const Whole there = whole("2026", two_gpus());
  std::set<std::string> stored;
  for (const std::string& key : keys(there.schedule.steps)) stored.insert(key);
  const auto is_stored = [&](const plan::PlannedCase& one) { return stored.contains(plan::duration_key(one)); };
  const Standing at_home = standing_of(of_2026().demands, of_2026().parts, is_stored);
  const Standing on_it = standing_of(there.demands, there.parts, is_stored);
  EXPECT_GE(at_home.worth, on_it.worth - 1e-9);
  // Nobody's CPU answers what a GPU is asked for.
  std::set<std::string> of_cpu;
  for (const std::string& key : keys(of_2026().schedule.steps)) of_cpu.insert(key);
  const Standing small = standing_of(of_2026().demands, of_2026().parts, [&](const plan::PlannedCase& one) {
    return of_cpu.contains(plan::duration_key(one));
  });
  EXPECT_LT(small.worth, 137);
}

RC_GTEST_PROP(Standing, MoreEvidenceIsNeverWorthLess, ()) {
  const Whole& made = of_2026();
  const auto few = *rc::gen::inRange(0, 1000), more = *rc::gen::inRange(0, 1000);
  const auto with = [&](int part) {
    return standing_of(made.demands, made.parts, [&](const plan::PlannedCase& one) {
      return static_cast<int>(std::hash<std::string>{}(plan::duration_key(one)) % 1000) < part;
    });
  };
  const Standing less = with(few), greater = with(few + more);
  RC_ASSERT(less.worth <= greater.worth + 1e-9);
  RC_ASSERT(less.answered <= greater.answered);
}

}  // namespace
}  // namespace syslab::evidence
