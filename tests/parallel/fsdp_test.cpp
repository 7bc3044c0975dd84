// Full sharding on many ranks: the bits of one process, in slots of a fixed pool that nobody reads when they are free.
#include "parallel/fsdp/fsdp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "certify/fsdp_certificate.hpp"
#include "core/integers.hpp"
#include "device/memory_log.hpp"
#include "model/config.hpp"
#include "parallel/fsdp/state.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/fsdp_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::sharded_difference;
using test::three_layers;
using test::with_ranks;

constexpr auto kEqual = std::nullopt;

TEST(GatherPlan, WithTwoSlotsGathersWhenTheUnitTwoBeforeIsDone) {
  const GatherPlan schedule(std::vector{0, 1, 2, 3, 3, 2, 1, 0}, 2);
  ASSERT_EQ(schedule.size(), 7);
  const auto gathers = [&](int stay) {
    const std::span<const int> found = schedule.gathers_after(stay);
    return std::vector<int>(found.begin(), found.end());
  };
  EXPECT_EQ(gathers(-1), (std::vector{0, 1}));
  EXPECT_EQ(gathers(0), std::vector{2});
  EXPECT_EQ(gathers(1), std::vector{3});
  EXPECT_EQ(gathers(2), std::vector<int>{});
  EXPECT_EQ(gathers(3), std::vector{5}) << "units 3 and 2 are still there for the backward pass";
  EXPECT_EQ(gathers(4), std::vector{6});
  EXPECT_FALSE(schedule[4].gathers);
  EXPECT_EQ(schedule.gathers(), 6);
  EXPECT_FALSE(schedule[2].frees);
  EXPECT_TRUE(schedule[0].frees && schedule[3].frees && schedule[6].frees);
}

TEST(GatherPlan, WithASlotForEachGathersEachOnce) {
  const GatherPlan schedule(std::vector{0, 1, 2, 2, 1, 0}, 3);
  EXPECT_EQ(schedule.gathers(), 3);
  EXPECT_EQ(schedule.gathers_after(-1).size(), 3U);
}

// What any schedule must keep, whatever is read in whichever order.
TEST(GatherPlan, NeverTakesASlotThatIsReadOrMissesAUnit) {
  const RandomStream random(3);
  std::uint64_t at = 0;
  for (int round = 0; round < 300; ++round) {
    const int units = 1 + static_cast<int>(random.bits(at++) % 6), slots = 1 + static_cast<int>(random.bits(at++) % 4);
    std::vector<int> reads;
    for (std::uint32_t i = 0; i < 1 + random.bits(at) % 12; ++i) {
      reads.push_back(static_cast<int>(random.bits(at + 1 + i) % static_cast<std::uint32_t>(units)));
    }
    at += 20;
    const GatherPlan schedule(reads, slots);
    std::vector<int> in_slot(static_cast<std::size_t>(slots), -1), read_in(in_slot);
    const auto gather_after = [&](int over) {
      for (const int number : schedule.gathers_after(over)) {
        ASSERT_TRUE(schedule[number].gathers && over < number);
        in_slot[static_cast<std::size_t>(schedule[number].slot)] = schedule[number].unit;
      }
    };
    gather_after(-1);
    for (int stay = 0; stay < schedule.size(); ++stay) {
      ASSERT_EQ(in_slot[static_cast<std::size_t>(schedule[stay].slot)], schedule[stay].unit);
      for (int read = schedule[stay].first_read; read < schedule[stay].end_read; ++read) {
        ASSERT_EQ(reads[static_cast<std::size_t>(read)], schedule[stay].unit);
      }
      gather_after(stay);
    }
    EXPECT_EQ(schedule[schedule.size() - 1].end_read, static_cast<int>(reads.size()));
  }
}

model::ModelConfig odd_config() {
  model::ModelConfig config;
  config.vocab = 101;
  config.context = 16;
  config.d_model = 20;
  config.d_ff = 50;
  config.layers = 2;
  config.heads = 2;
  return config;
}

