// What a whole plan does with its workers and its time: isolation, launches, budget, predictions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runner/law_shares.hpp"
#include "runner/workers.hpp"
#include "tests/runner/lab.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

Json facts(const AttemptResult& result) { return Json::parse(result.facts_json); }

// Which process had each case.
std::vector<int> workers_of(const Lab& lab) {
  std::vector<int> ordinals;
  for (const AttemptResult& result : lab.results) ordinals.push_back(facts(result).value("worker", 0));
  return ordinals;
}

TEST(Isolation, PerCaseGivesEachCaseAProcess) {
  Lab lab;
  lab.run({"none", "none", "none"});
  EXPECT_EQ(workers_of(lab), (std::vector{1, 2, 3}));
  EXPECT_EQ(facts(lab.results[2]).at("isolation"), "case");
}

TEST(Isolation, ReuseKeepsAWorkerThatEndsWell) {
  Lab lab;
  lab.options.isolation = Isolation::reuse;
  lab.run({"none", "check_failed", "unsupported", "none"});
  EXPECT_TRUE(lab.all_finished);
  EXPECT_EQ(workers_of(lab), (std::vector{1, 1, 1, 1}));
  EXPECT_EQ(lab.results[1].status, Status::check_failed);
  EXPECT_EQ(lab.results[3].status, Status::ok) << lab.results[3].detail;
  const Json last = facts(lab.results[3]);
  EXPECT_EQ(last.at("isolation"), "reuse");
  EXPECT_EQ(last.at("worker_cases_before"), 3);
  EXPECT_FALSE(last.contains("exit")) << "it lives on";
  EXPECT_GT(last.at("max_rss_bytes").get<double>(), 1 << 20);
  EXPECT_LT(last.at("cpu_time_s").get<double>(), 1);
  EXPECT_EQ(workers_alive(), 0);
}

TEST(Isolation, ReuseReplacesAWorkerThatEndsOtherwise) {
  for (const std::string fault : {"throw", "oom", "bad_alloc", "hang", "segv", "exit", "garbage", "unchecked"}) {
    Lab lab;
    lab.options.isolation = Isolation::reuse;
    lab.options.timeout = fault == "hang" ? 300ms : 20s;
    lab.run({"none", fault, "none", "none"});
    EXPECT_EQ(workers_of(lab), (std::vector{1, 1, 2, 2})) << fault;
    EXPECT_EQ(lab.results[3].status, Status::ok) << fault << ": " << lab.results[3].detail;
    EXPECT_EQ(workers_alive(), 0) << fault;
  }
}

// The plan of Python classes of these names, one case each; "" is none of them.
void plan_of_classes(Lab& lab, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    plan::PlannedCase planned = lab.fault("none");
    if (!name.empty()) {
      planned.implementation = name;
      lab.plan.mine.push_back(submitted_of(name, "/" + name + ".py", "Flash"));
    }
    lab.plan.cases.push_back(planned);
  }
}

TEST(Isolation, EachClassKeepsAWorkerThatIsStoppedWhileOthersRun) {
  if (!has_plenty_of_memory()) GTEST_SKIP() << "three quarters of the memory are in use";
  Lab lab;
  plan_of_classes(lab, {"a", "b", "", "a", "b", "a", "c", "b"});
  std::vector<int> stopped;
  lab.observer.progress = [&](const plan::PlannedCase&, const worker::ProgressRecord&) {
    stopped.push_back(workers_alive("T"));
  };
  EXPECT_TRUE(run_plan(lab.plan, lab.options, lab.observer));
  // The third has no class. `a` has had its last case when `c` begins, which takes its worker.
  EXPECT_EQ(workers_of(lab), (std::vector{1, 2, 3, 1, 2, 1, 1, 2}));
  EXPECT_EQ(stopped, (std::vector{0, 1, 2, 1, 1, 1, 1, 0}));
  for (const AttemptResult& result : lab.results) EXPECT_EQ(result.status, Status::ok) << result.detail;
  EXPECT_EQ(facts(lab.results[4]).at("worker_cases_before"), 1);
  EXPECT_EQ(workers_alive(), 0);
}

TEST(Isolation, PerCaseKeepsNoClass) {
  Lab lab;
  lab.options.isolation = Isolation::per_case;
  plan_of_classes(lab, {"a", "b", "a"});
  lab.run({});
  EXPECT_EQ(workers_of(lab), (std::vector{1, 2, 3}));
}

