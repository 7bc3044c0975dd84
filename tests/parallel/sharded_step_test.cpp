// The transformer with its state divided among ranks: the bits of plain data parallelism, in as many bytes as the
// formula says.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/model/overflowing_loss.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/sharded_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using model::Plane;
using test::with_ranks;

using test::kRate;
using test::kRows;
using test::kSeq;
using test::small_config;
using Rig = test::ShardedRig;

struct Left {
  std::vector<std::vector<double>> weights;
  std::vector<double> losses, norms;
};

Left trained(comm::Communicator& ranks, Sharding sharding, const DataParallelOptions& options, Stream communication,
             int slots = 2) {
  const std::int64_t rows = kRows / ranks.size() / options.parts;
  Rig rig(ranks, sharding, options, rows, communication, slots);
  Left made;
  for (int i = 0; i < 4; ++i) {
    for (int part = 0; part < options.parts; ++part)
      rig.load(i, part, (ranks.rank() * options.parts + part) * rows, rows);
    rig.step->run(kRate);
    const DataParallelResult result = rig.step->result();
    made.losses.push_back(result.loss);
    made.norms.push_back(result.gradient_norm.value_or(0));
  }
  rig.step->check();
  made.weights = rig.weights();
  return made;
}

constexpr std::array kDivided{Sharding::optimizer, Sharding::zero1, Sharding::zero2};

TEST(ShardedStep, GivesTheBitsOfPlainDataParallelism) {
  for (const int count : {1, 2, 3}) {
    with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
      const Left plain = trained(ranks, Sharding::none, {}, communication);
      for (const Sharding sharding : kDivided) {
        const Left divided = trained(ranks, sharding, {}, communication);
        EXPECT_TRUE(divided.weights == plain.weights) << to_string(sharding) << " on " << count;
        EXPECT_EQ(divided.losses, plain.losses) << to_string(sharding) << " on " << count;
      }
    });
  }
}

TEST(ShardedStep, ClipsByTheNormOfAllRanksGradients) {
  const DataParallelOptions options{.optimizer = {.max_norm = 0.5}};
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    const Left plain = trained(ranks, Sharding::none, options, communication);
    for (const Sharding sharding : kDivided) {
      const Left divided = trained(ranks, sharding, options, communication);
      EXPECT_GT(plain.norms[0], 0.5);
      // Of the same weights in the first step; later ones differ by what the norm was rounded to.
      EXPECT_NEAR(divided.norms[0], plain.norms[0], 2e-7 * plain.norms[0]) << to_string(sharding);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(divided.norms[i], plain.norms[i], 1e-5) << to_string(sharding);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(divided.losses[i], plain.losses[i], 1e-5) << to_string(sharding);
    }
  });
}

TEST(ShardedStep, AddsUpPartsInTheirShards) {
  DataParallelOptions options;
  options.parts = 3;
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    const Left plain = trained(ranks, Sharding::none, options, communication);
    // The first stage adds parts as the plain step does, before it scatters; the second after, in another order.
    EXPECT_TRUE(trained(ranks, Sharding::zero1, options, communication).weights == plain.weights);
    for (const int slots : {2, 4}) {
      const Left divided = trained(ranks, Sharding::zero2, options, communication, slots);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(divided.losses[i], plain.losses[i], 1e-5);
    }
  });
}

TEST(ShardedStep, HoldsAsManyBytesAsTheFormulaSays) {
  for (const int count : {1, 2, 3}) {
    with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
      for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::zero1, Sharding::zero2}) {
        Rig rig(ranks, sharding, {}, 1, communication);
        const HeldBytes held = rig.step->held();
        const model::ParameterLayout& layout = rig.arena().layout();
        // With the padding of the layout as parameters; of `optimizer`, whole parameters without it.
        const bool whole = sharding == Sharding::optimizer;
        const StateBytes formula = state_bytes(static_cast<double>(layout.elements()), count, sharding, kFp32State);
        EXPECT_EQ(static_cast<double>(held.weights), formula.weights) << to_string(sharding);
        if (whole) {
          const auto own = rig.step->owners()->loads()[static_cast<std::size_t>(ranks.rank())];
          EXPECT_EQ(held.moments, 8 * static_cast<std::size_t>(own));
        } else {
          EXPECT_EQ(static_cast<double>(held.moments), formula.moments) << to_string(sharding);
        }
        std::size_t slots = 0;
        if (sharding == Sharding::zero2) {
          slots = 2 * 4 * static_cast<std::size_t>(rig.zero->sync().shards().largest_bucket());
        }
        EXPECT_EQ(static_cast<double>(held.gradients - slots), formula.gradients) << to_string(sharding);
        EXPECT_LE(layout.elements() - layout.parameters(), 64 * count * layout.size());
      }
    });
  }
}

