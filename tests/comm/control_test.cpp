#include "comm/rendezvous/control.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "comm/local/local.hpp"
#include "comm/rendezvous/agree.hpp"
#include "core/error.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

// Ranks as threads, each with a rendezvous, a control plane and what it was told.
class ControlPlane : public testing::TestWithParam<const char*> {
 protected:
  struct Rank {
    std::unique_ptr<Rendezvous> rendezvous;
    std::unique_ptr<Control> control;
    std::mutex mutex;
    Progress progress;
    std::string said;
    std::atomic<int> exit_code{0};

    void at(const Progress& now) {
      const std::lock_guard lock(mutex);
      progress = now;
    }
    Ending wait_for_ending() const {
      for (int i = 0; i < 1000 && !control->ending(); ++i) std::this_thread::sleep_for(10ms);
      return control->ending().value_or(Ending{.reason = "no ending came"});
    }
  };

  void run(int size, std::chrono::milliseconds limit, const std::function<void(Rank&)>& body,
           const std::function<void(Rank&, ControlOptions&)>& change = {}) {
    const bool tcp = std::string(GetParam()) == "tcp";
    const TestFolder folder;
    const FreePort port;
    const auto errors = as_threads(size, [&](int number) {
      Rank rank;
      rank.rendezvous =
          open_rendezvous({.address = tcp ? port.address("job") : "file:" + (folder.path() / "meeting").string(),
                           .rank = number,
                           .size = size,
                           .limit = 20s});
      ControlOptions options;
      options.limit = limit;
      options.progress = [&rank] {
        const std::lock_guard lock(rank.mutex);
        return rank.progress;
      };
      options.say = [&rank](const std::string& text) {
        const std::lock_guard lock(rank.mutex);
        rank.said += text + "\n";
      };
      options.exit = [&rank](Fault code) { rank.exit_code = static_cast<int>(code); };
      if (change) change(rank, options);
      rank.control = std::make_unique<Control>(*rank.rendezvous, options);
      body(rank);
      rank.control->leave();
      rank.rendezvous->wait_all("end of the test", 20s);
    });
    EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(size)));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }

  static Progress in(const std::string& operation, std::uint64_t number) {
    Progress progress;
    progress.queued = progress.started = number;
    progress.done = number - 1;
    progress.waiting = operation;
    progress.waiting_number = number;
    return progress;
  }
  static Progress behind(std::uint64_t number) {
    Progress progress;
    progress.queued = progress.started = progress.done = number;
    return progress;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, ControlPlane, testing::Values("tcp", "file"),
                         [](const auto& info) { return info.param; });

// What takes its limit and does not depend on the kind of socket.
class ControlPlaneOverTcp : public ControlPlane {};
INSTANTIATE_TEST_SUITE_P(Kinds, ControlPlaneOverTcp, testing::Values("tcp"));

TEST_P(ControlPlane, AnEndInPeaceTellsNobodyAnything) {
  run(3, 10s, [](Rank& rank) {
    rank.control->set_phase("forward", 1);
    std::this_thread::sleep_for(300ms);
    rank.control->leave();
    EXPECT_FALSE(rank.control->ending());
    EXPECT_EQ(rank.said, "");
  });
}

TEST_P(ControlPlane, WhatFailsOneRankIsReadOnAll) {
  run(3, 10s, [](Rank& rank) {
    if (rank.rendezvous->rank() == 1) rank.control->fail("out of memory allocating 3.2 GB (fc1 activations)");
    const Ending ending = rank.wait_for_ending();
    EXPECT_EQ(ending.culprit, 1);
    EXPECT_EQ(ending.kind, EndingKind::failure);
    EXPECT_EQ(ending.reason, "rank 1 failed: out of memory allocating 3.2 GB (fc1 activations)");
    EXPECT_EQ(static_cast<int>(fault_of(ending, rank.rendezvous->rank())), rank.rendezvous->rank() == 1 ? 70 : 71);
  });
}

