// Gradients scattered and weights gathered give the bits of one process, in the memory that the formula says.
#include "parallel/zero/sync.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "device/memory_log.hpp"
#include "parallel/moves.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/planning/pieces_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::certificate_difference;
using test::everything;
using test::pieces_of_sizes;
using test::with_ranks;

CertificateCase sharded(Sharding sharding, Strategy strategy, int ranks) {
  CertificateCase asked = everything(strategy);
  asked.sharding = sharding;
  asked.model.alignment = ranks;
  return asked;
}

TEST(Zero, BothStagesGiveTheBitsOfOneProcess) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (const Strategy strategy : {Strategy::overlap, Strategy::bucketed, Strategy::planned, Strategy::flat_view}) {
      for (int ranks = 1; ranks <= 4; ++ranks) {
        EXPECT_EQ(certificate_difference(sharded(sharding, strategy, ranks), ranks), std::nullopt)
            << to_string(sharding) << " with " << to_string(strategy) << " on " << ranks;
      }
    }
  }
}

TEST(Zero, UpdatesUnderTheBackwardPassGiveTheBitsOfOneProcess) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (const Strategy strategy : {Strategy::overlap, Strategy::bucketed, Strategy::flat_view}) {
      for (int ranks = 1; ranks <= 4; ++ranks) {
        for (const std::optional<DType> copy : {std::optional<DType>(), std::optional(DType::bf16)}) {
          for (const int parts : {1, 2}) {
            CertificateCase asked = sharded(sharding, strategy, ranks);
            asked.in_turn = true;
            asked.copy = copy;
            asked.parts = parts;
            EXPECT_EQ(certificate_difference(asked, ranks), std::nullopt)
                << to_string(sharding) << " with " << to_string(strategy) << " on " << ranks << " in " << parts;
          }
        }
      }
    }
  }
}

TEST(Zero, UnevenRowsNoRowsAndPartsChangeNothing) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    CertificateCase asked = sharded(sharding, Strategy::planned, 3);
    asked.parts = 3;
    asked.rows_of = {{5, 3}, {0, 5}, {8, 0}};
    for (const int slots : {1, 2, 5}) {
      asked.slots = slots;
      EXPECT_EQ(certificate_difference(asked, 3), std::nullopt) << to_string(sharding) << ", " << slots << " slots";
    }
  }
}

TEST(Zero, CopiesInPlaceOfWeightsGiveTheBitsOfOneProcess) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (const Strategy strategy : {Strategy::overlap, Strategy::bucketed, Strategy::planned, Strategy::flat_view}) {
      for (int ranks = 1; ranks <= 4; ++ranks) {
        for (const DType copy : {DType::bf16, DType::f16}) {
          CertificateCase asked = sharded(sharding, strategy, ranks);
          asked.copy = copy;
          EXPECT_EQ(certificate_difference(asked, ranks), std::nullopt)
              << to_string(sharding) << " with " << to_string(strategy) << " on " << ranks;
        }
      }
    }
  }
}

// Weights that no copy holds exactly. Of four pieces in two buckets and one of its own, the second and the last are
// read in full.
struct Copied {
  static constexpr std::int64_t kElements = 1020;
  Copied(comm::Communicator& ranks, Stream communication, bool poison)
      : weights(kElements, 0), copies(kElements), gradients(kElements, 0) {
    sync = std::make_unique<ZeroSync>(
        ranks, pieces_of_sizes({96, 288, 384, 252}), TensorView(weights.data(), DType::f32, {kElements}),
        TensorView(gradients.data(), DType::f32, {kElements}),
        ZeroOptions{.sharding = Sharding::zero1, .schedule = BucketSchedule({2, 3, 4}), .poison = poison},
        communication, WeightsCopy{.values = {copies.data(), DType::bf16, {kElements}}, .read_in_full = {1, 3}});
  }
  static float weight(std::int64_t i) { return 1 + static_cast<float>(i) * 0x1p-20F; }

  void update(Stream compute) {
    for (const int bucket : {2, 1, 0}) {
      device::enqueue(compute, [this, bucket] {
        const TensorView own = sync->weight_slice(bucket), copy = sync->copy_slice(bucket);
        const std::int64_t first = own.as<float>() - weights.data();
        for (std::int64_t i = 0; i < own.elements(); ++i) {
          own.as<float>()[i] = weight(first + i);
          if (copy.data != nullptr) copy.as<bf16>()[i] = to_bf16(weight(first + i));
        }
      });
      sync->updated(bucket, compute);
    }
    sync->all_needed(compute);
    device::synchronize(compute);
  }
  bool is_own(std::int64_t i, int rank) const {
    for (int bucket = 0; bucket < 3; ++bucket) {
      const Stretch own = sync->shards().slice(bucket, rank);
      if (i >= own.first && i < own.end()) return true;
    }
    return false;
  }

  std::vector<float> weights;
  std::vector<bf16> copies;
  std::vector<float> gradients;
  std::unique_ptr<ZeroSync> sync;
};

