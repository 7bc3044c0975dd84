#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "runner/ranks/gang.hpp"
#include "tests/expect_contains.hpp"
#include "tests/runner/fault_case.hpp"
#include "tests/runner/lab.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

// A lab whose cases have ranks, and whose launches meet in a folder that can be looked into afterwards.
struct RanksLab : Lab {
  registry::Experiment ranks;
  std::filesystem::path meeting_places;

  RanksLab() {
    ranks.id = "selftest_ranks";
    ranks.limit_axis = "limit_ms";
    std::string folder = (std::filesystem::temp_directory_path() / "syslab-ranks-test-XXXXXX").string();
    meeting_places = ::mkdtemp(folder.data());
    ::setenv("TMPDIR", meeting_places.c_str(), 1);
  }
  ~RanksLab() {
    ::unsetenv("TMPDIR");
    std::filesystem::remove_all(meeting_places);
  }

  // `limit_ms`: how long a rank waits for another.
  const AttemptResult& run_ranks(const std::string& fault, int world_size = 2, std::int64_t limit_ms = 15'000) {
    plan.cases.clear();
    plan::PlannedCase planned;
    planned.experiment = &ranks;
    planned.params = {
        {"fault", fault}, {"steps", std::int64_t{6}}, {"share_us", std::int64_t{500}}, {"limit_ms", limit_ms}};
    planned.implementation = "selftest";
    planned.case_uid = fault;
    planned.world_size = world_size;
    plan.cases.push_back(planned);
    all_finished = run_plan(plan, options, observer);
    EXPECT_EQ(workers_alive(), 0);
    EXPECT_TRUE(std::filesystem::is_empty(meeting_places)) << "a folder of ranks was left";
    return results.back();
  }
};

template <typename Type>
std::vector<Type> all_of(const AttemptResult& result) {
  std::vector<Type> found;
  for (const worker::Record& record : result.records) {
    if (const auto* one = std::get_if<Type>(&record)) found.push_back(*one);
  }
  return found;
}

class RankFaults : public testing::TestWithParam<ExpectedEnd> {};

TEST_P(RankFaults, EndAllRanksTogetherInTheCulpritsStatus) {
  RanksLab lab;
  // Where all goes well nobody gives up waiting, however busy the machine is; else before the grace is over.
  const AttemptResult& result = lab.run_ranks(GetParam().fault, 2, GetParam().status == Status::ok ? 15'000 : 1'000);
  EXPECT_EQ(to_string(result.status), to_string(GetParam().status)) << result.detail;
  expect_contains(result.detail, GetParam().detail);
  // The limit of the waiting rank, the grace, and what a busy machine adds.
  EXPECT_LT(result.wall, 14s);
}

INSTANTIATE_TEST_SUITE_P(
    Runner, RankFaults,
    testing::Values(
        ExpectedEnd{"none", Status::ok, ""}, ExpectedEnd{"late", Status::ok, ""},
        ExpectedEnd{"crash", Status::crashed, "rank 1: killed by signal 11"},
        // By its exit code this rank blames others, and the other one does so, too: the first counts.
        ExpectedEnd{"exit", Status::crashed, "rank 1: exit code 71 without an end record"},
        ExpectedEnd{"hang", Status::timeout, "rank 1 said nothing while others waited for it, and was killed"},
        ExpectedEnd{"throw", Status::error, "rank 1: device: the fault 'throw' was asked for (in cudaMalloc)"},
        ExpectedEnd{"oom", Status::oom, "rank 1: out of memory"},
        ExpectedEnd{"unsupported", Status::unsupported, "rank 1: needs 6 GPUs"},
        ExpectedEnd{"nan", Status::check_failed, "the number of rank 1 is NaN"},
        ExpectedEnd{"wrong", Status::check_failed, "check 'selftest:sum (rank 1)' is falsified"},
        ExpectedEnd{"leaves_early", Status::error, "rank 0: comm: rank 1 did not come to step 3"}),
    fault_of<testing::TestParamInfo<ExpectedEnd>>);

TEST(Ranks, AReasonTellsWhatBecameOfTheOthers) {
  RanksLab lab;
  expect_contains(lab.run_ranks("throw", 3, 1000).detail, "\nrank 0 then ended error: comm: rank 2 did not come");
  const Json ranks = Json::parse(lab.results.back().facts_json).at("ranks");
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[2].at("fault"), "own");
  EXPECT_EQ(ranks[2].at("exit"), "exit code 70");
  EXPECT_EQ(ranks[0].at("fault"), "late");
  EXPECT_EQ(ranks[0].at("exit"), "exit code 72");
}

// An error of a conversation with somebody who is no rank: nothing that another rank has done.
TEST(Ranks, AWorkersWorkerThatEndsIsItsOwnRanksFault) {
  RanksLab lab;
  expect_contains(lab.run_ranks("foreign", 2, 1000).detail, "rank 1: comm: the worker 'fake' ended");
  EXPECT_EQ(Json::parse(lab.results.back().facts_json).at("ranks")[1].at("fault"), "own");
}

