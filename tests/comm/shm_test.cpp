// The shared-memory backend with threads as ranks: what each operation gives, to the bit, over sizes, dtypes and views.
#include "comm/shm/shm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "comm/reduce.hpp"
#include "core/random.hpp"
#include "device/event.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/expect_error.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr CommunicatorOptions kShort{.limit = 20s};
constexpr Purpose kPurpose{"gradient", "bucket 3"};

// Slots so small that a few thousand elements go through all of them several times.
ShmOptions small_slots() {
  ShmOptions memory;
  memory.slot_bytes = 4096;
  memory.depth = 3;
  return memory;
}

using Body = std::function<void(Communicator&)>;

std::vector<std::exception_ptr> try_threads(int size, const CommunicatorOptions& options, const Body& body) {
  auto ranks = make_shm_for_threads(size, options, small_slots());
  std::vector<std::exception_ptr> thrown(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[rank]);
      } catch (...) {
        thrown[rank] = std::current_exception();
      }
      ranks[rank].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

void run_threads(int size, const Body& body) {
  for (const std::exception_ptr& thrown : try_threads(size, kShort, body)) {
    if (thrown != nullptr) std::rethrow_exception(thrown);
  }
}

// Elements between two guards, at an address that no vector instruction likes.
class Guarded {
 public:
  Guarded(DType dtype, std::int64_t count) : dtype_(dtype), count_(count), bytes_(size_of(dtype)) {
    memory_.assign(static_cast<std::size_t>(count + 2) * bytes_, std::byte{0xa5});
  }
  Guarded(DType dtype, std::int64_t count, int rank) : Guarded(dtype, count) {
    fill(view(), RandomStream(static_cast<std::uint64_t>(1000 + rank)), Distribution::normal);
  }

  TensorView view() { return view(0, count_); }
  TensorView view(std::int64_t first, std::int64_t count) {
    return {memory_.data() + static_cast<std::size_t>(1 + first) * bytes_, dtype_, {count}};
  }
  const void* data() const { return memory_.data() + bytes_; }
  std::vector<std::byte> elements() const {
    return {memory_.begin() + static_cast<std::ptrdiff_t>(bytes_), memory_.end() - static_cast<std::ptrdiff_t>(bytes_)};
  }
  bool guards_are_whole() const {
    const auto is_guard = [](std::byte byte) { return byte == std::byte{0xa5}; };
    const auto edge = static_cast<std::ptrdiff_t>(bytes_);
    return std::all_of(memory_.begin(), memory_.begin() + edge, is_guard) &&
           std::all_of(memory_.end() - edge, memory_.end(), is_guard);
  }

 private:
  DType dtype_;
  std::int64_t count_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
};

// What a rank's element must be, written as one would on paper.
template <typename T, typename Wide>
void sum_plainly(std::vector<Guarded>& ranks, TensorView out) {
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    Wide sum = static_cast<Wide>(to_double(static_cast<const T*>(ranks[0].data())[i]));
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      sum = sum + static_cast<Wide>(to_double(static_cast<const T*>(ranks[rank].data())[i]));
    }
    if constexpr (std::is_same_v<T, double>) {
      out.as<T>()[i] = sum;
    } else {
      out.as<T>()[i] = from_float<T>(sum);
    }
  }
}

std::vector<std::byte> expected_sum(DType dtype, std::int64_t count, int size) {
  std::vector<Guarded> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(dtype, count, rank);
  Guarded sum(dtype, count);
  switch (dtype) {
    case DType::f64:
      sum_plainly<double, double>(ranks, sum.view());
      break;
    case DType::f32:
      sum_plainly<float, float>(ranks, sum.view());
      break;
    case DType::f16:
      sum_plainly<f16, float>(ranks, sum.view());
      break;
    case DType::bf16:
      sum_plainly<bf16, float>(ranks, sum.view());
      break;
  }
  return sum.elements();
}

struct Case {
  int size;
  DType dtype;
};

