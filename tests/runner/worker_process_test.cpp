#include "runner/worker_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "worker/wire/wire.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;
using State = Heard::State;

WorkerProcess test_worker() { return WorkerProcess({{std::getenv("SYSLAB_TEST_WORKER")}, {}}); }

Json fault(const std::string& name) {
  worker::CaseRequest request;
  request.experiment = "selftest_faults";
  request.params = {{"fault", name}};
  request.implementation = "selftest";
  return worker::to_json(request);
}

// Types of the messages of one case, its end included.
std::vector<std::string> types_of_case(WorkerProcess& worker, Watch& watch) {
  std::vector<std::string> types;
  while (types.empty() || types.back() != "end") {
    const Heard heard = worker.next(Clock::now() + 20s, watch);
    if (heard.state != State::message) break;
    types.push_back(parse_message(heard.text).at("type").get<std::string>());
  }
  return types;
}

TEST(WorkerProcess, AnswersOneCaseAfterTheOther) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker = test_worker();
  const std::vector<std::string> expected{"check", "progress", "metric", "fact", "end"};
  for (int i = 0; i < 3; ++i) {
    worker.send(fault("none"));
    EXPECT_EQ(types_of_case(worker, watch), expected);
  }
  worker.send({{"type", "bye"}});
  EXPECT_EQ(worker.next(Clock::now() + 20s, watch).state, State::gone);
  EXPECT_EQ(worker.bury().exit.describe(), "exit code 0");
}

TEST(WorkerProcess, AMessageNestedWithoutEndIsRefused) {
  EXPECT_THROW(parse_message(R"({"type": "fact", "facts": {"a": )" + std::string(100'000, '[') +
                             std::string(100'000, ']') + "}}"),
               Error);
}

TEST(WorkerProcess, AMessageThatIsNoJsonIsQuotedWithWhatIsWrong) {
  try {
    parse_message(R"({"type": "metric", "name": "speed", "rank": 3, "value": 1e999})");
    FAIL() << "no double holds this number";
  } catch (const Error& error) {
    for (const char* part : {"is no JSON", "number overflow", "\"speed\"", "\"rank\": 3"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(WorkerProcess, IsLateWhenTheDeadlinePassesAndStillListens) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker = test_worker();
  EXPECT_EQ(worker.next(Clock::now() + 50ms, watch).state, State::late);
  worker.send(fault("none"));
  EXPECT_EQ(types_of_case(worker, watch).back(), "end");
}

// The child's words come faster than any tick of ours.
TEST(WorkerProcess, IsGoneWhenItDiesThoughAChildOfItHoldsItsPipesAndTalks) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker({{"sh", "-c", "(while :; do echo here >&2; sleep 0.02; done) & exit 3"}, {}});
  const auto began = Clock::now();
  EXPECT_EQ(worker.next(began + 20s, watch).state, State::gone);
  EXPECT_LT(Clock::now() - began, 4s);  // not at the next heartbeat only
  EXPECT_EQ(worker.bury().exit.describe(), "exit code 3");
}

TEST(WorkerProcess, IsLateThoughItNeverStopsTalking) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker = test_worker();
  worker.send(fault("babble"));
  const auto deadline = Clock::now() + 200ms;
  State last = State::message;
  while (last == State::message) last = worker.next(deadline, watch).state;
  EXPECT_EQ(last, State::late);
  EXPECT_LT(Clock::now(), deadline + 1s);
  worker.kill();
  EXPECT_TRUE(worker.bury().exit.signalled);
}

TEST(WorkerProcess, IsNotWaitedForOnceASignalCame) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker = test_worker();
  ::raise(SIGTERM);
  EXPECT_EQ(worker.next(Clock::now() + 20s, watch).state, State::interrupted);
}

TEST(WorkerProcess, IsGoneWhenItDies) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker = test_worker();
  worker.send(fault("exit"));
  EXPECT_EQ(types_of_case(worker, watch), (std::vector<std::string>{"check", "progress"}));
  const Remains remains = worker.bury();
  EXPECT_EQ(remains.exit.describe(), "exit code 3");
  EXPECT_EQ(remains.last_lines, "leaving early");
}

TEST(WorkerProcess, IsBrokenWhenItGreetsInAnotherTongue) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker({{"echo", "hello there"}, {}});
  const Heard heard = worker.next(Clock::now() + 20s, watch);
  EXPECT_EQ(heard.state, State::broken);
  EXPECT_NE(heard.text.find("hello there"), std::string::npos) << heard.text;
}

TEST(WorkerProcess, ForgetsWhatItPrintedBefore) {
  const Interruption interruption;
  Watch watch(interruption);
  WorkerProcess worker = test_worker();
  worker.send(fault("print"));
  types_of_case(worker, watch);
  EXPECT_EQ(worker.last_lines(5), "a print from a kernel");
  worker.forget_output();
  EXPECT_EQ(worker.last_lines(5), "");
}

}  // namespace
}  // namespace syslab::runner