TEST_P(ControlPlaneOverTcp, TheWatchdogNamesWhoHasNotComeAndWhereItIs) {
  run(3, 2s, [](Rank& rank) {
    if (rank.rendezvous->rank() == 2) {
      rank.control->set_phase("forward", 118);
      rank.at(behind(1740));
    } else {
      rank.at(in("all_reduce #1741 (gradient, bucket 12)", 1741));
    }
    const Ending ending = rank.wait_for_ending();
    EXPECT_EQ(ending.kind, EndingKind::time_out);
    EXPECT_EQ(ending.culprit, 2);
    EXPECT_EQ(ending.number, 1741U);
    EXPECT_TRUE(has(ending.reason, "rank 2 has not entered all_reduce #1741 (gradient, bucket 12)")) << ending.reason;
    EXPECT_TRUE(has(ending.reason, "in phase forward, step 118")) << ending.reason;
    EXPECT_EQ(static_cast<int>(fault_of(ending, 0)), 72);
    rank.control->leave();
    // The warning came before the end.
    if (rank.rendezvous->rank() != 2) {
      EXPECT_TRUE(has(rank.said, "waits for")) << rank.said;
    }
  });
}

TEST_P(ControlPlaneOverTcp, OfSeveralThatAreBehindTheLastKeepsTheOthers) {
  run(3, 2s, [](Rank& rank) {
    const int number = rank.rendezvous->rank();
    // Rank 1 waits for rank 2 in an operation that rank 0, whose limit is reached first, has behind it.
    if (number == 0) rank.at(in("broadcast #7 (parameter)", 7));
    if (number == 1) std::this_thread::sleep_for(600ms);
    if (number == 1) rank.at(in("broadcast #6 (parameter)", 6));
    if (number == 2) rank.at(behind(5));
    const Ending ending = rank.wait_for_ending();
    EXPECT_EQ(ending.culprit, 2) << ending.reason;
  });
}

TEST_P(ControlPlaneOverTcp, AnOperationThatAllEnteredAndNobodyEndsIsSaidToBeThat) {
  run(2, 2s, [](Rank& rank) {
    Progress progress = in("all_reduce #5 (gradient)", 5);
    rank.at(progress);
    const Ending ending = rank.wait_for_ending();
    EXPECT_TRUE(has(ending.reason, "all ranks have entered all_reduce #5")) << ending.reason;
  });
}

TEST_P(ControlPlaneOverTcp, WorkThatDoesNotBeginIsNobodysTimeOut) {
  run(2, 2s, [](Rank& rank) {
    // Rank 1 has queued the collective behind a kernel that never ends.
    Progress progress = in("all_reduce #5 (gradient)", 5);
    if (rank.rendezvous->rank() == 1) {
      progress.started = 4;
      progress.waiting.clear();
    }
    rank.at(progress);
    const Ending ending = rank.wait_for_ending();
    EXPECT_EQ(ending.culprit, 1);
    EXPECT_TRUE(has(ending.reason, "rank 1 has queued all_reduce #5") && has(ending.reason, "not begun"))
        << ending.reason;
  });
}

TEST_P(ControlPlane, ALeaverWhoIsStillNeededIsNamedAtOnce) {
  run(3, 20s, [](Rank& rank) {
    const auto begin = Clock::now();
    if (rank.rendezvous->rank() == 1) {
      rank.at(behind(4));
      rank.control->leave();
      return;
    }
    rank.at(in("all_gather #5 (parameter)", 5));
    const Ending ending = rank.wait_for_ending();
    EXPECT_EQ(ending.culprit, 1);
    EXPECT_TRUE(has(ending.reason, "rank 1 has left behind operation #4") && has(ending.reason, "all_gather #5"))
        << ending.reason;
    EXPECT_LT(Clock::now() - begin, 9s);
  });
}

TEST_P(ControlPlane, AnEndThatDoesNotReturnEndsTheProcessWithinItsBudget) {
  std::atomic<bool> release = false;
  std::atomic<int> exits = 0;
  run(
      2, 10s,
      [&](Rank& rank) {
        const auto begin = Clock::now();
        if (rank.rendezvous->rank() == 0) rank.control->fail("it is broken");
        rank.wait_for_ending();
        while (rank.exit_code == 0 && Clock::now() - begin < 9s) std::this_thread::sleep_for(10ms);
        EXPECT_EQ(rank.exit_code, rank.rendezvous->rank() == 0 ? 70 : 71);
        if (++exits == 2) release = true;
      },
      [&](Rank&, ControlOptions& options) {
        options.budget = 300ms;
        options.end = [&](const Ending&) {
          while (!release) std::this_thread::sleep_for(10ms);
        };
      });
}

