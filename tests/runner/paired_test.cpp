#include "runner/paired.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runner/side_workers.hpp"
#include "tests/expect_contains.hpp"
#include "tests/runner/lab.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;
using worker::Status;

// A worker of a few lines of Python, which does what its first argument says.
std::vector<std::string> fake_worker(const std::string& behaviour) {
  return {"python3", std::getenv("SYSLAB_FAKE_WORKER"), behaviour};
}

struct Pair {
  registry::Experiment compare, faults;
  PairedSide a, b;
  PairedOptions options;
  std::vector<std::string> events;
  Observer observer;

  Pair() {
    compare.id = "selftest_compare";
    faults.id = "selftest_faults";
    a = side("A");
    b = side("B");
    options.protocol = "quick";
    options.blocks_per_launch = 3;
    options.burst = 2ms;
    options.timeout = 20s;
    options.seed = 5;
    observer.started = [this](const plan::PlannedCase& it) { events.push_back("started " + it.case_uid); };
    observer.progress = [this](const plan::PlannedCase& it, const worker::ProgressRecord& record) {
      events.push_back(it.case_uid + ": " + record.text);
    };
  }

  PairedSide side(const std::string& label, const std::string& fault = "none", double slowdown = 0) const {
    PairedSide made;
    made.label = label;
    made.planned.experiment = &compare;
    made.planned.params = {
        {"steps", std::int64_t{100'000}}, {"slowdown", slowdown}, {"work", std::string("chain")}, {"fault", fault}};
    made.planned.implementation = "selftest";
    made.planned.case_uid = label;
    made.planned.seed = 7;
    made.worker_command = worker_host();
    return made;
  }

  PairedLaunch run(int launch = 0) {
    const Interruption interruption;
    PairedLaunch done = run_paired_launch(a, b, launch, options, observer, interruption);
    EXPECT_EQ(workers_alive(), 0);
    EXPECT_EQ(done.a.planned, &a.planned);
    EXPECT_EQ(done.b.planned, &b.planned);
    return done;
  }
};

std::vector<double> times_of(const AttemptResult& result) {
  for (const worker::Record& record : result.records) {
    const auto* sample = std::get_if<worker::SampleRecord>(&record);
    if (sample != nullptr && sample->series == "time") return sample->values;
  }
  return {};
}

Json paired_facts(const AttemptResult& result) { return Json::parse(result.facts_json).at("paired"); }

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
      return check != nullptr && check->name == "reference:end" && check->outcome == "passed";
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

TEST(Paired, ASideThatIsWrongIsNotComparedAndTheOtherNeverStarts) {
  Pair pair;
  pair.a = pair.side("A", "wrong");
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.a.status), "check_failed") << launch.a.detail;
  EXPECT_EQ(to_string(launch.b.status), "skipped");
  expect_contains(launch.b.detail, "side A ended check_failed");
  EXPECT_TRUE(launch.blocks.empty());
  EXPECT_FALSE(launch.complete());
}

TEST(Paired, ASecondSideThatIsWrongEndsTheFirst) {
  Pair pair;
  pair.b = pair.side("B", "wrong");
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.b.status), "check_failed") << launch.b.detail;
  EXPECT_EQ(to_string(launch.a.status), "aborted") << launch.a.detail;
  expect_contains(launch.a.detail, "side B ended check_failed: nothing to compare with");
  EXPECT_TRUE(launch.blocks.empty());
  EXPECT_TRUE(times_of(launch.a).empty());
}

struct Early {
  std::string what;  // a fault of the self-test, or what a fake worker does
  bool fake = false;
  Status status;
  std::string detail;

  friend void PrintTo(const Early& it, std::ostream* out) { *out << it.what; }
};

class EarlyEnds : public testing::TestWithParam<Early> {};

TEST_P(EarlyEnds, EndTheLaunchInTheirStatusAndLeaveNothingRunning) {
  for (const bool is_a : {true, false}) {
    Pair pair;
    pair.options.blocks_per_launch = pair.options.fewest_blocks = 500;
    if (GetParam().status == Status::timeout) pair.options.timeout = 1500ms;
    PairedSide& bad = is_a ? pair.a : pair.b;
    bad = pair.side(bad.label, GetParam().fake ? "none" : GetParam().what);
    if (GetParam().fake) bad.worker_command = fake_worker(GetParam().what);
    const PairedLaunch launch = pair.run();
    const AttemptResult& ended = is_a ? launch.a : launch.b;
    const AttemptResult& other = is_a ? launch.b : launch.a;
    EXPECT_EQ(to_string(ended.status), to_string(GetParam().status)) << ended.detail;
    expect_contains(ended.detail, GetParam().detail);
    EXPECT_TRUE(other.status == Status::aborted || other.status == Status::skipped) << other.detail;
    expect_contains(other.detail, "nothing to compare with");
    EXPECT_FALSE(launch.complete());
    EXPECT_LT(launch.blocks.size(), 500U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Paired, EarlyEnds,
    testing::Values(Early{"throw", false, Status::error, "the fault 'throw' was asked for"},
                    Early{"die", false, Status::crashed, "killed by signal 9"},
                    Early{"hang", false, Status::timeout, "stopped after 1.50 s"},
                    Early{"knows_no_bursts", true, Status::error, "does not serve bursts"},
                    Early{"ends_at_once", true, Status::error, "ended its case where 'ready' was asked"},
                    Early{"never_ready", true, Status::timeout, "stopped after 1.50 s"},
                    Early{"zero_seconds", true, Status::error, "'seconds_per_call' must be a number above 0"},
                    Early{"tells_too_much", true, Status::error, "but the whole of it took"},
                    Early{"babbles", true, Status::error, "unknown record type 'burp'"}),
    [](const auto& info) { return info.param.what; });

TEST(Paired, AnExperimentThatIsMeasuredAsAWholeCannotBeAskedForBursts) {
  Pair pair;
  for (PairedSide* side : {&pair.a, &pair.b}) {
    side->planned.experiment = &pair.faults;
    side->planned.params = {{"fault", std::string("none")}};
  }
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.a.status), "unsupported") << launch.a.detail;
  expect_contains(launch.a.detail, "'selftest_faults' is measured as a whole");
}