class ShmCollectives : public testing::TestWithParam<Case> {
 protected:
  std::int64_t slot_elements() const { return static_cast<std::int64_t>(4096 / size_of(GetParam().dtype)); }
  // None, one, about the number of ranks, odd, about one slot, and many slots.
  std::vector<std::int64_t> counts() const {
    const std::int64_t size = GetParam().size, slot = slot_elements();
    return {0, 1, size - 1, size, 37, slot - 1, slot, slot + 1, 7 * slot + 5};
  }
};

TEST_P(ShmCollectives, AllReduceIsTheSumInTheOrderOfRanks) {
  const int size = GetParam().size;
  const DType dtype = GetParam().dtype;
  std::vector<std::vector<std::byte>> expected;
  for (const std::int64_t count : counts()) expected.push_back(expected_sum(dtype, count, size));
  run_threads(size, [&](Communicator& ranks) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      Guarded mine(dtype, counts()[i], ranks.rank());
      ranks.all_reduce(mine.view(), Reduction::sum, kPurpose, {});
      EXPECT_EQ(mine.elements(), expected[i]) << counts()[i] << " elements on rank " << ranks.rank();
      EXPECT_TRUE(mine.guards_are_whole());
    }
  });
}

TEST_P(ShmCollectives, ReduceScatterGivesEachItsPartOfTheSameSum) {
  const int size = GetParam().size;
  const DType dtype = GetParam().dtype;
  for (const bool in_place : {false, true}) {
    run_threads(size, [&](Communicator& ranks) {
      for (const std::int64_t count : counts()) {
        Guarded all(dtype, count * size, ranks.rank()), apart(dtype, count);
        const std::vector<std::byte> before = all.elements();
        const TensorView part = in_place ? all.view(ranks.rank() * count, count) : apart.view();
        ranks.reduce_scatter(all.view(), part, Reduction::sum, kPurpose, {});
        const std::vector<std::byte> expected = expected_sum(dtype, count * size, size);
        const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
        const std::size_t offset = static_cast<std::size_t>(ranks.rank()) * bytes;
        const auto* found = static_cast<const std::byte*>(part.data);
        EXPECT_TRUE(std::equal(found, found + bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset)))
            << count << " elements";
        EXPECT_TRUE(in_place || all.elements() == before);
        EXPECT_TRUE(all.guards_are_whole() && apart.guards_are_whole());
      }
    });
  }
}

TEST_P(ShmCollectives, AllGatherPutsThePartsInTheOrderOfRanks) {
  const int size = GetParam().size;
  const DType dtype = GetParam().dtype;
  for (const bool in_place : {false, true}) {
    run_threads(size, [&](Communicator& ranks) {
      for (const std::int64_t count : counts()) {
        Guarded part(dtype, count, ranks.rank()), all(dtype, count * size);
        const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
        TensorView own = part.view();
        if (in_place) {
          own = all.view(ranks.rank() * count, count);
          if (bytes > 0) std::memcpy(own.data, part.data(), bytes);
        }
        ranks.all_gather(own, all.view(), kPurpose, {});
        std::vector<std::byte> expected;
        for (int rank = 0; rank < size; ++rank) {
          const auto theirs = Guarded(dtype, count, rank).elements();
          expected.insert(expected.end(), theirs.begin(), theirs.end());
        }
        EXPECT_EQ(all.elements(), expected) << count << " elements";
        EXPECT_TRUE(part.guards_are_whole() && all.guards_are_whole());
      }
    });
  }
}

TEST_P(ShmCollectives, BroadcastGivesWhatTheRootHas) {
  const int size = GetParam().size;
  const DType dtype = GetParam().dtype;
  run_threads(size, [&](Communicator& ranks) {
    for (const std::int64_t count : counts()) {
      for (int root = 0; root < size; ++root) {
        Guarded mine(dtype, count, ranks.rank());
        ranks.broadcast(mine.view(), root, kPurpose, {});
        EXPECT_EQ(mine.elements(), Guarded(dtype, count, root).elements());
        EXPECT_TRUE(mine.guards_are_whole());
      }
    }
  });
}

