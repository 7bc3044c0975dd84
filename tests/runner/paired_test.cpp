#include "runner/paired/paired.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/paired/side_workers.hpp"
#include "tests/expect_contains.hpp"
#include "tests/runner/pair_of_sides.hpp"
#include "tests/temporary_folder.hpp"
#include "worker/cases/command_params.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

TEST(Paired, BothSidesAreCheckedTimedInTurnsAndEndLikeAnyAttempt) {
  Pair pair;
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  ASSERT_EQ(launch.blocks.size(), 3U);
  // What each side says of its own bursts is what the blocks hold, in order of time.
  std::map<char, std::vector<double>> turns;
  for (const PairedBlock& block : launch.blocks) {
    double ratio = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      turns[block.order[i]].push_back(block.seconds[i]);
      ratio += (block.order[i] == 'B' ? 0.5 : -0.5) * std::log(block.seconds[i]);
    }
    EXPECT_NEAR(block.log_ratio, ratio, 1e-12);
  }
  EXPECT_EQ(times_of(launch.a), turns['A']);
  EXPECT_EQ(times_of(launch.b), turns['B']);
  for (const AttemptResult* result : {&launch.a, &launch.b}) {
    const auto is_check = [](const worker::Record& record) {
      const auto* check = std::get_if<worker::CheckRecord>(&record);
      return check != nullptr && check->name == "reference:end" && check->outcome == Outcome::passed;
    };
    EXPECT_TRUE(std::any_of(result->records.begin(), result->records.end(), is_check));
    const Json facts = Json::parse(result->facts_json);
    EXPECT_TRUE(facts.contains("threads"));
    EXPECT_GE(facts.at("paired").at("calls_per_burst"), 1);
    EXPECT_EQ(facts.at("paired").at("blocks"), 3);
    EXPECT_LT(result->started_at, result->ended_at);
  }
}

TEST(Paired, TheSideWhoseTurnItIsNotUsesNoProcessor) {
  Pair pair;
  pair.options.burst = 20ms;
  const PairedLaunch launch = pair.run();
  EXPECT_LT(paired_facts(launch.a).at("idle_cpu_share").get<double>(), 0.005);
  EXPECT_LT(paired_facts(launch.b).at("idle_cpu_share").get<double>(), 0.005);
}

TEST(Paired, ThreadsThatSpinAfterABurstStandStillInTheOthersTurn) {
  Pair pair;
  pair.options.burst = 20ms;
  pair.a.worker_command = fake_worker("spin");
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_LT(paired_facts(launch.a).at("idle_cpu_share").get<double>(), 0.005);
}

TEST(Paired, ASideThatRunsInTheOthersTurnsEndsAsAnErrorAndNothingIsCompared) {
  Pair pair;
  pair.options.burst = 20ms;  // in which it gets a processor, however busy the machine is
  pair.b.worker_command = fake_worker("restless");
  const PairedLaunch launch = pair.run();
  EXPECT_FALSE(launch.complete());
  EXPECT_EQ(launch.a.status, Status::aborted) << launch.a.detail;
  EXPECT_EQ(launch.b.status, Status::error) << launch.b.detail;
  expect_contains(launch.b.detail, "it ran in the other side's turns");
  expect_contains(launch.b.detail, "try: a quiet machine");
  EXPECT_GE(paired_facts(launch.b).at("turns_it_ran_in"), 8);
  EXPECT_EQ(paired_facts(launch.a).at("turns_it_ran_in"), 0);
}

TEST(Paired, WhereBothSidesRanInTheOthersTurnsNeitherIsNamedAlone) {
  Pair pair;
  pair.options.burst = 20ms;
  pair.a.worker_command = pair.b.worker_command = fake_worker("restless");
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(launch.a.status, Status::error) << launch.a.detail;
  EXPECT_EQ(launch.b.status, Status::error) << launch.b.detail;
  EXPECT_EQ(launch.a.detail, launch.b.detail);
}

TEST(Paired, ABlockInWhichTheOtherSideRanIsTakenAgain) {
  Pair pair;
  pair.options.burst = 20ms;  // in which it gets a processor, however busy the machine is
  pair.b.worker_command = fake_worker("restless_once");
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_EQ(launch.blocks.size(), 3U);
  EXPECT_GE(paired_facts(launch.b).at("turns_it_ran_in"), 1);
  EXPECT_EQ(paired_facts(launch.a).at("dropped_blocks"), paired_facts(launch.b).at("dropped_blocks"));
  EXPECT_GE(paired_facts(launch.a).at("dropped_blocks"), 1);
}