TEST(Paired, AWorkerThatCannotStartIsAnErrorOfItsSide) {
  Pair pair;
  pair.b.worker_command = {"/no/such/worker"};
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.b.status), "error");
  expect_contains(launch.b.detail, "/no/such/worker");
  EXPECT_EQ(to_string(launch.a.status), "aborted");
}

TEST(Paired, ASignalAbortsBothSides) {
  for (const std::string at : {"A: checking", "A: block 2 of 3"}) {
    Pair pair;
    const auto tell = pair.observer.progress;
    pair.observer.progress = [&](const plan::PlannedCase& planned, const worker::ProgressRecord& record) {
      tell(planned, record);
      if (pair.events.back() == at) ::raise(SIGTERM);
    };
    const PairedLaunch launch = pair.run();
    EXPECT_EQ(to_string(launch.a.status), "aborted") << launch.a.detail;
    EXPECT_EQ(to_string(launch.b.status), "aborted") << launch.b.detail;
    EXPECT_LT(launch.blocks.size(), 3U);
  }
}

TEST(Paired, AThrowingCallbackKillsBothAndComesOut) {
  for (const std::string at : {"checking", "block 1 of 3"}) {
    Pair pair;
    pair.observer.progress = [&](const plan::PlannedCase&, const worker::ProgressRecord& record) {
      if (record.text == at) throw Error(ErrorKind::store, "disk full");
    };
    EXPECT_THROW(pair.run(), Error);
    EXPECT_EQ(workers_alive(), 0);
  }
}

// A time that is the caller's own, and no --timeout.
TEST(Paired, WhatHasNotEndedInTimeIsCutAndNothingIsSaidOfIt) {
  Pair pair;
  pair.a.worker_command = fake_worker("well");
  pair.b.worker_command = fake_worker("never_ready");
  const auto began = std::chrono::steady_clock::now();
  pair.options.until = began + 700ms;
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.cut);
  EXPECT_FALSE(launch.complete());
  EXPECT_EQ(to_string(launch.a.status), "aborted") << launch.a.detail;
  EXPECT_EQ(to_string(launch.b.status), "aborted") << launch.b.detail;
  expect_contains(launch.b.detail, "the time for the comparison was spent");
  EXPECT_LT(std::chrono::steady_clock::now() - began, pair.options.timeout / 4);
}

TEST(Paired, TakesFewerBlocksWhereItsTimeEnds) {
  Pair pair;
  pair.a.worker_command = pair.b.worker_command = fake_worker("slow_bursts");  // a block takes 1.2 s
  pair.options.until = std::chrono::steady_clock::now() + 2600ms;
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_FALSE(launch.cut);
  EXPECT_EQ(launch.blocks.size(), 1U);
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

// Of a function the worker stays, and what is judged does not (worker/case_context.hpp).
TEST(Paired, AFunctionsWorkerStaysForTheNextLaunchIfItKnowsHow) {
  for (const auto& [behaviour, stays] : {std::pair("serves_fresh", true), std::pair("well", false)}) {
    Pair pair;
    SideWorkers workers;
    pair.options.workers = &workers;
    for (PairedSide* side : {&pair.a, &pair.b}) {
      side->worker_command = fake_worker(behaviour);
      side->planned.implementation = "me";
      side->mine = {plan::MineSpec{.name = "me", .path = "/f.py", .python_class = "f", .reference = "/f.py:g"}};
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
    side.mine = {plan::MineSpec{.name = "me", .path = "/f.py", .python_class = "f", .reference = "/f.py:g"}};
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

// Two ranks on side B, of which one has said what was asked and the other has not.
TEST(Paired, ARankThatDiesBehindItsAnswerIsSeenWhileAnotherIsNotDone) {
  Pair pair;
  pair.b.planned.world_size = 2;
  pair.b.worker_command = fake_worker("dies_answered");
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.b.status), "crashed") << launch.b.detail;
  expect_contains(launch.b.detail, "rank 1: exit code 3");
  EXPECT_LT(launch.b.wall, 15s);  // the grace, not the limit
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