TEST(Isolation, OfManyClassesSomeKeepTheirWorkers) {
  if (!has_plenty_of_memory()) GTEST_SKIP() << "three quarters of the memory are in use";
  Lab lab;
  plan_of_classes(lab, {"a", "b", "c", "d", "e", "a", "b", "c", "d", "e"});
  lab.run({});
  // The fourth found three aside already, and ended with its first case; the last three had no further one.
  EXPECT_EQ(workers_of(lab), (std::vector{1, 2, 3, 4, 5, 1, 2, 3, 3, 5}));
  EXPECT_EQ(workers_alive(), 0);
}

TEST(Isolation, AClassWhoseWorkerDiedGetsAnother) {
  if (!has_plenty_of_memory()) GTEST_SKIP() << "three quarters of the memory are in use";
  Lab lab;
  plan_of_classes(lab, {"a", "b", "a", "b"});
  lab.plan.cases[0].params = {{"fault", "segv"}};
  lab.run({});
  EXPECT_EQ(workers_of(lab), (std::vector{1, 2, 3, 2}));
}

TEST(Isolation, PrintsOfOneCaseAreNotTheNextOnes) {
  Lab lab;
  lab.options.isolation = Isolation::reuse;
  lab.run({"print", "none"});
  EXPECT_TRUE(facts(lab.results[0]).contains("stderr_tail"));
  EXPECT_FALSE(facts(lab.results[1]).contains("stderr_tail"));
}

TEST(Isolation, AMemoryLimitHoldsForEachCaseOfASharedWorker) {
  Lab lab;
  lab.options.isolation = Isolation::reuse;
  lab.options.memory_limit_bytes = 256U << 20;
  lab.run({"none", "eat_memory", "none"});
  EXPECT_EQ(lab.results[1].status, Status::oom) << lab.results[1].detail;
  EXPECT_EQ(lab.results[2].status, Status::ok) << lab.results[2].detail;
}

TEST(LaunchesOfAnAttempt, AreFreshProcesses) {
  for (const Isolation isolation : {Isolation::per_case, Isolation::reuse}) {
    Lab lab;
    lab.options.launches = 3;
    lab.options.isolation = isolation;
    const Json found = facts(lab.run({"none"}));
    ASSERT_EQ(found.at("launches").size(), 3U);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(found.at("launches")[std::size_t(i)].at("worker"), i + 1);
    EXPECT_EQ(found.at("isolation"), "case");
  }
}

TEST(LaunchesOfAnAttempt, EndWithTheFirstThatEndsBadly) {
  Lab lab;
  lab.options.launches = 3;
  const AttemptResult& result = lab.run({"segv"});
  EXPECT_EQ(result.status, Status::crashed);
  EXPECT_TRUE(result.detail.starts_with("launch 1 of 3: killed by signal 11")) << result.detail;
  EXPECT_EQ(facts(result).at("launches").size(), 1U);
}

TEST(LaunchesOfAnAttempt, ShareItsTime) {
  Lab lab;
  lab.options.launches = 3;
  lab.options.timeout = 300ms;
  EXPECT_EQ(lab.run({"hang"}).status, Status::timeout);
  EXPECT_LT(lab.results.back().wall, 2s);
}

TEST(LaunchesOfAnAttempt, AreOneForALaw) {
  Lab lab;
  lab.options.launches = 3;
  plan::PlannedCase law = lab.fault("none");
  law.task = plan::Task::law;
  law.law = "a.law";
  lab.plan.cases.push_back(law);
  EXPECT_FALSE(facts(lab.run({})).contains("launches"));
}

