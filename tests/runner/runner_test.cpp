#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tests/expect_contains.hpp"
#include "tests/runner/fault_case.hpp"
#include "tests/runner/lab.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

class Faults : public testing::TestWithParam<ExpectedEnd> {};

TEST_P(Faults, EndInTheirStatusAndTheNextCaseRuns) {
  Lab lab;
  const bool endless = GetParam().status == Status::timeout;
  if (endless) lab.options.timeout = 300ms;
  if (GetParam().fault == "flood") lab.options.timeout = 120s;  // much through a pipe, on a machine that may be busy
  if (GetParam().fault == "eat_memory") lab.options.memory_limit_bytes = 256U << 20;
  lab.run({GetParam().fault, "none"});
  EXPECT_TRUE(lab.all_finished);
  ASSERT_EQ(lab.results.size(), 2U);
  EXPECT_EQ(to_string(lab.results[0].status), to_string(GetParam().status)) << lab.results[0].detail;
  expect_contains(lab.results[0].detail, GetParam().detail);
  EXPECT_EQ(to_string(lab.results[1].status), "ok") << lab.results[1].detail;
  if (endless) {
    EXPECT_LT(lab.results[0].wall, 3s);
  }
  EXPECT_EQ(workers_alive(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Runner, Faults,
    testing::Values(ExpectedEnd{"none", Status::ok, ""},
                    ExpectedEnd{"throw", Status::error, "device: the fault 'throw' was asked for (in"},
                    ExpectedEnd{"oom", Status::oom, "needs 242 GiB"},
                    ExpectedEnd{"bad_alloc", Status::oom, "out of memory"},
                    ExpectedEnd{"eat_memory", Status::oom, "the case may take 268435456 bytes"},
                    ExpectedEnd{"terminate", Status::oom, "std::bad_alloc ended the worker"},
                    ExpectedEnd{"hang", Status::timeout, "last seen: about to meet the fault 'hang'"},
                    ExpectedEnd{"babble", Status::timeout, "last seen: still talking"},
                    ExpectedEnd{"shout", Status::timeout, "last seen: about to meet the fault 'shout'"},
                    ExpectedEnd{"flood", Status::error, "more than an attempt may hold"},
                    ExpectedEnd{"kill", Status::crashed, "killed by signal 9"},
                    ExpectedEnd{"segv", Status::crashed, "killed by signal 11 (Segmentation fault)"},
                    ExpectedEnd{"nan", Status::ok, ""},
                    ExpectedEnd{"half_record", Status::crashed,
                                "exit code 0 without an end record, 17 bytes into a record"},
                    ExpectedEnd{"exit", Status::crashed,
                                "exit code 3 without an end record; last seen: about to meet the fault 'exit'; "
                                "its last lines:\nleaving early"},
                    ExpectedEnd{"garbage", Status::error, "found \"Hello from the kernel"},
                    ExpectedEnd{"bad_record", Status::error, "unknown record type 'metrik'"},
                    ExpectedEnd{"deep_facts", Status::error,
                                "the worker of 'selftest', record 'fact': field 'facts' is nested 99 levels deep; "
                                "expected at most 90"},
                    ExpectedEnd{"print", Status::ok, ""}, ExpectedEnd{"chatter", Status::ok, ""},
                    ExpectedEnd{"check_failed", Status::check_failed, "out[3] is 7, expected 8"},
                    ExpectedEnd{"unsupported", Status::unsupported, "needs 6 GPUs"},
                    ExpectedEnd{"unchecked", Status::error, "without having checked anything"},
                    ExpectedEnd{"crash_after_end", Status::ok, ""}, ExpectedEnd{"grandchild", Status::ok, ""}),
    fault_of<testing::TestParamInfo<ExpectedEnd>>);

TEST(Runner, RecordsArriveInOrderAndFactsAreMerged) {
  Lab lab;
  const AttemptResult& result = lab.run({"none"});
  ASSERT_EQ(result.records.size(), 2U);
  EXPECT_EQ(std::get<worker::CheckRecord>(result.records[0]).outcome, Outcome::passed);
  EXPECT_EQ(std::get<worker::MetricRecord>(result.records[1]).value, 42.0);
  const Json facts = Json::parse(result.facts_json);
  EXPECT_EQ(facts.at("isolation"), "case");
  EXPECT_EQ(facts.at("exit"), "exit code 0");
  EXPECT_GT(facts.at("max_rss_bytes").get<std::int64_t>(), 1 << 20);
  EXPECT_LT(result.started_at, result.ended_at);
}

TEST(Runner, TheObserverHearsOfEachStepInOrder) {
  Lab lab;
  plan::PlannedCase skipped = lab.fault("skipped");
  skipped.skip_reason = "head_dim > seq";
  lab.plan.cases.push_back(skipped);
  lab.run({"none"});
  EXPECT_EQ(lab.events, (std::vector<std::string>{"finished skipped", "started none",
                                                  "progress none: about to meet the fault 'none'", "finished none"}));
  EXPECT_EQ(lab.results[0].status, Status::skipped);
  EXPECT_EQ(lab.results[0].detail, "head_dim > seq");
}

TEST(Runner, AMetricThatIsNoNumberIsANoteWithoutAValue) {
  Lab lab;
  const AttemptResult& result = lab.run({"nan"});
  const auto& metric = std::get<worker::MetricRecord>(result.records.back());
  EXPECT_FALSE(metric.value);
  EXPECT_NE(metric.note.find("not a number"), std::string::npos) << metric.note;
}

TEST(Runner, PrintsOfACaseAreKeptAndHarmless) {
  Lab lab;
  expect_contains(Json::parse(lab.run({"print"}).facts_json).at("stderr_tail").get<std::string>(), "a print from a");
  const std::string tail = Json::parse(lab.run({"chatter"}).facts_json).at("stderr_tail").get<std::string>();
  expect_contains(tail, "line 19999 of many");
  EXPECT_LT(tail.size(), 10000U);
}

TEST(Runner, ADeathAfterTheEndIsAFactAndNoVerdict) {
  Lab lab;
  expect_contains(lab.run({"crash_after_end"}).facts_json, "killed by signal 11");
}

TEST(Runner, AWorkerThatCannotStartIsAnErrorOfItsCase) {
  Lab lab;
  lab.options.worker_command = {"/no/such/worker"};
  EXPECT_EQ(lab.run({"none"}).status, Status::error);
  expect_contains(lab.results.back().detail, "/no/such/worker");
}

TEST(Runner, AProgramThatIsNoWorkerIsAnErrorOrACrash) {
  Lab lab;
  lab.options.worker_command = {"echo", "hello there"};
  EXPECT_EQ(lab.run({"none"}).status, Status::error);
  expect_contains(lab.results.back().detail, "hello there");
  lab.options.worker_command = {"false"};
  lab.plan.cases.clear();
  EXPECT_EQ(lab.run({"none"}).status, Status::crashed);
}

TEST(Runner, AThrowingCallbackKillsTheWorkerAndComesOut) {
  Lab lab;
  lab.observer.progress = [](const plan::PlannedCase&, const worker::ProgressRecord&) {
    throw std::runtime_error("disk full");
  };
  EXPECT_THROW(lab.run({"hang"}), std::runtime_error);
  EXPECT_EQ(workers_alive(), 0);
}

// What a signal does for as long as this lives, whatever it does to the process that runs the tests (nohup).
class SignalDoes {
 public:
  SignalDoes(int number, void (*handler)(int)) : number_(number) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(number_, &action, &before_);
  }
  SignalDoes(const SignalDoes&) = delete;
  SignalDoes& operator=(const SignalDoes&) = delete;
  ~SignalDoes() { ::sigaction(number_, &before_, nullptr); }

 private:
  int number_;
  struct sigaction before_ {};
};

TEST(Runner, ASignalAbortsTheRunningCaseAndStopsThePlan) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const SignalDoes ends_the_process(number, SIG_DFL);
    Lab lab;
    lab.observer.progress = [&](const plan::PlannedCase& planned, const worker::ProgressRecord&) {
      if (planned.case_uid == "hang") ::raise(number);
    };
    const auto begin = std::chrono::steady_clock::now();
    lab.run({"none", "hang", "none"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_FALSE(lab.all_finished);
    EXPECT_EQ(lab.results.back().status, Status::aborted) << lab.results.back().detail;
    EXPECT_EQ(lab.results.size(), 2U);
    EXPECT_EQ(workers_alive(), 0);
    struct sigaction after {};
    ::sigaction(number, nullptr, &after);
    EXPECT_EQ(after.sa_handler, SIG_DFL);
  }
}

TEST(Runner, ASignalThatIsIgnoredStopsNothing) {
  const SignalDoes nothing(SIGHUP, SIG_IGN);
  Lab lab;
  const auto keep = lab.observer.finished;
  lab.observer.finished = [&](const AttemptResult& result) {
    keep(result);
    ::raise(SIGHUP);
  };
  lab.run({"none", "none"});
  EXPECT_TRUE(lab.all_finished);
  EXPECT_EQ(lab.results.size(), 2U);
}

TEST(Runner, ASignalBetweenTwoCasesStartsNoOther) {
  const SignalDoes ends_the_process(SIGINT, SIG_DFL);  // which a shell ignores for what it starts in the background
  Lab lab;
  const auto keep = lab.observer.finished;
  lab.observer.finished = [&](const AttemptResult& result) {
    keep(result);
    ::raise(SIGINT);
  };
  EXPECT_EQ(lab.run({"none", "none"}).status, Status::ok);
  EXPECT_FALSE(lab.all_finished);
  EXPECT_EQ(lab.results.size(), 1U);
}

TEST(Runner, ASignalDuringAHangIsAnsweredAtOnce) {
  std::chrono::steady_clock::duration shortest = 1h;  // a busy machine makes one of them long
  for (int attempt = 0; attempt < 3 && shortest >= 1500ms; ++attempt) {
    Lab lab;
    std::thread later([] {
      std::this_thread::sleep_for(300ms);
      ::kill(::getpid(), SIGTERM);
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(lab.run({"hang"}).status, Status::aborted);
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
    later.join();
  }
  EXPECT_LT(shortest, 1500ms);
}

TEST(Runner, AWorkersChildThatOutlivesItIsKilled) {
  Lab lab;
  EXPECT_EQ(lab.run({"grandchild"}).status, Status::ok);
  EXPECT_LT(lab.results.back().wall, 5s);
}

TEST(Runner, BeatsWhileACaseRuns) {
  Lab lab;
  int beats = 0;
  lab.observer.heartbeat = [&](const plan::PlannedCase&) { ++beats; };
  lab.options.timeout = 5200ms;
  lab.run({"hang"});
  EXPECT_EQ(beats, 1);
}

}  // namespace
}  // namespace syslab::runner