TEST_P(ShmCollectives, ARingOfNeighboursMaySendFirstWhateverTheSize) {
  const int size = GetParam().size;
  const DType dtype = GetParam().dtype;
  run_threads(size, [&](Communicator& ranks) {
    const int next = (ranks.rank() + 1) % size, before = (ranks.rank() + size - 1) % size;
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{37}, 200 * slot_elements() + 3}) {
      Guarded mine(dtype, count, ranks.rank()), theirs(dtype, count);
      ranks.begin_group();
      ranks.send(mine.view(), next, kPurpose, {});
      ranks.receive(theirs.view(), before, kPurpose, {});
      ranks.end_group();
      EXPECT_EQ(theirs.elements(), Guarded(dtype, count, before).elements());
      EXPECT_TRUE(theirs.guards_are_whole());
    }
  });
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return std::string(to_string(info.param.dtype)) + "Ranks" + std::to_string(info.param.size);
}

INSTANTIATE_TEST_SUITE_P(All, ShmCollectives,
                         testing::Values(Case{2, DType::f32}, Case{3, DType::f32}, Case{4, DType::f32},
                                         Case{2, DType::bf16}, Case{4, DType::bf16}, Case{3, DType::f16},
                                         Case{2, DType::f16}, Case{3, DType::f64}),
                         name_of_case);

TEST(Shm, CuttingABufferChangesNoBit) {
  for (const int size : {2, 3}) {
    run_threads(size, [](Communicator& ranks) {
      Guarded whole(DType::bf16, 5003, ranks.rank()), cut(DType::bf16, 5003, ranks.rank());
      ranks.all_reduce(whole.view(), Reduction::sum, kPurpose, {});
      for (std::int64_t begin = 0; begin < 5003; begin += 701) {
        ranks.all_reduce(cut.view(begin, std::min<std::int64_t>(701, 5003 - begin)), Reduction::sum, kPurpose, {});
      }
      EXPECT_EQ(cut.elements(), whole.elements());
    });
  }
}

TEST(Shm, MaxAndMinKeepANanOfAnyRank) {
  for (const int size : {2, 3}) {
    run_threads(size, [size](Communicator& ranks) {
      const auto r = static_cast<float>(ranks.rank());
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> high{r, -r, ranks.rank() == 1 ? nan : r, ranks.rank() == 0 ? nan : r}, low = high;
      ranks.all_reduce({high.data(), DType::f32, {4}}, Reduction::max, kPurpose, {});
      ranks.all_reduce({low.data(), DType::f32, {4}}, Reduction::min, kPurpose, {});
      EXPECT_EQ(high[0], static_cast<float>(size - 1));
      EXPECT_EQ(low[1], static_cast<float>(1 - size));
      for (const float value : {high[2], high[3], low[2], low[3]}) EXPECT_NE(value, value);
    });
  }
}

TEST(Shm, WhatRanksTakeFromEachOtherIsTheFormulaToTheByte) {
  for (const int size : {2, 3, 4}) {
    std::atomic<std::uint64_t> moved = 0;
    double formula = 0;
    run_threads(size, [&](Communicator& ranks) {
      Guarded all(DType::f32, 12'000, ranks.rank());
      ranks.all_reduce(all.view(), Reduction::sum, kPurpose, {});
      ranks.reduce_scatter(all.view(), all.view(ranks.rank() * 12'000 / ranks.size(), 12'000 / ranks.size()),
                           Reduction::sum, kPurpose, {});
      ranks.all_gather(all.view(ranks.rank() * 12'000 / ranks.size(), 12'000 / ranks.size()), all.view(), kPurpose, {});
      ranks.broadcast(all.view(), 1, kPurpose, {});
      moved += ranks.counters().total().moved_bytes;
      if (ranks.rank() == 0) formula = ranks.counters().total().wire_bytes * ranks.size();
    });
    EXPECT_EQ(static_cast<double>(moved), formula) << size << " ranks";
  }
}

TEST(Shm, ExchangeGivesEveryRankTheTextsOfAll) {
  run_threads(3, [](Communicator& ranks) {
    const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(rank) * 3000, 'x') + "!"; };
    EXPECT_EQ(ranks.exchange(text_of(ranks.rank())), (std::vector<std::string>{text_of(0), text_of(1), text_of(2)}));
    EXPECT_EQ(ranks.exchange(""), std::vector<std::string>(3));
  });
}