TEST(ShardLayout, CoversEveryParameterOnceAndTakesTheBytesOfTheFormula) {
  const model::ParameterLayout layout(odd_config());
  const TransformerParts made = parts_of(layout, {}, {}, Granularity::block);
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const ShardLayout shards(made.parts, ranks);
    std::set<std::int64_t> taken;  // elements of a rank's memory
    const auto take = [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i) EXPECT_TRUE(taken.insert(i).second);
    };
    for (int matrix = 0; matrix < static_cast<int>(made.parts.matrices.size()); ++matrix) {
      std::int64_t rows = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::int64_t own = shards.own_rows(matrix, rank);
        EXPECT_TRUE(own == 0 || rows == rank * shards.chunk_rows(matrix)) << "no gap, no row twice";
        rows += own;
      }
      EXPECT_EQ(rows, made.parts.matrices[static_cast<std::size_t>(matrix)].rows);
      take(shards.offset(matrix), shards.chunk(matrix));
    }
    for (int tensor = 0; tensor < static_cast<int>(made.parts.replicated.size()); ++tensor) {
      take(shards.replicated_offset(tensor), made.parts.replicated[static_cast<std::size_t>(tensor)].elements);
    }
    EXPECT_LE(*taken.rbegin(), shards.elements());
    EXPECT_EQ(static_cast<std::int64_t>(taken.size()), shards.elements() - shards.alignment());
    const FsdpState formula = fsdp_state(odd_config(), ranks, kFp32State);
    EXPECT_EQ(static_cast<double>((shards.elements() - shards.alignment()) * 16), formula.rank_bytes);
    EXPECT_EQ(static_cast<std::int64_t>(made.parts.matrices.size()), formula.sharded_tensors);
  }
}

TEST(FsdpParts, OfTheTransformerAreItsLayersOrItsBlocks) {
  const model::ParameterLayout layout(odd_config());
  const FsdpParts layer = parts_of(layout, {}, {}, Granularity::layer).parts;
  EXPECT_EQ(layer.units.size(), 2U + 4U * 2U);
  const FsdpParts block = parts_of(layout, {}, {}, Granularity::block).parts;
  EXPECT_EQ(block.units.size(), 2U + 2U);
  EXPECT_EQ(block.units[1].size(), 4U);
  const FsdpParts half =
      parts_of(layout, model::dtypes_of(model::Precision::bf16_fused, model::Variant::fused), {}, Granularity::block)
          .parts;
  for (const FsdpBracket& bracket : half.brackets) EXPECT_EQ(bracket.gathered, DType::bf16);
  EXPECT_EQ(half.dtype, DType::f32);
  const FsdpParts amp =
      parts_of(layout, model::dtypes_of(model::Precision::bf16_amp, model::Variant::fused), {}, Granularity::block)
          .parts;
  EXPECT_EQ(amp.brackets.back().gathered, DType::f32) << "autocast looks up in fp32";
  EXPECT_EQ(amp.brackets.front().gathered, DType::bf16);
}

TEST(Fsdp, TrainsToTheBitsOfOneProcess) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const bool joined : {false, true}) {
      for (const int slots : {1, 2, 3}) {
        FsdpCertificateCase asked = three_layers();
        asked.joined = joined;
        asked.layers_of_a_unit = slots == 2 ? 2 : 1;
        asked.options.gather.slots = slots;
        asked.options.gather.reshard_after_forward = slots < 3;
        asked.options.scatter.slots = slots;
        asked.asked.parts = joined ? 2 : 1;
        EXPECT_EQ(sharded_difference(asked, ranks), kEqual) << ranks << " ranks, " << slots << " slots";
      }
    }
  }
}

TEST(Fsdp, IsMovedByNoDelayOfAnyStream) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    FsdpCertificateCase asked = three_layers();
    asked.joined = seed % 2 == 1;
    asked.options.gather.slots = 1 + static_cast<int>(seed % 3);
    asked.options.scatter.slots = 1 + static_cast<int>(seed / 2 % 2);
    asked.asked.parts = 1 + static_cast<int>(seed / 3 % 2);
    const auto delays = [seed](int rank) {
      const auto drawn =
          test::random_delays(10 * seed + static_cast<std::uint64_t>(rank), std::chrono::microseconds(400));
      return test::Lateness{drawn, drawn};
    };
    EXPECT_EQ(sharded_difference(asked, 2, delays), kEqual) << seed;
  }
}

TEST(Fsdp, IsCertifiedWithItsOwnModels) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    EXPECT_GT(certify_sharded(ranks, {}, 5, compute, communication).compared, 100);
  });
}

// One matrix of two rows in each of three units, four ranks: two of them have nothing of it.
FsdpParts three_units() {
  FsdpParts parts;
  for (int i = 0; i < 3; ++i) {
    parts.matrices.push_back({"w" + std::to_string(i), 2, 5});
    parts.brackets.push_back({.matrices = {2 - i}});
    parts.units.push_back({i});
  }
  parts.forward_reads = {2, 1, 0};
  parts.training_reads = {2, 1, 0, 0, 1};
  return parts;
}