std::exception_ptr exception_of(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

TEST(Zero, GivesCopiesOfAllWeightsAndInFullThoseThatAreReadSo) {
  for (const int count : {1, 2, 3, 4}) {
    with_ranks(count, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
      Copied made(ranks, communication, true);
      EXPECT_TRUE(made.sync->whole());
      made.update(compute);
      EXPECT_FALSE(made.sync->whole());
      for (std::int64_t i = 0; i < Copied::kElements; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(made.copies[at].bits, to_bf16(Copied::weight(i)).bits) << i;
        const bool in_full = (i >= 96 && i < 384) || i >= 768;
        if (in_full || made.is_own(i, ranks.rank())) {
          ASSERT_EQ(made.weights[at], Copied::weight(i)) << i;
        } else {
          ASSERT_TRUE(std::isnan(made.weights[at])) << i;
        }
      }
      // Copies of the first two buckets; the last, and the second piece, in full.
      made.sync->check_bytes();
      EXPECT_EQ(made.sync->expected_bytes(), 2U * 768 + 4U * (288 + 252));
      const auto gathers = ranks.counters().total(comm::Operation::all_gather, "parameter");
      EXPECT_EQ(gathers.calls, 3U);

      for (int again = 0; again < 2; ++again) {
        made.sync->gather_weights(compute);
        device::synchronize(compute);
        EXPECT_TRUE(made.sync->whole());
        for (std::int64_t i = 0; i < Copied::kElements; ++i) {
          ASSERT_EQ(made.weights[static_cast<std::size_t>(i)], Copied::weight(i)) << i;
        }
      }
      EXPECT_EQ(ranks.counters().total(comm::Operation::all_gather, "export").calls, 2U);
      made.sync->check_bytes();
      made.sync->check_copy(compute);
      if (ranks.rank() == count - 1) made.copies[500].bits ^= 1;
      EXPECT_TRUE(test::threw(exception_of([&] { made.sync->check_copy(compute); }),
                              "elements 0 to 1020 of the weights' copy on rank " + std::to_string(count - 1)));
    });
  }
}

TEST(Zero, RefusesACopyThatDoesNotFit) {
  with_ranks(1, [](comm::Communicator& ranks, Stream, Stream) {
    std::vector<float> weights(16), gradients(16);
    const auto made = [&](std::int64_t elements, DType dtype, std::vector<int> in_full) {
      const ZeroSync sync(ranks, pieces_of_sizes({8, 8}), {weights.data(), DType::f32, {16}},
                          {gradients.data(), DType::f32, {16}}, {}, {},
                          {.values = {weights.data(), dtype, {elements}}, .read_in_full = std::move(in_full)});
    };
    EXPECT_TRUE(test::refuses([&] { made(15, DType::bf16, {}); }, "a copy of 15 elements"));
    EXPECT_TRUE(test::refuses([&] { made(16, DType::f32, {}); }, "a smaller dtype"));
    EXPECT_TRUE(test::refuses([&] { made(16, DType::bf16, {2}); }, "pieces from 0 to 1"));
    EXPECT_TRUE(test::refuses([&] { made(16, DType::bf16, {1, 0}); }, "ascending"));
    made(16, DType::bf16, {0, 1});
  });
}

// Its slots go with it: no scatter may be left that reads them, whatever the other rank does.
TEST(Zero, AStepThatWasCutShortLeavesNothingUnderWay) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    const device::OwnedStream communication = device::OwnedStream::queue();
    std::vector<float> weights(300);
    try {
      ZeroSync sync(ranks, pieces_of_sizes({100, 200}), {weights.data(), DType::f32, {300}}, {},
                    {.sharding = Sharding::zero2, .schedule = BucketSchedule({1, 2})}, communication);
      while (ranks.rank() == 0 && !ranks.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      sync.begin({});
      static_cast<void>(sync.gradient(0, {}));
      sync.grad_final(0, {});
      throw std::runtime_error("no memory for fc1's activations");
    } catch (const std::runtime_error&) {
      EXPECT_TRUE(device::is_idle(communication)) << "a scatter uses memory that is gone";
      throw;
    }
  });
  EXPECT_TRUE(test::threw(thrown[0], "rank 1", "a step was left"));
  EXPECT_TRUE(test::threw(thrown[1], "no memory for fc1's activations"));
}

// Bytes that making it takes of the account of memory.
template <typename Make>
std::int64_t taken(const Make& make) {
  const std::int64_t before = device::MemoryLog::global().live_bytes();
  const auto made = make();
  return device::MemoryLog::global().live_bytes() - before;
}

TEST(Zero, KeepsAShardOfTheGradientsAndAFewBuckets) {
  with_ranks(1, [](comm::Communicator& ranks, Stream, Stream) {
    std::vector<float> weights(1000), gradients(1000);
    const TensorView all(weights.data(), DType::f32, {1000});
    const auto made = [&](Sharding sharding, int slots) {
      return taken([&] {
        return std::make_unique<ZeroSync>(
            ranks, pieces_of_sizes({100, 300, 400, 200}), all,
            sharding == Sharding::zero1 ? TensorView(gradients.data(), DType::f32, {1000}) : TensorView{},
            ZeroOptions{.sharding = sharding, .schedule = BucketSchedule({2, 3, 4}), .slots = slots}, Stream{});
      });
    };
    EXPECT_EQ(made(Sharding::zero1, 2), 0);
    EXPECT_EQ(made(Sharding::zero2, 2), 4 * (1000 + 2 * 400));
    EXPECT_EQ(made(Sharding::zero2, 9), 4 * (1000 + 3 * 400));  // no more slots than buckets
  });
}