TEST(BudgetOfAPlan, LeavesOutWhatDoesNotFitAndStartsWhatDoes) {
  Lab lab;
  lab.options.budget = 10s;
  for (const auto& [name, predicted] : {std::pair{"none", 1ms}, std::pair{"hang", 60'000ms}, std::pair{"none", 1ms}}) {
    lab.plan.cases.push_back(lab.fault(name));
    lab.plan.cases.back().predicted_time = predicted;
    lab.plan.cases.back().predicted_from = "estimated";
  }
  std::vector<std::string> left_out;
  lab.observer.left_out = [&](const plan::PlannedCase& it, const std::string& why) {
    left_out.push_back(it.case_uid + ": " + why);
  };
  lab.run({});
  EXPECT_FALSE(lab.all_finished);
  EXPECT_EQ(lab.results.size(), 2U);
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_TRUE(left_out[0].starts_with("hang: about 1 m 0 s (estimated) do not fit into the ")) << left_out[0];
}

TEST(BudgetOfAPlan, StartsNothingOnceItIsUsedUp) {
  Lab lab;
  lab.options.budget = 200ms;
  lab.options.timeout = 400ms;
  int left_out = 0;
  lab.observer.left_out = [&](const plan::PlannedCase&, const std::string& why) {
    EXPECT_EQ(why, "the budget of 200 ms is used up");
    ++left_out;
  };
  lab.run({"hang", "none", "none"});  // the first began in time and takes its own
  EXPECT_EQ(lab.results.size(), 1U);
  EXPECT_EQ(left_out, 2);
}

TEST(StopAtFailure, StartsNothingBehindACaseThatFailed) {
  for (const std::string fault : {"check_failed", "segv", "throw"}) {
    Lab lab;
    lab.options.stop_at_failure = true;
    std::vector<std::string> left_out;
    lab.observer.left_out = [&](const plan::PlannedCase& it, const std::string& why) {
      left_out.push_back(it.case_uid + ": " + why);
    };
    lab.run({"none", "unsupported", fault, "none", "segv"});
    EXPECT_FALSE(lab.all_finished);
    EXPECT_EQ(lab.results.size(), 3U) << fault;
    EXPECT_EQ(left_out,
              (std::vector<std::string>{"none: stopped at the first failure", "segv: stopped at the first failure"}));
  }
}

TEST(Until, SharesWhatIsLeftAmongTheLawsThatAreLeft) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(law_time_of(begin + 60s, begin, 6), 10s);
  EXPECT_EQ(law_time_of(begin + 60s, begin + 50s, 1), 10s);
  EXPECT_EQ(law_time_of(begin + 60s, begin + 61s, 3), 0s) << "each law gets its tries";
}

// What laws of a second each are given, one after the other, of `within`.
std::vector<Nanoseconds> limits_of(Nanoseconds within, const std::vector<double>& take, int jobs = 1) {
  Lab lab;
  for (std::size_t i = 0; i < take.size(); ++i) {
    plan::PlannedCase law = lab.fault("none");
    law.task = plan::Task::law;
    lab.plan.cases.push_back(law);
  }
  RunSpec spec;
  spec.within = within;
  spec.jobs = jobs;
  LawShares shares(lab.plan, spec);
  std::vector<Nanoseconds> limits;
  for (std::size_t i = 0; i < take.size(); ++i) {
    shares.give(lab.plan.cases[i], spec);
    limits.push_back(spec.law_limit);
    AttemptResult result;
    result.planned = &lab.plan.cases[i];
    result.wall = 100s;  // on a busy machine: what it says itself counts
    result.facts_json = fmt::format("{{\"law_seconds\": {}}}", take[i]);
    shares.took(result);
  }
  return limits;
}

TEST(Within, WhatLawsLeaveIsSharedAmongThoseBehindThem) {
  EXPECT_EQ(limits_of(20s, {1, 1, 1, 17}), (std::vector<Nanoseconds>{5s, Nanoseconds(19s) / 3, 9s, 17s}));
  EXPECT_EQ(limits_of(0s, {1, 1}), (std::vector<Nanoseconds>{0s, 0s})) << "no limit";
}

TEST(Within, EveryLawHasSomeTimeHoweverLongThoseBeforeItTook) {
  EXPECT_EQ(limits_of(20s, {30, 1}), (std::vector<Nanoseconds>{10s, 2500ms}));
}

TEST(PredictedOom, IsAResultWithoutAWorker) {
  Lab lab;
  plan::PlannedCase big = lab.fault("segv");
  big.predicted_oom = "needs 242 GiB, this machine has 24 GiB";
  lab.plan.cases.push_back(big);
  lab.run({"none"});
  EXPECT_EQ(lab.results[0].status, Status::oom);
  EXPECT_EQ(lab.results[0].detail, "needs 242 GiB, this machine has 24 GiB");
  EXPECT_EQ(facts(lab.results[0]).at("predicted"), true);
  EXPECT_EQ(lab.events.front(), "finished segv");
  EXPECT_TRUE(lab.all_finished);
}

}  // namespace
}  // namespace syslab::runner