void read_all(Fsdp& fsdp, std::span<const int> brackets) {
  for (const int bracket : brackets) {
    static_cast<void>(fsdp.gathered().read(bracket));
    fsdp.gathered().done(bracket);
  }
}

TEST(Fsdp, PoisonsWhatIsFreedAndGathersNoMoreThanPlanned) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    Fsdp fsdp(ranks, three_units(), {.gather = {.poison = true}}, compute, communication);
    const std::vector<float> values(10, 3);
    for (int i = 0; i < 3; ++i) fsdp.write(i, 0, {values.data(), DType::f32, {2, 5}});
    EXPECT_EQ(fsdp.gather_now(1), std::vector<double>(10, 3));
    fsdp.begin(PassKind::forward);
    const ConstTensorView lent = fsdp.gathered().read(2);
    device::synchronize(compute);
    EXPECT_EQ(to_doubles(lent), std::vector<double>(10, 3));
    fsdp.gathered().done(2);
    device::synchronize(compute);
    device::synchronize(communication);
    // The unit two further on has come into the slot.
    EXPECT_EQ(to_doubles(lent), std::vector<double>(10, 3));
    read_all(fsdp, std::vector{1, 0});
    fsdp.end();
    device::synchronize(compute);
    for (const double one : to_doubles(lent)) EXPECT_TRUE(std::isnan(one));
    fsdp.check_bytes();
    EXPECT_EQ(ranks.counters().total(comm::Operation::all_gather, "parameter").payload_bytes, 3U * 10 * 4);
    EXPECT_EQ(fsdp.gathered().bytes(), 2 * 128);
  });
}

TEST(Fsdp, TakesNoMemoryInAStep) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    Fsdp fsdp(ranks, three_units(), {}, compute, communication);
    const std::int64_t live = device::MemoryLog::global().live_bytes();
    ranks.barrier();
    device::MemoryLog::global().reset_peak();
    ranks.barrier();
    for (int step = 0; step < 3; ++step) {
      fsdp.begin(PassKind::training);
      read_all(fsdp, std::vector{2, 1, 0});
      for (const int bracket : {0, 1, 2}) {
        static_cast<void>(fsdp.scattered().place(bracket));
        if (bracket < 2) read_all(fsdp, std::vector{bracket});
        fsdp.scattered().final(bracket);
      }
      fsdp.end();
      fsdp.finish();
    }
    device::synchronize(compute);
    EXPECT_EQ(device::MemoryLog::global().peak_bytes(), live);
    ranks.barrier();
    fsdp.check_bytes();
  });
}

// Two matrices of rows that no number of ranks here divides, which a product writes rounded, and one that is written in
// full; numbers that no half precision holds.
struct RoundedShards {
  static constexpr std::int64_t kRows[] = {5, 7, 5}, kWidth = 4;

  static FsdpParts parts() {
    return {.matrices = {{"w0", kRows[0], kWidth}, {"w1", kRows[1], kWidth}, {"w2", kRows[2], kWidth}},
            .brackets = {{.matrices = {0, 1}, .product = DType::bf16}, {.matrices = {2}}},
            .units = {{0}, {1}},
            .forward_reads = {1, 0},
            .training_reads = {1, 0, 0}};
  }
  static float made(int rank, int part, int matrix, std::int64_t i) {
    return static_cast<float>(1 + rank) + static_cast<float>(37 * matrix + 7 * i + 3 * part) * 0x1p-13F;
  }
  static void write(const TensorView& place, const std::vector<int>& matrices, int rank, int part) {
    std::int64_t at = 0;
    for (const int matrix : matrices) {
      for (std::int64_t i = 0; i < kRows[matrix] * kWidth; ++i, ++at) {
        const float value = made(rank, part, matrix, i);
        place.dtype == DType::bf16 ? void(place.as<bf16>()[at] = to_bf16(value)) : void(place.as<float>()[at] = value);
      }
    }
  }
  // What does not travel, of one rank alone, is not rounded.
  static float expected(int ranks, int parts, int matrix, std::int64_t i) {
    const auto rounded = [&](float value) { return ranks > 1 ? to_float(to_bf16(value)) : value; };
    float all = 0;
    for (int part = 0; part < parts && i < kRows[matrix] * kWidth; ++part) {
      float sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += rounded(made(rank, part, matrix, i));
      all += rounded(sum);
    }
    return all;
  }
};

