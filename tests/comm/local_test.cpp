// Ranks as threads: what each operation gives, and how a rank's failure ends the others.
#include "comm/local/local.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/event.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/expect_error.hpp"
#include "tests/comm/floats.hpp"

namespace syslab::comm {
namespace {

constexpr CommunicatorOptions kShort{.limit = std::chrono::seconds(2)};
constexpr Purpose kPurpose{"gradient", "bucket 3"};

TEST(Local, AllReduceSumsOverTheRanks) {
  run_local(3, kShort, [](Communicator& ranks) {
    std::vector<float> mine(7);
    std::iota(mine.begin(), mine.end(), static_cast<float>(100 * ranks.rank()));
    ranks.all_reduce(view(mine), Reduction::sum, kPurpose, {});
    EXPECT_EQ(mine, (std::vector<float>{300, 303, 306, 309, 312, 315, 318}));
  });
}

TEST(Local, MaxAndMinKeepANanOfAnyRank) {
  run_local(3, kShort, [](Communicator& ranks) {
    const auto r = static_cast<float>(ranks.rank());
    std::vector<float> high{r, -r, ranks.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : r};
    std::vector<float> low = high;
    ranks.all_reduce(view(high), Reduction::max, kPurpose, {});
    ranks.all_reduce(view(low), Reduction::min, kPurpose, {});
    EXPECT_EQ(high[0], 2);
    EXPECT_EQ(high[1], 0);
    EXPECT_NE(high[2], high[2]);
    EXPECT_EQ(low[0], 0);
    EXPECT_EQ(low[1], -2);
    EXPECT_NE(low[2], low[2]);
  });
}

TEST(Local, ReduceScatterAndAllGatherHandOutParts) {
  run_local(2, kShort, [](Communicator& ranks) {
    const auto r = static_cast<float>(ranks.rank());
    std::vector<float> all{1 + r, 2 + r, 3 + r, 4 + r}, part(2);
    ranks.reduce_scatter(view(all), view(part), Reduction::sum, kPurpose, {});
    EXPECT_EQ(part, ranks.rank() == 0 ? (std::vector<float>{3, 5}) : (std::vector<float>{7, 9}));
    EXPECT_EQ(all, (std::vector<float>{1 + r, 2 + r, 3 + r, 4 + r}));
    ranks.all_gather(view(part), view(all), kPurpose, {});
    EXPECT_EQ(all, (std::vector<float>{3, 5, 7, 9}));
  });
}

TEST(Local, PartsMayLieInTheWhole) {
  run_local(3, kShort, [](Communicator& ranks) {
    const auto r = static_cast<float>(ranks.rank());
    std::vector<float> all{r, r + 1, r + 2};
    const TensorView piece{all.data() + ranks.rank(), DType::f32, {1}};
    ranks.reduce_scatter(view(all), piece, Reduction::sum, kPurpose, {});
    ranks.all_gather(piece, view(all), kPurpose, {});
    EXPECT_EQ(all, (std::vector<float>{3, 6, 9}));
  });
}

TEST(Local, BroadcastGivesWhatTheRootHas) {
  for (int root = 0; root < 3; ++root) {
    run_local(3, kShort, [root](Communicator& ranks) {
      std::vector<float> buffer(5, static_cast<float>(ranks.rank()));
      ranks.broadcast(view(buffer), root, kPurpose, {});
      EXPECT_EQ(buffer, std::vector<float>(5, static_cast<float>(root)));
    });
  }
}

TEST(Local, NeighboursInAGroupMayBothSendFirst) {
  run_local(4, kShort, [](Communicator& ranks) {
    std::vector<float> mine{static_cast<float>(ranks.rank())}, left{-1};
    ranks.begin_group();
    ranks.send(view(mine), (ranks.rank() + 1) % 4, kPurpose, {});
    ranks.receive(view(left), (ranks.rank() + 3) % 4, kPurpose, {});
    ranks.end_group();
    EXPECT_EQ(left[0], static_cast<float>((ranks.rank() + 3) % 4));
  });
}

TEST(Local, ExchangeGivesEveryRankTheTextsOfAll) {
  run_local(3, kShort, [](Communicator& ranks) {
    const auto texts = ranks.exchange("I am " + std::to_string(ranks.rank()));
    EXPECT_EQ(texts, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
  });
}

TEST(Local, BarrierHoldsUntilTheLastHasCome) {
  std::atomic<int> came = 0;
  run_local(3, kShort, [&](Communicator& ranks) {
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++came;
    ranks.barrier();
    EXPECT_EQ(came, 3);
  });
}

TEST(Local, OnAQueueTheHostGoesOnAndEventsOrder) {
  run_local(2, kShort, [](Communicator& ranks) {
    const auto compute = device::OwnedStream::queue(), communication = device::OwnedStream::queue();
    std::vector<float> gradient(3), seen;
    device::Event ready({}), reduced({});
    device::enqueue(compute, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      gradient.assign(3, static_cast<float>(ranks.rank() + 1));
    });
    ready.record(compute);
    ready.before(communication);
    const Work work = ranks.all_reduce(view(gradient), Reduction::sum, kPurpose, communication);
    reduced.record(communication);
    reduced.before(compute);
    device::enqueue(compute, [&] { seen = gradient; });
    device::synchronize(compute);
    ranks.wait(work);
    EXPECT_EQ(seen, std::vector<float>(3, 3));
  });
}

TEST(Local, CommunicatorsOfTheSameRanksNeverMix) {
  constexpr int kRanks = 3;
  auto gradients = make_local(kRanks, kShort), controls = make_local(kRanks, kShort);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto queue = device::OwnedStream::queue(), other = device::OwnedStream::queue();
      std::vector<float> gradient(100, static_cast<float>(rank)), control(100, static_cast<float>(10 * rank));
      for (int step = 0; step < 10; ++step) {  // each rank begins with another of the two
        for (const bool first : {rank % 2 == 0, rank % 2 != 0}) {
          auto& ranks = first ? gradients[rank] : controls[rank];
          ranks->all_reduce(view(first ? gradient : control), Reduction::max, kPurpose, first ? queue : other);
        }
      }
      device::synchronize(queue);
      device::synchronize(other);
      EXPECT_EQ(gradient, std::vector<float>(100, 2));
      EXPECT_EQ(control, std::vector<float>(100, 20));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Local, OneRankAloneCopiesAndWaitsForNobody) {
  run_local(1, kShort, [](Communicator& ranks) {
    std::vector<float> all{1, 2}, part(2);
    ranks.reduce_scatter(view(all), view(part), Reduction::sum, kPurpose, {});
    EXPECT_EQ(part, all);
    ranks.all_reduce(view(part), Reduction::sum, kPurpose, {});
    ranks.broadcast(view(part), 0, kPurpose, {});
    ranks.barrier();
    EXPECT_EQ(ranks.exchange("x"), std::vector<std::string>{"x"});
    EXPECT_EQ(part, all);
    EXPECT_EQ(ranks.counters().total().wire_bytes, 0);
    EXPECT_EQ(ranks.counters().total("gradient").calls, 3U);
  });
}

TEST(Local, ARankThatThrowsEndsTheOthersWithItsWords) {
  const auto body = [](Communicator& ranks) {
    if (ranks.rank() == 1) throw std::runtime_error("out of memory for fc1");
    std::vector<float> mine(4);
    ranks.all_reduce(view(mine), Reduction::sum, kPurpose, {});
  };
  const auto errors = try_local(3, kShort, body);
  expect_error(errors[0], ErrorKind::comm, {"rank 1", "out of memory for fc1"});
  expect_error(errors[2], ErrorKind::comm, {"rank 1", "out of memory for fc1"});
  EXPECT_THROW(run_local(3, kShort, body), std::runtime_error);
}

TEST(Local, ARankThatLeavesEndsTheOthersAtOnce) {
  const auto errors = try_local(3, {}, [](Communicator& ranks) {
    std::vector<float> mine(4);
    ranks.all_reduce(view(mine), Reduction::sum, {"gradient", "bucket 0"}, {});
    if (ranks.rank() != 2) ranks.all_reduce(view(mine), Reduction::sum, {"gradient", "bucket 1"}, {});
  });
  EXPECT_EQ(errors[2], nullptr);
  expect_error(errors[0], ErrorKind::comm, {"rank 2 has left", "all_reduce #2 (gradient, bucket 1)", "all_reduce #1"});
  expect_error(errors[1], ErrorKind::comm, {"rank 2 has left"});
}

}  // namespace
}  // namespace syslab::comm