TEST(Paired, TakesFewerBlocksWhereCallsAreLong) {
  Pair pair;
  pair.options.blocks_per_launch = 16;
  EXPECT_EQ(pair.run().blocks.size(), 16U);
  pair.options.burst = 10ms;  // 40 ms a block: four of them fit into 160 ms
  const std::size_t blocks = pair.run().blocks.size();
  EXPECT_GE(blocks, 4U);
  EXPECT_LE(blocks, 6U) << "a warm-up may find a call to take less than it does";
  pair.options.measuring = 1ms;
  EXPECT_EQ(pair.run().blocks.size(), 4U);
}

// Where its start costs much and its blocks scatter, a launch has more of them, if it may.
TEST(Paired, GoesOnWhereBlocksScatterAndTheStartWasDear) {
  const auto blocks = [](const std::string& behaviour, bool may_go_on) {
    Pair pair;
    pair.a.worker_command = fake_worker("slowly_ready");
    pair.b.worker_command = fake_worker(behaviour);
    pair.options.blocks_per_launch = 2;
    pair.options.may_go_on = may_go_on;
    const PairedLaunch launch = pair.run();
    EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
    for (std::size_t i = 0; i < launch.blocks.size(); ++i) EXPECT_EQ(launch.blocks[i].block, static_cast<int>(i));
    const auto abba = std::ranges::count(launch.blocks, "ABBA", &PairedBlock::order);
    EXPECT_EQ(2 * abba, static_cast<std::ptrdiff_t>(launch.blocks.size()));
    return launch.blocks.size();
  };
  EXPECT_EQ(blocks("slowly_ready_unsteady", false), 2U);
  EXPECT_EQ(blocks("slowly_ready", true), 2U);  // they all say the same
  const std::size_t many = blocks("slowly_ready_unsteady", true);
  EXPECT_GT(many, 2U);
  EXPECT_LE(many, 2U * PairedSpec::kMostTimes);
}

TEST(Paired, EachBlockHasOneOfTwoOrdersAndAsManyOfEach) {
  Pair pair;
  pair.options.blocks_per_launch = pair.options.fewest_blocks = 8;
  std::map<std::string, int> orders;
  std::string sequence;
  for (const int launch : {0, 1}) {
    for (const PairedBlock& block : pair.run(launch).blocks) {
      ++orders[block.order];
      sequence += block.order == "ABBA" ? 'x' : 'o';
    }
  }
  EXPECT_EQ(orders, (std::map<std::string, int>{{"ABBA", 8}, {"BAAB", 8}}));
  EXPECT_NE(sequence, "xoxoxoxoxoxoxoxo");
  EXPECT_NE(sequence.substr(0, 8), sequence.substr(8));
}

TEST(Paired, TheSidesTakeTurnsInStartingFirst) {
  Pair pair;
  pair.run(0);
  pair.run(1);
  std::vector<std::string> started;
  for (const std::string& event : pair.events) {
    if (event.find("started") == 0) started.push_back(event);
  }
  EXPECT_EQ(started, (std::vector<std::string>{"started A", "started B", "started B", "started A"}));
}

TEST(Paired, BothCasesHearOfEachBlock) {
  Pair pair;
  pair.run();
  for (const char* event : {"A: checking", "B: checking", "A: block 1 of 3", "B: block 3 of 3"}) {
    EXPECT_EQ(std::count(pair.events.begin(), pair.events.end(), event), 1) << event;
  }
}

TEST(Paired, ALongerCallGetsFewerCallsABurstAndALargerRatio) {
  Pair pair;
  pair.b = pair.side("B", "none", 2900);  // thirty times as long: a busy machine does not hide that
  pair.options.burst = 10ms;
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_GT(paired_facts(launch.a).at("calls_per_burst"), paired_facts(launch.b).at("calls_per_burst"));
  for (const PairedBlock& block : launch.blocks) EXPECT_GT(block.log_ratio, 0.5);
}

// Of 0.5 GB/s the "time" is 2 s a unit, while a call takes a few milliseconds.
TEST(Paired, ANumberThatACommandPrintsNeedNotFitIntoTheTimeThatPassed) {
  for (const auto& [reads, taken] : {std::pair{"{} GB/s", true}, std::pair{worker::kProcessTime, false}}) {
    SCOPED_TRACE(reads);
    Pair pair;
    pair.compare.id = worker::kCommandExperiment;
    pair.b.planned.params.set(worker::kCommandReads, std::string(reads));
    pair.a.worker_command = fake_worker("plain");
    pair.b.worker_command = fake_worker("tells_too_much");
    const PairedLaunch launch = pair.run();
    EXPECT_EQ(launch.complete(), taken) << launch.a.detail << launch.b.detail;
  }
}

