#include "comm/connect.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

std::string refusal(const ConnectOptions& options, ErrorKind kind) {
  try {
    connect(options);
    return "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
}

TEST(Connect, OneRankMeetsNobody) {
  for (const char* backend : {"local", "shm"}) {
    const auto ranks = connect({.backend = backend});
    EXPECT_EQ(ranks->size(), 1);
    EXPECT_EQ(ranks->kind(), device::Kind::cpu);
    float value = 3;
    ranks->wait(ranks->all_reduce({&value, DType::f32, {1}}, Reduction::sum, {}, {}));
    EXPECT_EQ(value, 3);
    ranks->set_phase("forward", 1);  // nobody watches, and nothing happens
  }
}

TEST(Connect, BackendsThatAreNotThereSaySo) {
  const std::string unknown = refusal({.backend = "ncl"}, ErrorKind::usage);
  EXPECT_TRUE(has(unknown, "'ncl'") && has(unknown, "nccl") && has(unknown, "shm")) << unknown;
  const std::string threads =
      refusal({.rendezvous = "file:/nowhere", .rank = 0, .size = 2, .backend = "local"}, ErrorKind::usage);
  EXPECT_TRUE(has(threads, "threads of one process") && has(threads, "shm")) << threads;
}

TEST(Connect, RanksThatDoNotKnowWhereTheOthersAreSayWhatToSet) {
  const std::string said = refusal({.rank = 0, .size = 2}, ErrorKind::usage);
  EXPECT_TRUE(has(said, "SYSLAB_RENDEZVOUS")) << said;
}

TEST(Connect, ThreadsMayBeRanksOfSharedMemoryAndHearOfEachOthersFailure) {
  const TestFolder folder;
  const std::string place = "file:" + (folder.path() / "meeting").string();
  const auto errors = as_threads(3, [&](int rank) {
    const auto ranks = connect({.rendezvous = place, .rank = rank, .size = 3, .limit = 10s, .dump = folder.path()});
    float value = 1;
    ranks->wait(ranks->all_reduce({&value, DType::f32, {1}}, Reduction::sum, {"gradient"}, {}));
    EXPECT_EQ(value, 3);
    if (rank == 1) throw std::runtime_error("the disk is full");
    ranks->wait(ranks->all_reduce({&value, DType::f32, {1}}, Reduction::sum, {"gradient"}, {}));
  });
  EXPECT_EQ(errors[1], "the disk is full");
  EXPECT_TRUE(has(errors[0], "rank 1")) << errors[0];
  EXPECT_TRUE(has(errors[2], "rank 1")) << errors[2];
  std::ifstream file(folder.path() / "recorder-0.json");
  const std::string recorder{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(has(recorder, "all_reduce")) << recorder;
}

// Rank 0 may make no file as long as the memory that it would share: its reason is what rank 1 hears, and at once.
TEST(Connect, ARankThatCannotMakeItsBackendTellsTheOthersWhy) {
  const TestFolder folder;
  const FreePort port;
  for (const std::string& place : {port.address("job"), "file:" + (folder.path() / "meeting").string()}) {
    const auto join = [&](int rank) { connect({.rendezvous = place, .rank = rank, .size = 2, .limit = 20s}); };
    const auto errors = as_threads(2, [&](int rank) {
      if (rank == 1) return join(1);
      throw std::runtime_error(in_a_process([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const struct rlimit little { 100'000, 100'000 };
        ::setrlimit(RLIMIT_FSIZE, &little);
        join(0);
      }));
    });
    EXPECT_TRUE(has(errors[0], "shared memory")) << errors[0];
    EXPECT_TRUE(has(errors[1], "rank 0 cannot join: ") && has(errors[1], "of shared memory for 2 ranks")) << errors[1];
  }
}

}  // namespace
}  // namespace syslab::comm
