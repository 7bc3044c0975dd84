// Gloo as a peer: it gives what every backend gives, and its errors are ours.
#include "comm/gloo/gloo.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/connect.hpp"
#include "device/stream.hpp"
#include "tests/comm/expect_error.hpp"
#include "tests/comm/floats.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr CommunicatorOptions kShort{.limit = 20s};
constexpr Purpose kPurpose{"gradient", "bucket 3"};
std::vector<std::exception_ptr> try_ranks(int size, const std::function<void(Communicator&)>& body,
                                          const CommunicatorOptions& options = kShort) {
  const TestFolder folder;
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
  as_threads(size, [&](int rank) {
    try {
      const auto ranks = connect_gloo(folder.path(), rank, size, options);
      body(*ranks);
    } catch (...) {
      thrown[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  return thrown;
}

void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  for (const std::exception_ptr& thrown : try_ranks(size, body)) {
    if (thrown != nullptr) std::rethrow_exception(thrown);
  }
}

TEST(Gloo, AllReduceSumsWholeNumbersExactly) {
  for (const int size : {2, 3, 4}) {
    run_ranks(size, [size](Communicator& ranks) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{1000}, std::size_t{700'001}}) {
        Floats mine(count);
        for (std::size_t i = 0; i < count; ++i)
          mine[i] = static_cast<float>(i % 97) * static_cast<float>(ranks.rank() + 1);
        ranks.all_reduce(view(mine), Reduction::sum, kPurpose, {});
        const auto times = static_cast<float>(size * (size + 1) / 2);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], static_cast<float>(i % 97) * times) << i;
      }
      std::vector<bf16> halves(5, to_bf16(static_cast<float>(ranks.rank() + 1)));
      ranks.all_reduce({halves.data(), DType::bf16, {5}}, Reduction::max, kPurpose, {});
      EXPECT_EQ(to_float(halves[4]), static_cast<float>(size));
    });
  }
}

TEST(Gloo, PartsAreScatteredAndGatheredInAndOutOfPlace) {
  run_ranks(3, [](Communicator& ranks) {
    const auto r = static_cast<float>(ranks.rank());
    Floats all{r, r + 1, r + 2, r + 3, r + 4, r + 5}, part(2);
    ranks.reduce_scatter(view(all), view(part), Reduction::sum, kPurpose, {});
    EXPECT_EQ(part, (Floats{3 + 6 * r, 6 + 6 * r}));
    EXPECT_EQ(all, (Floats{r, r + 1, r + 2, r + 3, r + 4, r + 5}));
    const TensorView piece{all.data() + 2 * ranks.rank(), DType::f32, {2}};
    ranks.reduce_scatter(view(all), piece, Reduction::sum, kPurpose, {});
    ranks.all_gather(piece, view(all), kPurpose, {});
    EXPECT_EQ(all, (Floats{3, 6, 9, 12, 15, 18}));
    Floats again(6);
    ranks.all_gather(view(part), view(again), kPurpose, {});
    EXPECT_EQ(again, all);
  });
}

TEST(Gloo, BroadcastMessagesAndExchange) {
  run_ranks(3, [](Communicator& ranks) {
    Floats buffer(5, static_cast<float>(ranks.rank())), left(5, -1);
    ranks.begin_group();
    ranks.send(view(buffer), (ranks.rank() + 1) % 3, kPurpose, {});
    ranks.receive(view(left), (ranks.rank() + 2) % 3, kPurpose, {});
    ranks.end_group();
    EXPECT_EQ(left, Floats(5, static_cast<float>((ranks.rank() + 2) % 3)));
    ranks.broadcast(view(buffer), 2, kPurpose, {});
    EXPECT_EQ(buffer, Floats(5, 2));
    EXPECT_EQ(ranks.exchange(std::string(static_cast<std::size_t>(ranks.rank()), 'x')),
              (std::vector<std::string>{"", "x", "xx"}));
    ranks.barrier();
  });
}

TEST(Gloo, OnAQueueTheHostGoesOn) {
  run_ranks(2, [](Communicator& ranks) {
    const auto queue = device::OwnedStream::queue();
    std::vector<Floats> buffers(20, Floats(3000, static_cast<float>(ranks.rank() + 1)));
    Work last;
    for (Floats& buffer : buffers) last = ranks.all_reduce(view(buffer), Reduction::sum, kPurpose, queue);
    ranks.barrier();
    ranks.wait(last);
    for (const Floats& buffer : buffers) EXPECT_EQ(buffer, Floats(3000, 3));
  });
}

TEST(Gloo, ADifferentCountIsFoundBeforeGlooEndsTheProcess) {
  const auto thrown = try_ranks(2, [](Communicator& ranks) {
    Floats mine(ranks.rank() == 0 ? 16 : 12);
    ranks.all_reduce(view(mine), Reduction::sum, kPurpose, {});
  });
  for (const auto& one : thrown) expect_error(one, ErrorKind::comm, {"disagree", "16 fp32", "12 fp32"});
}

TEST(Gloo, AMessageOfAnotherSizeIsFoundToo) {
  const auto thrown = try_ranks(2,
                                [](Communicator& ranks) {
                                  Floats mine(16);
                                  if (ranks.rank() == 0) ranks.send(view(mine), 1, kPurpose, {});
                                  if (ranks.rank() == 1)
                                    ranks.receive({mine.data(), DType::f32, {15}}, 0, kPurpose, {});
                                },
                                {.limit = 2s});
  expect_error(thrown[1], ErrorKind::comm, {"disagree", "16 fp32", "15 fp32"});
}

TEST(Gloo, ARankThatLeavesEndsTheOthers) {
  const auto thrown = try_ranks(3, [](Communicator& ranks) {
    Floats mine(16);
    ranks.all_reduce(view(mine), Reduction::sum, kPurpose, {});
    if (ranks.rank() == 1) return;
    ranks.all_reduce(view(mine), Reduction::sum, kPurpose, {});
  });
  EXPECT_EQ(thrown[1], nullptr);
  for (const std::size_t rank : {0U, 2U}) {
    expect_error(thrown[rank], ErrorKind::comm, {});
  }
}

TEST(Gloo, AMissingRankIsAnErrorAtTheLimit) {
  const TestFolder folder;
  expect_error(ErrorKind::comm, {"rank 0 of 2", "Gloo"}, [&] { connect_gloo(folder.path(), 0, 2, {.limit = 2s}); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Gloo, IsConnectedByItsName) {
  const TestFolder folder;
  const auto errors = as_threads(2, [&](int rank) {
    const auto ranks = connect({.rendezvous = "file:" + (folder.path() / "meet").string(),
                                .rank = rank,
                                .size = 2,
                                .backend = "gloo",
                                .limit = 20s});
    EXPECT_EQ(ranks->backend(), "gloo");
    Floats mine(3, static_cast<float>(rank + 1));
    ranks->all_reduce(view(mine), Reduction::sum, kPurpose, {});
    EXPECT_EQ(mine, Floats(3, 3));
    ranks->barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace syslab::comm