TEST(Fsdp, RoundsGradientsOnceAndTheirSumOnce) {
  const auto run = [](comm::Communicator& ranks, int parts, Stream compute, Stream communication) {
    const FsdpParts asked = RoundedShards::parts();
    Fsdp fsdp(ranks, asked, {.scatter = {.slots = 2, .wire = DType::bf16}}, compute, communication);
    for (int part = 0; part < parts; ++part) {
      fsdp.begin(PassKind::training, part > 0);
      read_all(fsdp, std::vector{1, 0});
      for (const int bracket : {0, 1}) {
        const TensorView place = fsdp.scattered().place(bracket);
        EXPECT_EQ(place.dtype, bracket == 0 && ranks.size() > 1 ? DType::bf16 : DType::f32);
        device::enqueue(compute, [&, part, place, bracket] {
          RoundedShards::write(place, asked.brackets[static_cast<std::size_t>(bracket)].matrices, ranks.rank(), part);
        });
        if (bracket == 0) read_all(fsdp, std::vector{0});
        fsdp.scattered().final(bracket);
      }
      fsdp.end();
    }
    fsdp.finish();
    device::synchronize(compute);
    for (int matrix = 0; matrix < 3; ++matrix) {
      const std::int64_t chunk = fsdp.layout().chunk(matrix);
      const auto* found = fsdp.gradients().as<float>() + fsdp.layout().offset(matrix);
      for (std::int64_t i = 0; i < chunk; ++i) {
        const std::int64_t at = ranks.rank() * chunk + i;
        EXPECT_EQ(found[i], RoundedShards::expected(ranks.size(), parts, matrix, at)) << "w" << matrix << " at " << at;
      }
    }
    fsdp.check_bytes();
  };
  for (const int count : {1, 2, 3}) {
    for (const int parts : {1, 2}) {
      with_ranks(count, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
        run(ranks, parts, compute, communication);
      });
    }
  }
}

TEST(Fsdp, TimesEveryGatherFromItsStartToItsFirstUse) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    Fsdp fsdp(ranks, three_units(), {.gather = {.timing = true}}, compute, communication);
    fsdp.begin(PassKind::forward);
    constexpr auto kLate = std::chrono::milliseconds(30);
    test::sleep_in(compute, kLate);  // the first two gathers are long done when they are needed
    read_all(fsdp, std::vector{2, 1});
    test::sleep_in(communication, kLate);  // before no gather: all are queued
    read_all(fsdp, std::vector{0});
    fsdp.end();
    device::synchronize(compute);
    device::synchronize(communication);
    const std::vector<GatherTimes> times = fsdp.gathered().times();
    ASSERT_EQ(times.size(), 3U);
    for (const GatherTimes& one : times) {
      EXPECT_LE(one.start, one.end);
      EXPECT_LE(one.end, one.first_use) << "nothing is read before it is there";
      EXPECT_LE(one.needed, one.first_use);
      EXPECT_EQ(one.bytes, 40);
    }
    EXPECT_GE(times[0].needed, Seconds(std::chrono::milliseconds(29)));
    EXPECT_GE(times[2].start, times[0].first_use) << "its slot was taken until then";
  });
}

TEST(Fsdp, NamesWhatIsReadOutOfTurn) {
  const auto refused = [](const std::function<void(Fsdp&)>& body, auto... parts) {
    // The communication ends with it, which is for whoever runs the ranks.
    static_cast<void>(comm::try_local(1, {}, [&](comm::Communicator& ranks) {
      Fsdp fsdp(ranks, three_units(), {}, {}, {});
      EXPECT_TRUE(test::refuses([&] { body(fsdp); }, parts...));
    }));
  };
  refused([](Fsdp& fsdp) { fsdp.gathered().read(2); }, "'w0' is read where no pass has it");
  refused(
      [](Fsdp& fsdp) {
        fsdp.begin(PassKind::training);
        fsdp.gathered().read(1);
      },
      "'w1' is read where 'w0' is next");
  refused(
      [](Fsdp& fsdp) {
        fsdp.begin(PassKind::training);
        read_all(fsdp, std::vector{2});
        fsdp.end();
      },
      "ends after 1 of 5 reads");
  refused(
      [](Fsdp& fsdp) {
        fsdp.begin(PassKind::training);
        fsdp.scattered().place(1);
      },
      "bracket 1 is made where that of bracket 0 is next");
  refused(
      [](Fsdp& fsdp) {
        fsdp.begin(PassKind::training);
        fsdp.finish();
      },
      "ends after 0 of 3 brackets");
}

TEST(Fsdp, RefusesRanksThatShardOtherThings) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    FsdpParts parts = three_units();
    parts.matrices[1].rows += ranks.rank();
    const Fsdp fsdp(ranks, parts, {}, {}, {});
  });
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, "'w1' 2 by 5", "'w1' 3 by 5"));
}

}  // namespace
}  // namespace syslab::parallel