TEST(Shm, BarrierHoldsUntilTheLastHasCome) {
  std::atomic<int> came = 0;
  run_threads(3, [&](Communicator& ranks) {
    if (ranks.rank() == 1) std::this_thread::sleep_for(100ms);
    ++came;
    ranks.barrier();
    EXPECT_EQ(came, 3);
  });
}

TEST(Shm, QueuedOperationsAndTheHostsOwnDoNotMix) {
  run_threads(2, [](Communicator& ranks) {
    const auto first = device::OwnedStream::queue(), second = device::OwnedStream::queue();
    std::vector<std::vector<float>> buffers(40, std::vector<float>(3000, static_cast<float>(ranks.rank() + 1)));
    Work last;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      last =
          ranks.all_reduce({buffers[i].data(), DType::f32, {3000}}, Reduction::sum, kPurpose, i % 2 ? first : second);
      if (i % 10 == 0) ranks.barrier();
    }
    ranks.wait(last);
    for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(3000, 3.0F));
  });
}

TEST(Shm, ManySmallOperationsOfMoreRanksThanCores) {
  run_threads(4, [](Communicator& ranks) {
    float sum = static_cast<float>(ranks.rank());
    for (int i = 0; i < 1000; ++i) {
      sum = static_cast<float>(ranks.rank() + i % 5);
      ranks.all_reduce({&sum, DType::f32, {1}}, Reduction::sum, kPurpose, {});
      ASSERT_EQ(sum, static_cast<float>(6 + 4 * (i % 5)));
    }
  });
}

TEST(Shm, ARankThatLeavesIsNamedWithoutWaitingForTheLimit) {
  const auto begin = std::chrono::steady_clock::now();
  const auto thrown = try_threads(3, kShort, [](Communicator& ranks) {
    if (ranks.rank() == 1) return;
    float mine = 1;
    ranks.all_reduce({&mine, DType::f32, {1}}, Reduction::sum, kPurpose, {});
  });
  EXPECT_EQ(thrown[1], nullptr);
  for (const int rank : {0, 2}) {
    expect_error(thrown[static_cast<std::size_t>(rank)], ErrorKind::comm, {"rank 1 has left", "all_reduce #1"});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Shm, OneRankNeedsNoMeeting) {
  const auto alone = connect_shm("/nowhere", 0, 1, kShort);
  float mine = 7;
  alone->all_reduce({&mine, DType::f32, {1}}, Reduction::sum, kPurpose, {});
  EXPECT_EQ(mine, 7);
  EXPECT_EQ(alone->exchange("a"), std::vector<std::string>{"a"});
}

TEST(Shm, SizesThatNoHostShouldGiveAreRefused) {
  ShmOptions memory;
  expect_error(ErrorKind::config, {"65", "1 to 64"}, [&] { make_shm_for_threads(65, kShort, memory); });
  memory.slot_bytes = 512U << 20;
  expect_error(ErrorKind::config, {"512.00 MiB", "smaller slots"}, [&] { make_shm_for_threads(2, kShort, memory); });
  memory.slot_bytes = 4096;
  memory.depth = 2;
  expect_error(ErrorKind::config, {"2 slots", "3 to 64"}, [&] { make_shm_for_threads(2, kShort, memory); });
}

}  // namespace
}  // namespace syslab::comm
