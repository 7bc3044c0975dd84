// What a step of gradients may do and may not, and what it tells.
#include "parallel/ddp/gradient_sync.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "device/memory_log.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/planning/pieces_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::pieces_of_sizes;
using test::refuses;
using test::with_ranks;

// Three gradients in memory of the host.
struct Arena {
  GradientPieces pieces{{{"a", 0, 2}, {"b", 4, 3}, {"c", 8, 1}}, DType::f32};
  std::array<float, 9> values{};
  TensorView view() { return {values.data(), DType::f32, {9}}; }
};

// Errors are the same for one rank, which needs no others.
void alone(const std::function<void(GradientSync&)>& body, const SyncOptions& options = {}) {
  Arena arena;
  comm::run_local(1, {}, [&](comm::Communicator& ranks) {
    GradientSync sync(ranks, arena.pieces, arena.view(), options, {});
    body(sync);
  });
}

TEST(GradientSync, NamesTheGradientsThatNeverCame) {
  alone([](GradientSync& sync) {
    sync.begin({});
    sync.grad_final(0, {});
    EXPECT_TRUE(refuses([&] { sync.finish({}); }, "no gradient of 'b', 'c' in this step", "unused()"));
  });
}

TEST(GradientSync, NamesAGradientThatComesOutOfTurnOrTwice) {
  alone([](GradientSync& sync) {
    sync.begin({});
    EXPECT_TRUE(refuses([&] { sync.grad_final(2, {}); }, "'c' is final before 'a', 'b'"));
  });
  alone([](GradientSync& sync) {
    sync.begin({});
    sync.grad_final(0, {});
    EXPECT_TRUE(refuses([&] { sync.grad_final(0, {}); }, "'a' is final twice"));
  });
  alone([](GradientSync& sync) {
    sync.begin({});
    EXPECT_TRUE(refuses([&] { sync.grad_final(3, {}); }, "piece 3", "3 gradients"));
  });
}

TEST(GradientSync, RefusesAStepInsideAStep) {
  alone([](GradientSync& sync) {
    EXPECT_TRUE(refuses([&] { sync.grad_final(0, {}); }, "outside of a step"));
    EXPECT_TRUE(refuses([&] { sync.unused(0, {}); }, "outside of a step"));
    EXPECT_TRUE(refuses([&] { sync.finish({}); }, "not begun"));
    sync.begin({});
    EXPECT_TRUE(refuses([&] { sync.begin({}); }, "before the one before it was finished"));
  });
}

TEST(GradientSync, TakesUnusedGradientsInTheirTurnAndZeroesThem) {
  Arena arena;
  arena.values.fill(5);
  comm::run_local(1, {}, [&](comm::Communicator& ranks) {
    GradientSync sync(ranks, arena.pieces, arena.view(), {}, {});
    sync.begin({});
    sync.unused(0, {});
    sync.unused(2, {});
    EXPECT_TRUE(refuses([&] { sync.unused(0, {}); }, "'a' is declared unused after its turn"));
    sync.begin({});  // a step that was refused is over
    sync.unused(2, {});
    sync.grad_final(0, {});
    sync.grad_final(1, {});
    EXPECT_TRUE(refuses([&] { sync.grad_final(2, {}); }, "'c' is final twice", "declared unused"));
  });
  EXPECT_EQ(arena.values, (std::array<float, 9>{0, 0, 5, 5, 5, 5, 5, 5, 0}));
}

TEST(GradientSync, EndsTheOtherRanksStepWhenOneIsInDisorder) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    Arena arena;
    const device::OwnedStream communication = device::OwnedStream::queue();
    GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::overlap}, communication);
    sync.begin({});
    sync.grad_final(0, {});
    if (ranks.rank() == 1) sync.grad_final(2, {});
    sync.grad_final(1, {});
    sync.grad_final(2, {});
    sync.finish({});
  });
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, "'c' is final before 'b'"));
}