// A step on this rank's two rows of batch `number`.
DataParallelResult run_own_rows(Rig& rig, const comm::Communicator& ranks, int number) {
  rig.load(number, 0, 2 * ranks.rank(), 2);
  rig.step->run(kRate);
  return rig.step->result();
}

TEST(ShardedStep, SkipsOnAllRanksWhatIsNoNumberOnOne) {
  for (const Sharding sharding : kDivided) {
    with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
      Rig rig(ranks, sharding, {.optimizer = {.skip_non_finite = true}}, 2, communication);
      const auto run = [&](int number) { return run_own_rows(rig, ranks, number); };
      EXPECT_FALSE(run(0).skipped);
      const auto before = rig.weights();
      float& weight = *rig.arena().view(Plane::weight, rig.arena().layout().ln_final()).as<float>();
      const float kept = weight;
      if (ranks.rank() == 1) weight = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(run(1).skipped) << to_string(sharding);
      if (rig.zero) rig.zero->all_needed({});
      weight = kept;
      // What a rank sends of its own is as it was; where the NaN was another's, it did not spread.
      auto after = rig.weights();
      const auto at = static_cast<std::size_t>(rig.arena().layout().ln_final());
      after[at][0] = before[at][0];
      EXPECT_TRUE(after == before) << to_string(sharding);
    });
  }
}

// Its gradients are finite, and so is their sum: none but rank 1 would know.
TEST(ShardedStep, SkipsOnAllRanksWhereTheLossOfOneIsInfinite) {
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::zero1, Sharding::zero2}) {
    with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
      Rig rig(ranks, sharding, {.optimizer = {.skip_non_finite = true}}, 2, communication);
      const auto run = [&](int number) { return run_own_rows(rig, ranks, number); };
      EXPECT_FALSE(run(0).skipped);
      const auto before = rig.weights();
      const int head = rig.arena().layout().lm_head();
      if (ranks.rank() == 1) {
        const model::Sequences all = model::random_sequences(small_config(), kRows, kSeq, 101);
        const auto own = [](const std::vector<std::int64_t>& of) {
          return std::vector(of.begin() + 2 * kSeq, of.begin() + 4 * kSeq);
        };
        model::make_loss_infinite(*rig.model, rig.arena(), {2, kSeq, own(all.ids), own(all.targets)});
      }
      const auto spoilt = rig.weights();
      const DataParallelResult wrong = run(1);
      EXPECT_TRUE(wrong.skipped) << to_string(sharding);
      EXPECT_EQ(wrong.losses[1], INFINITY);
      EXPECT_TRUE(std::isfinite(wrong.losses[0]) && std::isfinite(wrong.losses[2]));
      if (sharding == Sharding::none) {
        EXPECT_TRUE(std::isfinite(*wrong.gradient_norm));
        EXPECT_TRUE(rig.weights() == spoilt);
      }
      rig.weights();  // all have come
      rig.arena().write(Plane::weight, head, 0,
                        ConstTensorView(before[static_cast<std::size_t>(head)].data(), DType::f64,
                                        rig.arena().layout().info(head).shape));
      EXPECT_TRUE(rig.weights() == before) << to_string(sharding);
      EXPECT_FALSE(run(2).skipped);
      rig.step->check();
    });
  }
}

TEST(ShardedStep, RefusesWhatDoesNotGoTogether) {
  with_ranks(1, [](comm::Communicator& ranks, Stream, Stream communication) {
    model::Transformer model(small_config(), {}, {});
    EXPECT_TRUE(
        test::refuses([&] { DataParallelStep(model, ranks, {.sharding = Sharding::zero1}, 1, kSeq, communication); },
                      "DataParallelOptions::zero"));
  });
}

}  // namespace
}  // namespace syslab::parallel