TEST(Ranks, OneThatIsStoppedIsNamedAndNotOneThatSaysNothingEither) {
  RanksLab lab;
  const AttemptResult& result = lab.run_ranks("stop_among_silent", 3, 1000);
  EXPECT_EQ(to_string(result.status), "timeout");
  expect_contains(result.detail, "rank 2 was stopped (SIGSTOP or its like), and was killed; last seen: step 2");
  expect_contains(result.detail, "\nrank 1 was killed");
}

// A stopped rank will not use the time that those have who may still report.
TEST(Ranks, NobodyWaitsForWhatOneThatIsStoppedMightSay) {
  RanksLab lab;
  std::chrono::steady_clock::time_point stopped;
  lab.observer.progress = [&](const plan::PlannedCase&, const worker::ProgressRecord&) {
    stopped = std::chrono::steady_clock::now();
  };
  expect_contains(lab.run_ranks("stop", 2, 1000).detail, "rank 1 was stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 1s + kGrace);
}

// On a busy machine the others begin to wait long after the stop: the limit runs from the stop on.
TEST(Ranks, OneThatIsStoppedIsNamedInTimeThoughNobodyWaitsForItYet) {
  RanksLab lab;
  std::chrono::steady_clock::time_point stopped;
  lab.observer.progress = [&](const plan::PlannedCase&, const worker::ProgressRecord&) {
    stopped = std::chrono::steady_clock::now();
  };
  const std::string detail = lab.run_ranks("stop_before_others", 2, 1000).detail;
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 1s + 3s);
  expect_contains(detail, "rank 1 was stopped (SIGSTOP or its like), and was killed");
}

// What slows the lab itself down takes nothing from the limit but what it is late by.
TEST(Ranks, OneThatIsStoppedIsNamedInTimeByALabThatIsStarved) {
  RanksLab lab;
  std::chrono::steady_clock::time_point stopped;
  lab.observer.progress = [&](const plan::PlannedCase&, const worker::ProgressRecord&) {
    stopped = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(1500ms);
  };
  const std::string detail = lab.run_ranks("stop_before_others", 2, 1000).detail;
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 1s + 3s);
  expect_contains(detail, "rank 1 was stopped");
}

TEST(Ranks, OfSeveralThatAreStoppedTheOneThatIsSoForLongestIsNamed) {
  RanksLab lab;
  expect_contains(lab.run_ranks("stop_among_starved", 3, 2000).detail, "rank 2 was stopped");
}

// Who is blamed by the others may only be slow; the kernel's word counts for more.
TEST(Ranks, OneThatIsStoppedIsNamedAndNotOneThatOthersBlame) {
  RanksLab lab;
  expect_contains(lab.run_ranks("stop_among_blamed", 3, 1000).detail, "rank 2 was stopped");
}

TEST(Ranks, OneThatIsStoppedIsNamedAtTheLimitOfTheCaseToo) {
  RanksLab lab;
  lab.options.timeout = 6s;  // time for both to start on a busy machine
  expect_contains(lab.run_ranks("stop").detail, "rank 1 was stopped (SIGSTOP or its like)");
}

TEST(Ranks, ThoseThatWaitAreKilledAtTheEndOfTheGraceTheyHave) {
  RanksLab lab;
  const AttemptResult& result = lab.run_ranks("crash", 3);  // they would wait for 15 s
  expect_contains(result.detail, "rank 2: killed by signal 11");
  expect_contains(result.detail, "\nrank 0 was killed; last seen: step 2 with the fault 'crash'");
  EXPECT_GT(result.wall, 2s);
  EXPECT_LT(result.wall, 10s);
}

TEST(Ranks, AtTheLimitAllAreKilledAndTheLastPhaseOfEachIsTold) {
  RanksLab lab;
  lab.options.timeout = 6s;  // time for both to start on a busy machine
  const AttemptResult& result = lab.run_ranks("all_hang");
  EXPECT_EQ(to_string(result.status), "timeout") << result.detail;
  expect_contains(result.detail, "\nrank 0 was killed; last seen: step 2 with the fault 'all_hang'");
  expect_contains(result.detail, "\nrank 1 was killed; last seen: step 2");
  EXPECT_LT(result.wall, 14s);
}

TEST(Ranks, RecordsKeepTheirRank) {
  RanksLab lab;
  const AttemptResult& result = lab.run_ranks("none", 3);
  std::vector<std::pair<int, double>> answers;
  for (const worker::MetricRecord& metric : all_of<worker::MetricRecord>(result)) {
    if (metric.name == "answer") answers.emplace_back(metric.rank, *metric.value);
  }
  EXPECT_EQ(answers, (std::vector<std::pair<int, double>>{{0, 1}, {1, 2}, {2, 3}}));
  std::vector<int> memory;
  for (const worker::MemoryEventRecord& event : all_of<worker::MemoryEventRecord>(result)) memory.push_back(event.rank);
  EXPECT_EQ(memory, (std::vector<int>{0, 1, 2}));
  std::vector<std::string> kinds;
  for (const worker::ArtifactRecord& artifact : all_of<worker::ArtifactRecord>(result)) kinds.push_back(artifact.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"note", "note (rank 1)", "note (rank 2)"}));
  EXPECT_EQ(all_of<worker::CheckRecord>(result).front().name, "selftest:sum (rank 0)");
}