// An exception takes the gradients' memory along: no reduction may be left that uses it, whatever the others do.
TEST(GradientSync, OfAStepThatWasCutShortLeavesNothingUnderWay) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    const device::OwnedStream communication = device::OwnedStream::queue();
    if (ranks.rank() == 1) {
      try {
        Arena arena;
        GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::overlap}, communication);
        sync.begin({});
        sync.grad_final(0, {});
        throw std::runtime_error("no memory for fc1's activations");
      } catch (const std::runtime_error&) {
        EXPECT_TRUE(device::is_idle(communication)) << "a reduction uses memory that is gone";
        throw;
      }
    }
    Arena arena;
    GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::overlap}, communication);
    while (!ranks.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    sync.begin({});
    sync.grad_final(0, {});
  });
  EXPECT_TRUE(test::threw(thrown[0], "rank 1", "'b', 'c'"));
  EXPECT_TRUE(test::threw(thrown[1], "no memory for fc1's activations"));
}

TEST(GradientSync, NamesWhatRanksDoNotAgreeOn) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    Arena arena;
    if (ranks.rank() == 1) arena.pieces = GradientPieces({{"a", 0, 2}, {"d", 4, 3}, {"c", 8, 1}}, DType::f32);
    const GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::overlap}, {});
  });
  for (const std::exception_ptr& error : thrown) {
    EXPECT_TRUE(test::threw(error, "rank 0 has \"'b' at 4", "rank 1 has \"'d' at 4"));
  }
}

TEST(GradientSync, RefusesAnArenaThatDoesNotHoldThePieces) {
  Arena arena;
  comm::run_local(1, {}, [&](comm::Communicator& ranks) {
    const TensorView small(arena.values.data(), DType::f32, {8});
    EXPECT_TRUE(refuses([&] { GradientSync(ranks, arena.pieces, small, {}, {}); }, "8 elements", "element 9"));
    SyncOptions planned{.strategy = Strategy::planned};
    EXPECT_TRUE(refuses([&] { GradientSync(ranks, arena.pieces, arena.view(), planned, {}); }, "3 gradients", "none"));
    planned.schedule = BucketSchedule({2});
    EXPECT_TRUE(refuses([&] { GradientSync(ranks, arena.pieces, arena.view(), planned, {}); }, "one of 2"));
    EXPECT_TRUE(refuses([] { parse_strategy("bucketted"); }, "did you mean 'bucketed'"));
  });
}

// Every strategy on two ranks, whose gradients are 1 + rank and 10 · (1 + rank).
void run_step(GradientSync& sync, Arena& arena, int rank, Stream compute) {
  sync.begin(compute);
  for (int piece = 0; piece < 3; ++piece) {
    for (std::int64_t i = 0; i < arena.pieces[piece].elements; ++i) {
      arena.values[static_cast<std::size_t>(arena.pieces[piece].first + i)] = 1.0F + static_cast<float>(rank);
    }
    sync.grad_final(piece, compute);
  }
  sync.finish(compute);
}

// By hand: 2, 3 and 1 elements with two and one of padding between; limits of 20 bytes hold b and c, in bf16 all.
std::uint64_t sent_elements(Strategy strategy, bool in_bf16) {
  switch (strategy) {
    case Strategy::flat_view:
      return 9;
    case Strategy::bucketed:
      return in_bf16 ? 9 : 2 + 5;
    case Strategy::planned:
      return 7 + 1;
    default:
      return 6;
  }
}

TEST(GradientSync, SumsWhateverTheStrategyAndCountsItsBytes) {
  for (const StrategyInfo& info : strategies()) {
    for (const std::optional<DType> wire : {std::optional<DType>(), std::optional(DType::bf16)}) {
      with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
        Arena arena;
        SyncOptions options{.strategy = info.strategy, .bucket_mb = {20 / 0x1p20}, .wire = wire};
        options.schedule = BucketSchedule({2, 3});
        GradientSync sync(ranks, arena.pieces, arena.view(), options, communication);
        for (int step = 0; step < 2; ++step) {
          run_step(sync, arena, ranks.rank(), {});
          EXPECT_EQ(arena.values, (std::array<float, 9>{3, 3, 0, 0, 3, 3, 3, 0, 3})) << to_string(info.strategy);
        }
        sync.check_bytes();
        const std::uint64_t sent = ranks.counters().total(comm::Operation::all_reduce, "gradient").payload_bytes;
        const std::uint64_t elements = sent_elements(info.strategy, wire.has_value());
        EXPECT_EQ(sent, 2 * elements * (wire ? 2 : 4)) << to_string(info.strategy);
        // A reduction of somebody else's under the same purpose is a bucket too many.
        float one = 1;
        ranks.all_reduce({&one, DType::f32, {1}}, comm::Reduction::sum, {"gradient"}, {});
        EXPECT_THROW(sync.check_bytes(), Error);
      });
    }
  }
}