TEST_P(ControlPlane, AFailureThatNobodyToldOfIsToldBeforeTheFarewell) {
  run(
      2, 10s,
      [](Rank& rank) {
        if (rank.rendezvous->rank() != 0) return;
        EXPECT_EQ(rank.wait_for_ending().reason, "rank 1: all_reduce #3: the disk is full");
      },
      [](Rank& rank, ControlOptions& options) {
        if (rank.rendezvous->rank() == 1)
          options.failure = [] {
            return Ending{{EndingKind::failure, 1}, "rank 1: all_reduce #3: the disk is full", {}, 0};
          };
      });
}

// Who meets a failure first is seldom who failed.
TEST_P(ControlPlane, TheCulpritIsWhomTheFailureBlamesNotWhoTellsOfIt) {
  run(
      3, 10s,
      [](Rank& rank) {
        const Ending ending = rank.wait_for_ending();
        EXPECT_EQ(ending.kind, EndingKind::death);
        EXPECT_EQ(ending.culprit, 2);
        EXPECT_EQ(static_cast<int>(fault_of(ending, rank.rendezvous->rank())), rank.rendezvous->rank() == 2 ? 70 : 71);
      },
      [](Rank& rank, ControlOptions& options) {
        if (rank.rendezvous->rank() != 1) return;
        options.failure = [] { return Ending{{EndingKind::death, 2}, "rank 2's process has ended", {}, 0}; };
      });
}

// One rank is a process of its own, which does `fault` half a second after all are connected; the other sees it end.
Ending seen_from(int rank, std::chrono::milliseconds limit, const std::function<void()>& fault) {
  const FreePort port;
  const auto join = [&](int number) {
    auto rendezvous = open_rendezvous({.address = port.address("job"), .rank = number, .size = 2, .limit = 20s});
    auto control =
        std::make_unique<Control>(*rendezvous, ControlOptions{.limit = limit, .say = [](const std::string&) {}});
    return std::pair(std::move(rendezvous), std::move(control));
  };
  const pid_t child = ::fork();
  if (child == 0) {
    const auto [rendezvous, control] = join(1 - rank);
    control->set_phase("backward", 3);
    std::this_thread::sleep_for(500ms);
    fault();
    ::_exit(0);
  }
  Ending ending{.reason = "no ending came"};
  {
    const auto [rendezvous, control] = join(rank);
    for (int i = 0; i < 1000 && !control->ending(); ++i) std::this_thread::sleep_for(10ms);
    ending = control->ending().value_or(ending);
    ::kill(child, SIGKILL);  // what was stopped goes on to nothing
    ::waitpid(child, nullptr, 0);
    control->leave();
  }
  return ending;
}

TEST(ControlOfProcesses, ARankThatDiesIsToldWithWhereItWas) {
  const Ending ending = seen_from(0, 20s, [] { ::raise(SIGKILL); });
  EXPECT_EQ(ending.kind, EndingKind::death);
  EXPECT_EQ(ending.culprit, 1);
  EXPECT_TRUE(has(ending.reason, "rank 1 (pid ") && has(ending.reason, "in phase backward, step 3")) << ending.reason;
}

TEST(ControlOfProcesses, TheDeathOfTheCoordinatorIsSeenByAll) {
  const Ending ending = seen_from(1, 20s, [] { ::raise(SIGKILL); });
  EXPECT_EQ(ending.kind, EndingKind::death);
  EXPECT_EQ(ending.culprit, 0);
}

TEST(ControlOfProcesses, ARankThatIsStoppedFallsSilent) {
  const Ending ending = seen_from(0, 2s, [] { ::raise(SIGSTOP); });
  EXPECT_EQ(ending.kind, EndingKind::silence);
  EXPECT_EQ(ending.culprit, 1);
  EXPECT_TRUE(has(ending.reason, "has stopped beating for ") && has(ending.reason, "in phase backward, step 3"))
      << ending.reason;
}