TEST(Paired, TakesFewerBlocksWhereItsTimeEnds) {
  Pair pair;
  pair.a.worker_command = pair.b.worker_command = fake_worker("slow_bursts");  // a block takes 1.2 s
  pair.options.until = std::chrono::steady_clock::now() + 6s;  // on a busy machine the start alone takes some
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_FALSE(launch.cut);
  EXPECT_GE(launch.blocks.size(), 1U);
  EXPECT_LE(launch.blocks.size(), 4U) << "of the usual number";
}

TEST(Paired, TakesFewerBlocksWhereTheyAreLongOnTheWallThoughTheirCallsAreShort) {
  Pair pair;
  pair.a.worker_command = pair.b.worker_command = fake_worker("slow_bursts");  // a block takes 1.2 s
  pair.options.fewest_blocks = 2;
  pair.options.longest = 1500ms;
  pair.options.blocks_per_launch = 16;
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_EQ(launch.blocks.size(), 2U);
}

// Of a function the worker stays, and what is judged does not (worker/cases/case_context.hpp).
TEST(Paired, AFunctionsWorkerStaysForTheNextLaunchIfItKnowsHow) {
  for (const auto& [behaviour, stays] : {std::pair("serves_fresh", true), std::pair("well", false)}) {
    Pair pair;
    SideWorkers workers;
    pair.options.workers = &workers;
    for (PairedSide* side : {&pair.a, &pair.b}) {
      side->worker_command = fake_worker(behaviour);
      side->planned.implementation = "me";
      side->mine = {submitted_of("me", "/f.py", "f", {"/f.py:g", ""})};
    }
    const Interruption interruption;
    for (const int launch : {0, 1, 2}) {
      const PairedLaunch done = run_paired_launch(pair.a, pair.b, launch, pair.options, pair.observer, interruption);
      ASSERT_TRUE(done.complete()) << done.a.detail << done.b.detail;
      EXPECT_EQ(paired_facts(done.a).at("calls_per_burst"), stays ? 4 * (launch + 1) : 4) << behaviour;
      EXPECT_EQ(times_of(done.b).size(), 6U);
      EXPECT_EQ(workers_alive("T"), stays ? 2 : 0) << "they are stopped";
      EXPECT_EQ(workers_alive(), stays ? 2 : 0);
    }
  }
  EXPECT_EQ(workers_alive(), 0);
}

// Each side's worker waits for the other's before it says that it has started.
struct StartedTogether : Pair {
  test::TemporaryFolder folder;

  StartedTogether(const std::string& of_a, const std::string& of_b) {
    options.starts_together = true;
    as_function(a, of_a);
    as_function(b, of_b);
  }
  void as_function(PairedSide& side, const std::string& behaviour) {
    side.worker_command = fake_worker(behaviour);
    side.worker_command.push_back((folder / ".").string());
    side.planned.implementation = "me";
    side.mine = {submitted_of("me", "/f.py", "f", {"/f.py:g", ""})};
  }
};

TEST(Paired, FunctionsOfBothSidesStartAtTheSameTime) {
  StartedTogether pair("well", "well");
  const PairedLaunch launch = pair.run();
  ASSERT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_EQ(times_of(launch.a).size(), 6U);
  EXPECT_EQ(paired_facts(launch.a).at("started"), "first");
}

TEST(Paired, WhereOneSideCannotStartTheOtherHasCalledNothing) {
  for (const bool first : {true, false}) {
    StartedTogether pair(first ? "starts_badly" : "well", first ? "well" : "starts_badly");
    const PairedLaunch launch = pair.run();
    const AttemptResult& bad = first ? launch.a : launch.b;
    const AttemptResult& other = first ? launch.b : launch.a;
    EXPECT_EQ(bad.status, Status::error);
    EXPECT_EQ(bad.detail, "no such file");
    EXPECT_EQ(other.status, Status::skipped);
    expect_contains(other.detail, "ended error: nothing to compare with");
    EXPECT_EQ(pair.events.size(), 2U) << "both are told to have started";
  }
}

TEST(Paired, AForeignWorkerThatServesBurstsIsASide) {
  Pair pair;
  pair.b.worker_command = fake_worker("well");
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_EQ(times_of(launch.b).size(), 6U);
}

double seconds_of_cpu() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(Paired, WhatARankPrintsBehindItsAnswerKeepsNobodyAwake) {
  Pair pair;
  pair.b.planned.world_size = 2;
  pair.b.worker_command = fake_worker("talks_answered");
  const double before = seconds_of_cpu();
  const PairedLaunch launch = pair.run();
  EXPECT_LT(seconds_of_cpu() - before, 0.25);  // of the three seconds that it waits
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
}

}  // namespace
}  // namespace syslab::runner