TEST(GradientSync, RoundsOnceToTheWiresDtypeAndSumsInFp32) {
  with_ranks(3, [](comm::Communicator& ranks, Stream, Stream communication) {
    Arena arena;
    GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::bucketed, .wire = DType::bf16},
                      communication);
    const float own = ranks.rank() == 0 ? 1.0F : 0x1p-9F;  // two halves of bf16's last place of 1 + 2^-7
    sync.begin({});
    arena.values.fill(own);
    for (int piece = 0; piece < 3; ++piece) sync.grad_final(piece, {});
    sync.finish({});
    EXPECT_EQ(arena.values[0], 1.0F);  // 1 + 2^-8 rounds to even; summed in bf16 alike, one by one
    sync.begin({});
    arena.values.fill(ranks.rank() == 0 ? 1.0F : 0x1p-8F);
    for (int piece = 0; piece < 3; ++piece) sync.grad_final(piece, {});
    sync.finish({});
    EXPECT_EQ(arena.values[0], 1.0F + 0x1p-7F);  // one by one in bf16 it would have stayed 1
  });
}

TEST(GradientSync, OfOneRankCallsNoBackendAndMovesNothing) {
  with_ranks(1, [](comm::Communicator& ranks, Stream, Stream communication) {
    Arena arena;
    GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::overlap, .wire = DType::bf16},
                      communication);
    run_step(sync, arena, 0, {});
    EXPECT_EQ(ranks.counters().total().calls, 0);
    EXPECT_EQ(sync.expected_bytes(), 0);
    sync.check_bytes();
  });
}

TEST(GradientSync, AllocatesNothingInAStep) {
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream communication) {
    Arena arena;
    GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::flat_copy, .wire = DType::bf16},
                      communication);
    ranks.barrier();
    const std::size_t before = device::MemoryLog::global().events().size();
    for (int step = 0; step < 3; ++step) run_step(sync, arena, ranks.rank(), {});
    EXPECT_EQ(device::MemoryLog::global().events().size(), before);
    ranks.barrier();
  });
}

TEST(GradientSync, TellsWhenEachBucketWasReadyBegunAndDone) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    Arena arena;
    GradientSync sync(ranks, arena.pieces, arena.view(), {.strategy = Strategy::overlap, .timing = true},
                      communication);
    EXPECT_TRUE(refuses([&] { sync.timeline(); }, "a step"));
    device::Event origin(device::place_of(compute), device::Timing::yes);
    origin.record(compute);
    test::sleep_in(compute, std::chrono::milliseconds(20));  // between a step's start and its begin()
    sync.begin(compute);
    for (int piece = 0; piece < 3; ++piece) {
      test::sleep_in(compute, std::chrono::milliseconds(5));
      sync.grad_final(piece, compute);
    }
    test::sleep_in(communication, std::chrono::milliseconds(5));
    sync.finish(compute);
    device::synchronize(compute);
    const BucketTimeline told = sync.timeline();
    ASSERT_EQ(told.buckets.size(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_GE(told.buckets[i].ready.count(), 5e-3 * static_cast<double>(i + 1));
      EXPECT_GE(told.buckets[i].start, told.buckets[i].ready);
      EXPECT_GE(told.buckets[i].end, told.buckets[i].start);
      EXPECT_TRUE(i == 0 || told.buckets[i].start >= told.buckets[i - 1].end);
      EXPECT_EQ(told.buckets[i].bytes, 4 * arena.pieces[static_cast<int>(i)].elements);
    }
    EXPECT_GE(told.exposed().count(), 0);
    EXPECT_GE((sync.timeline(origin).backward_end() - told.backward_end()).count(), 20e-3);
  });
}

}  // namespace
}  // namespace syslab::parallel
