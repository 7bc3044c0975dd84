// Launches that end before anything can be compared.
#include <gtest/gtest.h>
#include <signal.h>

#include "core/error.hpp"
#include "tests/expect_contains.hpp"
#include "tests/runner/pair_of_sides.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

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

// It had timed out for a reason of its own, long before: whoever gave the time would name that as spent, and try again.
TEST(Paired, WhatTimesOutBeforeThatIsNotCut) {
  Pair pair;
  pair.a.worker_command = fake_worker("well");
  pair.b.worker_command = fake_worker("times_out");
  pair.options.until = std::chrono::steady_clock::now() + pair.options.timeout / 2;
  const PairedLaunch launch = pair.run();
  EXPECT_FALSE(launch.cut);
  EXPECT_FALSE(launch.complete());
  EXPECT_EQ(to_string(launch.b.status), "timeout") << launch.b.detail;
  expect_contains(launch.b.detail, "said nothing while others waited");
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

}  // namespace
}  // namespace syslab::runner