TEST(Zero, SendsWhatTheFormulaSays) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    std::vector<float> weights(1000), gradients(1000);
    const TensorView all(weights.data(), DType::f32, {1000});
    ZeroSync sync(ranks, pieces_of_sizes({100, 300, 400, 200}), all, {},
                  {.sharding = Sharding::zero2, .schedule = BucketSchedule({2, 4})}, communication);
    for (int part = 0; part < 3; ++part) {
      sync.begin(compute, part > 0);
      for (int piece = 0; piece < 4; ++piece) {
        const TensorView place = sync.gradient(piece, compute);
        device::enqueue(compute, [place] {
          auto* begin = place.as<float>();
          std::fill(begin, begin + place.elements(), 1.0F);
        });
        sync.grad_final(piece, compute);
      }
      part < 2 ? sync.finish_part() : sync.finish(compute);
    }
    for (const int bucket : {1, 0}) sync.updated(bucket, compute);
    sync.all_needed(compute);
    device::synchronize(compute);
    for (int bucket = 0; bucket < 2; ++bucket) {
      const TensorView slice = sync.gradient_slice(bucket);
      for (std::int64_t i = 0; i < slice.elements(); ++i) EXPECT_EQ(slice.as<float>()[i], 6) << i;  // parts · ranks
    }
    const StepTraffic traffic = step_traffic(4000, 4000, 2, Sharding::zero2, 3);
    const auto scattered = ranks.counters().total(comm::Operation::reduce_scatter, "gradient");
    const auto gathered = ranks.counters().total(comm::Operation::all_gather, "parameter");
    EXPECT_EQ(static_cast<double>(scattered.payload_bytes + gathered.payload_bytes) / 2, traffic.sent_bytes);
    EXPECT_EQ(scattered.calls, 6U);
    EXPECT_EQ(gathered.calls, 2U);
    sync.check_bytes();
    static_cast<void>(ranks.all_gather(sync.weight_slice(0), stretch(all, 0, 400), {"parameter"}, communication));
    device::synchronize(communication);
    EXPECT_THROW(sync.check_bytes(), Error);
  });
}

TEST(Zero, RefusesALayoutThatDoesNotDivide) {
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream) {
    std::vector<float> weights(10);
    const auto made = [&](std::initializer_list<std::int64_t> sizes, std::int64_t elements) {
      const ZeroSync sync(ranks, pieces_of_sizes(sizes), {weights.data(), DType::f32, {elements}}, {},
                          {.sharding = Sharding::zero2}, {});
    };
    EXPECT_TRUE(test::refuses([&] { made({3, 4}, 8); }, "'p1' begins at element 3"));
    EXPECT_TRUE(test::refuses([&] { made({4, 3}, 7); }, "7 elements for 2 ranks"));
    EXPECT_TRUE(test::refuses([&] { made({4, 4}, 6); }, "ends at 8"));
    made({4, 4}, 10);
  });
}

TEST(Zero, NamesAGradientThatIsWrittenIntoASlotInUse) {
  const auto thrown = comm::try_local(1, {}, [](comm::Communicator& ranks) {
    std::vector<float> weights(9);
    ZeroSync sync(ranks, pieces_of_sizes({3, 3, 3}), {weights.data(), DType::f32, {9}}, {},
                  {.sharding = Sharding::zero2, .schedule = BucketSchedule({1, 2, 3})}, {});
    sync.begin({});
    static_cast<void>(sync.gradient(1, {}));  // ahead of its turn, in the other slot
    static_cast<void>(sync.gradient(2, {}));
  });
  EXPECT_TRUE(test::threw(thrown[0], "bucket 2 is written before bucket 0 is final"));
}

TEST(FlatShards, CoverEveryElementOnce) {
  const FlatShards shards(pieces_of_sizes({12, 6, 18, 6}), BucketSchedule({1, 3, 4}), 48, 3);
  std::vector<int> owners(48, 0), in_shard(16, 0);
  for (int bucket = 0; bucket < 3; ++bucket) {
    for (int rank = 0; rank < 3; ++rank) {
      const Stretch own = shards.slice(bucket, rank);
      for (std::int64_t i = own.first; i < own.end(); ++i) ++owners[static_cast<std::size_t>(i)];
      if (rank > 0) continue;
      for (std::int64_t i = 0; i < own.count; ++i)
        ++in_shard[static_cast<std::size_t>(shards.first_in_shard(bucket) + i)];
    }
  }
  EXPECT_EQ(owners, std::vector<int>(48, 1));
  EXPECT_EQ(in_shard, std::vector<int>(16, 1));
  EXPECT_EQ(shards.shard_elements(), 16);
  EXPECT_EQ(shards.largest_bucket(), 24);
}

}  // namespace
}  // namespace syslab::parallel
