#include "comm/connect.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace syslab::comm