// A rank's share grows with its number: the last one is the slowest at nearly every step.
TEST(Ranks, TheTimeOfAllIsThatOfTheSlowestAtEachStep) {
  RanksLab lab;
  const AttemptResult& result = lab.run_ranks("none");
  std::vector<std::vector<double>> seconds;
  for (const worker::SampleRecord& sample : all_of<worker::SampleRecord>(result)) seconds.push_back(sample.values);
  ASSERT_EQ(seconds.size(), 2U);
  ASSERT_EQ(seconds[0].size(), 6U);
  std::vector<double> slowest;
  for (std::size_t i = 0; i < 6; ++i) slowest.push_back(std::max(seconds[0][i], seconds[1][i]));
  std::sort(slowest.begin(), slowest.end());
  std::vector<worker::MetricRecord> times;
  for (const worker::MetricRecord& metric : all_of<worker::MetricRecord>(result)) {
    if (metric.name == "time") times.push_back(metric);
  }
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[2].rank, worker::kAllRanks);
  EXPECT_DOUBLE_EQ(*times[2].value, (slowest[2] + slowest[3]) / 2);
  EXPECT_EQ(times[2].n, 6);
}

TEST(Ranks, SeveralLaunchesAreOneAttemptWithTheSlowestRanksTime) {
  RanksLab lab;
  lab.options.launches = 2;
  const AttemptResult& result = lab.run_ranks("none");
  EXPECT_EQ(to_string(result.status), "ok") << result.detail;
  for (const worker::MetricRecord& metric : all_of<worker::MetricRecord>(result)) {
    if (metric.name != "time" || metric.rank != worker::kAllRanks) continue;
    expect_contains(metric.note, "median of 2 launches' medians");
    EXPECT_EQ(metric.n, 12);
    return;
  }
  FAIL() << "no time of all ranks";
}

TEST(Ranks, AWorkerThatCannotStartIsToldWithItsRank) {
  RanksLab lab;
  lab.options.worker_command = {"/no/such/worker"};
  EXPECT_EQ(lab.run_ranks("none").status, Status::error);
  expect_contains(lab.results.back().detail, "rank 0: ");
  expect_contains(lab.results.back().detail, "/no/such/worker");
}

TEST(Ranks, ProgressIsRankZeros) {
  RanksLab lab;
  lab.run_ranks("none");
  EXPECT_EQ(lab.events,
            (std::vector<std::string>{"started none", "progress none: step 2 with the fault 'none'", "finished none"}));
}

TEST(Ranks, AThrowingCallbackLeavesNoRankBehind) {
  RanksLab lab;
  lab.observer.progress = [](const plan::PlannedCase&, const worker::ProgressRecord&) {
    throw std::runtime_error("disk full");
  };
  EXPECT_THROW(lab.run_ranks("all_hang"), std::runtime_error);
  EXPECT_EQ(workers_alive(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(lab.meeting_places));
}

TEST(Ranks, ASignalAbortsThemAll) {
  RanksLab lab;
  lab.observer.progress = [](const plan::PlannedCase&, const worker::ProgressRecord&) { ::raise(SIGTERM); };
  const AttemptResult& result = lab.run_ranks("all_hang");
  EXPECT_EQ(to_string(result.status), "aborted") << result.detail;
  EXPECT_EQ(result.detail, "stopped by SIGTERM");
  EXPECT_LT(result.wall, 6s);
}

TEST(Ranks, EachHasItsShareOfTheProcessorsUnlessSomebodySaysOtherwise) {
  RanksLab lab;
  ::unsetenv("OMP_NUM_THREADS");
  const auto threads = [&] { return Json::parse(lab.run_ranks("none", 3).facts_json).at("threads"); };
  EXPECT_EQ(threads(), std::to_string(std::max(1U, std::thread::hardware_concurrency() / 3)));
  ::setenv("OMP_NUM_THREADS", "5", 1);
  EXPECT_EQ(threads(), "5");
  ::unsetenv("OMP_NUM_THREADS");
}

TEST(Ranks, WhatEachTellsOfItselfIsKept) {
  RanksLab lab;
  const Json facts = Json::parse(lab.run_ranks("none").facts_json);
  EXPECT_EQ(facts.at("isolation"), "case");
  EXPECT_FALSE(facts.contains("exit"));
  for (const Json& rank : facts.at("ranks")) EXPECT_EQ(rank.at("exit"), "exit code 0");
}

}  // namespace
}  // namespace syslab::runner
