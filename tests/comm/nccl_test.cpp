// The backend nccl over a fake library: its own code, without a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "comm/connect.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/nccl/handle.hpp"
#include "comm/nccl/library.hpp"
#include "core/error.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/fake_nccl_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kTwoWell{"", ""};

TEST_F(FakeNccl, DoesEveryOperationOnAQueue) {
  const auto errors = run(3, {.limit = 10s}, [](Communicator& ranks, device::Stream stream) {
    const auto rank = static_cast<float>(ranks.rank());
    std::vector<float> sum{rank, 1}, largest{rank}, part{rank}, all(3), pieces{1, 2, 3}, piece(1), told{rank}, got(1);
    ranks.all_reduce(floats(sum), Reduction::sum, {}, stream);
    ranks.all_reduce(floats(largest), Reduction::max, {}, stream);
    ranks.all_gather(floats(part), floats(all), {}, stream);
    ranks.reduce_scatter(floats(pieces), floats(piece), Reduction::sum, {}, stream);
    ranks.broadcast(floats(told), 2, {}, stream);
    const int next = (ranks.rank() + 1) % 3, before = (ranks.rank() + 2) % 3;
    ranks.begin_group();
    ranks.send(floats(part), next, {}, stream);
    const Work last = ranks.receive(floats(got), before, {}, stream);
    ranks.end_group();
    ranks.wait(last);
    EXPECT_EQ(sum, (std::vector<float>{3, 3}));
    EXPECT_EQ(largest, std::vector<float>{2});
    EXPECT_EQ(all, (std::vector<float>{0, 1, 2}));
    EXPECT_EQ(piece, std::vector<float>{3 * (rank + 1)});
    EXPECT_EQ(told, std::vector<float>{2});
    EXPECT_EQ(got, std::vector<float>{static_cast<float>(before)});
    ranks.barrier();
    EXPECT_EQ(ranks.exchange("rank " + std::to_string(ranks.rank())),
              (std::vector<std::string>{"rank 0", "rank 1", "rank 2"}));
    for (const FlightRecorder::Entry& entry : ranks.recorder().entries()) {
      EXPECT_EQ(entry.state, FlightRecorder::State::done) << name_of(entry.signature);
    }
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST_F(FakeNccl, ItsOwnAllReduceSumsAndCountsNothing) {
  const auto errors = run(2, {.limit = 10s}, [](Communicator& ranks, device::Stream stream) {
    std::vector<float> values{static_cast<float>(ranks.rank()), 1};
    raw_all_reduce(ranks)(floats(values), stream);
    device::synchronize(stream);
    EXPECT_EQ(values, (std::vector<float>{1, 2}));
    EXPECT_TRUE(ranks.recorder().entries().empty());
    ranks.barrier();
  });
  EXPECT_EQ(errors, kTwoWell);
  const auto alone = make_alone({}, {});
  EXPECT_THROW(raw_all_reduce(*alone), Error);
}

TEST_F(FakeNccl, OperationsOnTwoStreamsKeepTheOrderOfTheirCalls) {
  const auto errors = run(2, {.limit = 10s}, [](Communicator& ranks, device::Stream stream) {
    const device::OwnedStream other = device::OwnedStream::queue();
    std::vector<float> values(1000, static_cast<float>(ranks.rank() + 1));
    // The sum stands behind work that takes its time: 1 + 2, then the maximum of 3 and 3. The other way round: 2 + 2.
    device::enqueue(stream, [] { std::this_thread::sleep_for(200ms); });
    ranks.all_reduce(floats(values), Reduction::sum, {}, stream);
    ranks.wait(ranks.all_reduce(floats(values), Reduction::max, {}, other));
    EXPECT_EQ(values[999], 3);
  });
  EXPECT_EQ(errors, kTwoWell);
}

TEST_F(FakeNccl, ASlowStartIsWaitedFor) {
  ::setenv("SYSLAB_FAKE_NCCL", "slow_init", 1);
  const auto errors = run(2, {.limit = 10s}, [](Communicator& ranks, device::Stream stream) {
    std::vector<float> value{1};
    ranks.wait(ranks.all_reduce(floats(value), Reduction::sum, {}, stream));
    EXPECT_EQ(value[0], 2);
  });
  EXPECT_EQ(errors, kTwoWell);
}

TEST_F(FakeNccl, AStartThatIsNeverReadyEndsAtTheLimit) {
  ::setenv("SYSLAB_FAKE_NCCL", "never_ready", 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run(2, {.limit = 2s}, [](Communicator&, device::Stream) { ADD_FAILURE() << "made"; });
  for (const std::string& error : errors) {
    EXPECT_TRUE(has(error, "ncclCommInitRankConfig is still in progress after 2.0 s")) << error;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(FakeNccl, AnAsynchronousErrorIsFoundByWhoWaits) {
  ::setenv("SYSLAB_FAKE_NCCL", "async_error", 1);
  std::array<std::vector<float>, 2> values{{{1}, {1}}};  // a rank that throws leaves its own to the others
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run(2, {.limit = 10s}, [&values](Communicator& ranks, device::Stream stream) {
    for (int i = 0; i < 4; ++i)
      ranks.wait(
          ranks.all_reduce(floats(values.at(static_cast<std::size_t>(ranks.rank()))), Reduction::sum, {}, stream));
    ADD_FAILURE() << "all went well";
  });
  for (const std::string& error : errors) EXPECT_TRUE(has(error, "remote process exited")) << error;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 9s);
}

TEST_F(FakeNccl, LeavesNoTextsOfTheHostInTheStore) {
  const TestFolder folder;
  std::atomic<std::ptrdiff_t> begun = 0, ended = 0;
  const auto errors = as_threads(2, [&](int rank) {
    const std::shared_ptr<Rendezvous> rendezvous = open_rendezvous(
        {.address = "file:" + (folder.path() / "meeting").string(), .rank = rank, .size = 2, .limit = 20s});
    const auto ranks = make_nccl(rendezvous, {.limit = 10s}, fake());
    const auto files = [&] {
      ranks->barrier();
      if (rank == 0) return std::distance(std::filesystem::directory_iterator(folder.path() / "meeting"), {});
      return std::ptrdiff_t{0};
    };
    if (const auto counted = files(); rank == 0) begun = counted;
    for (int i = 0; i < 20; ++i) {
      const std::string text = std::to_string(rank) + " in round " + std::to_string(i);
      const std::string other = std::to_string(1 - rank) + " in round " + std::to_string(i);
      EXPECT_EQ(ranks->exchange(text)[static_cast<std::size_t>(1 - rank)], other);
    }
    if (const auto counted = files(); rank == 0) ended = counted;
    ranks->barrier();
  });
  EXPECT_EQ(errors, kTwoWell);
  EXPECT_LE(ended, begun + 4) << "two of each rank stand, and drafts come and go";
}

// Whoever begins a collective before the others counts their delay as its time: 1.03 ms were stored for 0.04. So no
// rank leaves before the start that they agree on, half a millisecond after the last has come (common_start_test.cpp).
// Ranks that leave as they read the texts do so within 0.1 ms, but for some rounds on a machine with other work.
TEST_F(FakeNccl, NoRankLeavesABarrierOverAFolderBeforeTheCommonStart) {
  constexpr std::size_t kRounds = 24;
  const TestFolder folder;
  std::array<std::array<Clock::time_point, kRounds>, 2> came, left;
  const auto errors = as_threads(2, [&](int rank) {
    const std::shared_ptr<Rendezvous> rendezvous = open_rendezvous(
        {.address = "file:" + (folder.path() / "meeting").string(), .rank = rank, .size = 2, .limit = 20s});
    const auto ranks = make_nccl(rendezvous, {.limit = 10s}, fake());
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::chrono::microseconds late = rank == 0 ? 0us : round % 2 == 0 ? 300us : 4000us;
      for (const auto begin = Clock::now(); Clock::now() - begin < late;) {
      }
      came.at(static_cast<std::size_t>(rank)).at(round) = Clock::now();
      ranks->barrier();
      left.at(static_cast<std::size_t>(rank)).at(round) = Clock::now();
    }
  });
  EXPECT_EQ(errors, kTwoWell);
  for (std::size_t round = 0; round < kRounds; ++round) {
    EXPECT_GE(std::min(left[0][round], left[1][round]) - std::max(came[0][round], came[1][round]), 500us) << round;
  }
}

TEST_F(FakeNccl, WhatDoesNotEndIsAbortedAtTheLimit) {
  ::setenv("SYSLAB_FAKE_NCCL", "swallow", 1);
  std::array<std::vector<float>, 2> values{{{1}, {1}}};  // a rank that throws leaves its own to the others
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run(2, {.limit = 2s}, [&values](Communicator& ranks, device::Stream stream) {
    Work last;
    for (int i = 0; i < 3; ++i)
      last = ranks.all_reduce(floats(values.at(static_cast<std::size_t>(ranks.rank()))), Reduction::sum, {"gradient"},
                              stream);
    // Rank 1's own does not even wait for the others; rank 0 is left alone with it.
    if (ranks.rank() == 0) ranks.wait(last);
  });
  EXPECT_TRUE(has(errors[0], "rank 0 waited 2.0 s for its operation 3 in vain")) << errors[0];
  EXPECT_EQ(errors[1], "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(FakeNccl, AnAbortThatHangsEndsTheProcessWithinItsBudget) {
  ::setenv("SYSLAB_FAKE_NCCL", "async_error abort_hangs", 1);
  std::array<std::vector<float>, 2> values{{{1}, {1}}};  // a rank that throws leaves its own to the others
  const auto begin = std::chrono::steady_clock::now();
  // Its own process: there is no way back.
  NcclOptions options = fake();
  const pid_t child = ::fork();
  if (child == 0) {
    options.exit = {};
    static_cast<void>(run(
        2, {.limit = 10s},
        [&values](Communicator& ranks, device::Stream stream) {
          for (int i = 0; i < 4; ++i)
            ranks.wait(ranks.all_reduce(floats(values.at(static_cast<std::size_t>(ranks.rank()))), Reduction::sum, {},
                                        stream));
        },
        options));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 71);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

// The control plane looks from its own thread, which must go on beating.
TEST_F(FakeNccl, LookingDoesNotWaitForACallThatIsStuckInsideTheLibrary) {
  ::setenv("SYSLAB_FAKE_NCCL", "stuck_call", 1);
  const auto errors = run(2, {.limit = 10s}, [](Communicator& ranks, device::Stream stream) {
    std::atomic<bool> over = false;
    std::chrono::steady_clock::duration longest{};
    std::thread watch([&] {
      while (!over) {
        const auto begin = std::chrono::steady_clock::now();
        ranks.look();
        longest = std::max(longest, std::chrono::steady_clock::now() - begin);
        std::this_thread::sleep_for(10ms);
      }
    });
    std::vector<float> value{1};
    Work last;
    for (int i = 0; i < 3; ++i) last = ranks.all_reduce(floats(value), Reduction::sum, {}, stream);
    over = true;
    watch.join();
    ranks.wait(last);
    EXPECT_LT(longest, 2s);
  });
  EXPECT_EQ(errors, kTwoWell);
}

// Whoever finds a failure must be free to tell the others of it, however long this rank's own end takes.
TEST_F(FakeNccl, AnAbortThatHangsDoesNotHoldUpWhoFoundTheFailure) {
  ::setenv("SYSLAB_FAKE_NCCL", "async_error abort_hangs", 1);
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> found = 0;
    NcclOptions options = fake();
    options.budget = 2s;
    options.exit = [&found] { ::_exit(found == 2 ? 7 : 8); };
    static_cast<void>(run(
        2, {.limit = 10s},
        [&found](Communicator& ranks, device::Stream stream) {
          std::vector<float> value{1};
          for (int i = 0; i < 2; ++i) ranks.wait(ranks.all_reduce(floats(value), Reduction::sum, {}, stream));
          try {  // found where it is queued, or by who looks
            ranks.all_reduce(floats(value), Reduction::sum, {}, stream);
            while (!ranks.failed() && ranks.rank() == 1) ranks.look();
          } catch (const Error&) {
          }
          if (ranks.rank() == 0) ranks.abort("the test says so");
          ++found;
        },
        options));
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(FakeNccl, OneRankNeedsNoLibrary) {
  const auto ranks = make_alone({}, {});
  std::vector<float> value{7}, copy(1);
  ranks->all_reduce(floats(value), Reduction::sum, {}, {});
  ranks->wait(ranks->all_gather(floats(value), floats(copy), {}, {}));
  EXPECT_EQ(value[0], 7);
  EXPECT_EQ(copy[0], 7);
  EXPECT_EQ(ranks->backend(), "nccl");
}

// The others wait for it, in whatever step of the start: they hear why it does not come, and not that it is late.
TEST_F(FakeNccl, ARankThatCannotStartTellsTheOthersWhy) {
  const TestFolder folder;
  const FreePort port;
  for (const std::string& place : {port.address("job"), "file:" + (folder.path() / "meeting").string()}) {
    const auto errors = as_threads(3, [&](int rank) {
      ConnectOptions options{.rendezvous = place, .rank = rank, .size = 3, .backend = "nccl", .limit = 20s};
      options.local_gpu = false;
      options.nccl = fake();
      if (rank == 1) options.nccl.library = "/no/such/libnccl.so";
      connect(options);
    });
    for (const std::string& error : errors) EXPECT_TRUE(has(error, "/no/such/libnccl.so")) << error;
    for (const int rank : {0, 2}) EXPECT_TRUE(has(errors[static_cast<std::size_t>(rank)], "rank 1 cannot join"));
  }
}

TEST_F(FakeNccl, ARankThatFailsInsideTheLibrarysStartEndsTheOthersStart) {
  ::setenv("SYSLAB_FAKE_NCCL", "refuse_init", 1);
  const TestFolder folder;
  const auto errors = as_threads(2, [&](int rank) {
    ConnectOptions options{.rendezvous = "file:" + (folder.path() / "meeting").string(),
                           .rank = rank,
                           .size = 2,
                           .backend = "nccl",
                           .limit = 20s};
    options.local_gpu = false;
    options.nccl = fake();
    connect(options);
  });
  EXPECT_TRUE(has(errors[0], "rank 1 cannot join: ncclCommInitRankConfig")) << errors[0];
}

// What fails in an exchange while ranks still join is met twice: by who waits there, and by who joins.
TEST_F(FakeNccl, GivingUpAgainChangesNothing) {
  NcclHandle handle(std::make_shared<NcclLibrary>(std::getenv("SYSLAB_TEST_FAKE_NCCL")), fake(), 2s, [] {});
  handle.give_up();
  handle.give_up();
}

// A group is its thread's: one that was left open would take in the next communicator's operations.
TEST_F(FakeNccl, AGroupThatFailsIsClosed) {
  ::setenv("SYSLAB_FAKE_NCCL", "refuse_send", 1);
  const auto open_groups = entry<decltype(fake_open_groups)>("fake_open_groups");
  const auto errors = run(2, {.limit = 10s}, [&](Communicator& ranks, device::Stream stream) {
    std::vector<float> value{1}, got(1);
    ranks.begin_group();
    ranks.receive(floats(got), 1 - ranks.rank(), {}, stream);
    ranks.send(floats(value), 1 - ranks.rank(), {}, stream);
    EXPECT_THROW(ranks.end_group(), Error);
    EXPECT_EQ(open_groups(), 0);
  });
  EXPECT_EQ(errors, kTwoWell);
}

TEST_F(FakeNccl, MulticastIsOffUnlessTheUserSaysOtherwise) {
  const NcclLibrary library(std::getenv("SYSLAB_TEST_FAKE_NCCL"));
  EXPECT_EQ(library.nvls_and_by_whom(), "NCCL_NVLS_ENABLE=0, set by syslab");
  EXPECT_EQ(library.nvls(), "NCCL_NVLS_ENABLE=0");  // what ranks compare: not who set it
  EXPECT_STREQ(std::getenv("NCCL_NVLS_ENABLE"), "0");
  EXPECT_EQ(library.version(), "2.28.3");
}

// In a process that begins anew: the setting is looked at when a library is opened for the first time.
TEST(NcclLibrary, LeavesTheUsersMulticastSettingAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("NCCL_NVLS_ENABLE", "1", 1);
  const auto code = [] {
    const NcclLibrary library(std::getenv("SYSLAB_TEST_FAKE_NCCL"));
    return library.nvls_and_by_whom() == "NCCL_NVLS_ENABLE=1, set by the user" ? 0 : 1;
  };
  EXPECT_EXIT(::_exit(code()), testing::ExitedWithCode(0), "");
  ::unsetenv("NCCL_NVLS_ENABLE");
}

TEST(NcclLibrary, SaysWhatIsMissingAndWhatToDo) {
  try {
    const NcclLibrary library("/no/such/libnccl.so");
    ADD_FAILURE() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::comm);
    EXPECT_TRUE(has(error.what(), "/no/such/libnccl.so") && has(error.what(), "SYSLAB_NCCL_LIB")) << error.what();
  }
  try {
    const NcclLibrary library("libm.so.6");
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "libm.so.6") && has(error.what(), "ncclAllReduce")) << error.what();
  }
}

}  // namespace
}  // namespace syslab::comm