TEST(ControlOfProcesses, AStoppedCoordinatorFallsSilentToo) {
  const Ending ending = seen_from(1, 2s, [] { ::raise(SIGSTOP); });
  EXPECT_EQ(ending.kind, EndingKind::silence);
  EXPECT_EQ(ending.culprit, 0);
}

TEST(Progress, IsReadFromARecorder) {
  FlightRecorder recorder(0, 2);
  Call call;
  call.signature.operation = Operation::all_reduce;
  call.signature.number = 1;
  const auto first = recorder.add(call);
  call.signature.number = 2;
  call.signature.kind = FixedText<16>("gradient");
  const auto second = recorder.add(call);
  call.signature.number = 3;
  recorder.add(call);
  recorder.start(first);
  recorder.end(first, true);
  Progress progress = progress_of(recorder);
  EXPECT_EQ(progress.queued, 3U);
  EXPECT_EQ(progress.done, 1U);
  EXPECT_EQ(progress.waiting, "");
  recorder.start(second);
  progress = progress_of(recorder);
  EXPECT_EQ(progress.started, 2U);
  EXPECT_EQ(progress.waiting, "all_reduce #2 (gradient)");
  EXPECT_EQ(progress.waiting_number, 2U);
}

Call call_of(Operation operation, std::uint64_t number) {
  Call call;
  call.signature.operation = operation;
  call.signature.number = number;
  return call;
}

void do_all(FlightRecorder& recorder, Operation operation, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t number = first; number <= last; ++number) {
    const auto place = recorder.add(call_of(operation, number));
    recorder.start(place);
    recorder.end(place, true);
  }
}

// Who has left is judged by these numbers: one that is too small is a rank blamed for nothing.
TEST(Progress, CountsWhatLiesFarBehind) {
  FlightRecorder recorder(0, 2, 256);
  do_all(recorder, Operation::barrier, 1, 3);
  do_all(recorder, Operation::all_reduce, 1, 100);
  EXPECT_EQ(progress_of(recorder).host_queued, 3U);
  EXPECT_EQ(progress_of(recorder).done, 100U);
  do_all(recorder, Operation::exchange, 4, 600);
  EXPECT_EQ(progress_of(recorder).queued, 100U);  // the ring has passed over it
  EXPECT_EQ(progress_of(recorder).done, 100U);
}

TEST(Progress, FindsTheOldestUnderWayBehindManyThatAreDone) {
  FlightRecorder recorder(0, 2, 256);
  const auto held = recorder.add(call_of(Operation::all_reduce, 1));
  recorder.start(held);
  do_all(recorder, Operation::exchange, 1, 200);  // the host goes on meanwhile
  EXPECT_EQ(progress_of(recorder).waiting, "all_reduce #1");
  recorder.end(held, true);
  EXPECT_EQ(progress_of(recorder).waiting, "");
  EXPECT_EQ(progress_of(recorder).done, 1U);
}

TEST(Agree, TheFirstDifferenceIsNamedWithBothValues) {
  EXPECT_EQ(first_difference({{{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "2"}}}), "");
  EXPECT_EQ(first_difference({{{"a", "1"}, {"b", "2"}, {"c", "4"}}, {{"a", "1"}, {"b", "3"}, {"c", "5"}}}),
            "rank 1 differs in 'b': '3' there, '2' on rank 0");
  EXPECT_TRUE(has(first_difference({{{"a", "1"}}, {{"a", "1"}, {"b", "3"}}}), "'b'"));
  EXPECT_TRUE(has(first_difference({{{"a", "1"}}, {{"b", "1"}}}), "'b' there, 'a' on rank 0"));
}

TEST(Agree, EveryRankHearsTheSame) {
  const auto thrown = try_local(3, {}, [](Communicator& ranks) {
    agree(ranks, {{"build", "x"}, {"model", "xl26"}});
    agree(ranks, {{"build", "x"}, {"plan", ranks.rank() == 2 ? "a1" : "b2"}});
  });
  for (const std::exception_ptr& one : thrown) {
    ASSERT_NE(one, nullptr);
    try {
      std::rethrow_exception(one);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "rank 2 differs in 'plan': 'a1' there, 'b2' on rank 0");
    }
  }
}

}  // namespace
}  // namespace syslab::comm
