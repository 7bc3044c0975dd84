// The transformer with its state divided among ranks: the bits of plain data parallelism, in as many bytes as the
// formula says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tests/model/overflowing_loss.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/fsdp_step_fixture.hpp"
#include "tests/parallel/sharded_fixture.hpp"
#include "tests/parallel/state_piece.hpp"
#include "train/loss_scaler.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using model::Plane;
using model::Transformer;
using test::with_ranks;

using test::kRate;
using test::kRows;
using test::kSeq;
using test::load;
using test::odd_config;
using test::set_weights;
using test::small_config;
using test::StatePiece;
using test::StatePlane;
using test::weights_of;
using Rig = test::ShardedRig;

struct Left {
  std::vector<std::vector<double>> weights;
  std::vector<double> losses, norms;
};

Left trained(comm::Communicator& ranks, Sharding sharding, const DataParallelOptions& options, Stream communication,
             int slots = 2, bool in_turn = false, test::ExactSteps* exact = nullptr) {
  const std::int64_t rows = kRows / ranks.size() / options.parts;
  Rig rig(ranks, sharding, options, rows, communication, slots, in_turn);
  if (exact != nullptr) exact->begin_with(rig.weights());
  Left made;
  for (int i = 0; i < 4; ++i) {
    for (int part = 0; part < options.parts; ++part)
      rig.load(i, part, (ranks.rank() * options.parts + part) * rows, rows);
    rig.step->run(kRate);
    const DataParallelResult result = rig.step->result();
    made.losses.push_back(result.loss);
    made.norms.push_back(result.gradient_norm.value_or(0));
    if (exact != nullptr) exact->expect_step(test::batch_of(small_config(), i), result, rig.weights());
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

// Of gradients that travel rounded, too: each is rounded once, and each sum once.
TEST(ShardedStep, GivesTheBitsOfPlainDataParallelismThatRounds) {
  for (const DType wire : {DType::bf16, DType::f16}) {
    for (const int count : {1, 2, 3}) {
      with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
        DataParallelOptions options;
        const Left exact = trained(ranks, Sharding::none, options, communication);
        options.sync.wire = wire;
        const Left plain = trained(ranks, Sharding::none, options, communication);
        EXPECT_EQ(plain.weights == exact.weights, count == 1);  // what does not travel is not rounded
        for (const Sharding sharding : kDivided) {
          const Left divided = trained(ranks, sharding, options, communication);
          EXPECT_TRUE(divided.weights == plain.weights) << to_string(sharding) << " on " << count;
        }
      });
    }
  }
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    DataParallelOptions options;
    options.sync.wire = DType::bf16;
    options.parts = 3;
    const Left plain = trained(ranks, Sharding::none, options, communication);
    EXPECT_TRUE(trained(ranks, Sharding::zero1, options, communication).weights == plain.weights);
  });
}

TEST(ShardedStep, UpdatedInTurnGivesTheSameBits) {
  for (const int parts : {1, 3}) {
    DataParallelOptions options;
    options.parts = parts;
    for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
      for (const std::optional<DType> wire : {std::optional<DType>(), std::optional(DType::bf16)}) {
        options.sync.wire = wire;
        with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
          const Left at_end = trained(ranks, sharding, options, communication);
          const Left in_turn = trained(ranks, sharding, options, communication, 2, true);
          EXPECT_TRUE(in_turn.weights == at_end.weights) << to_string(sharding) << " in " << parts;
          EXPECT_EQ(in_turn.losses, at_end.losses);
        });
      }
    }
  }
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    const DataParallelOptions clips{.optimizer = {.max_norm = 1}};
    EXPECT_TRUE(
        test::refuses([&] { Rig(ranks, Sharding::zero1, clips, 1, communication, 2, true); }, "neither clip nor skip"));
  });
}

TEST(ShardedStep, ClipsByTheNormOfAllRanksGradients) {
  const DataParallelOptions options{.optimizer = {.max_norm = 0.5}};
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    const Left plain = trained(ranks, Sharding::none, options, communication);
    for (const Sharding sharding : kDivided) {
      SCOPED_TRACE(to_string(sharding));
      test::ExactSteps exact(small_config(), options.optimizer);
      const Left divided = trained(ranks, sharding, options, communication, 2, false, &exact);
      EXPECT_GT(plain.norms[0], 0.5);
      // Of the same gradients in the first step: 3 · 2^-24 (parallel/shard_norm.hpp). Later ones are of weights that
      // were clipped by another norm.
      EXPECT_NEAR(divided.norms[0], plain.norms[0], 3 * 0x1p-24 * plain.norms[0]);
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
      test::ExactSteps exact(small_config(), options.optimizer);
      trained(ranks, Sharding::zero2, options, communication, slots, false, &exact);
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

TEST(FsdpStep, SkipsOnAllRanksWhatIsNoNumberOnOne) {
  with_ranks(3, [](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::block);
    options.optimizer.skip_non_finite = true;
    FsdpStep step(odd_config(), {}, ranks, options, 2, kSeq, {}, communication);
    set_weights(step);
    const auto run = [&](int number) {
      load(step, 0, test::batch_of(odd_config(), number), 2 * ranks.rank(), 2);
      step.run(kRate);
      return step.result();
    };
    EXPECT_FALSE(run(0).skipped);
    const std::vector<double> before = weights_of(step);
    // One norm weight of one rank: replicated, and not the same for a moment.
    float& weight = *step.fsdp().replicated(0).as<float>();
    const float kept = weight;
    if (ranks.rank() == 1) weight = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(run(1).skipped);
    weight = kept;
    EXPECT_EQ(weights_of(step), before);
    EXPECT_FALSE(run(2).skipped);
    step.check();
  });
}

std::vector<StatePiece> pieces_of(FsdpStep& step, int rank) {
  device::synchronize(step.model().stream());
  return test::pieces_of(step.fsdp(), rank, [&](test::Moment moment) { return step.moments().moment(moment, 0); });
}

// All that a rank holds: its parts of weights and moments, and what is replicated.
std::map<std::string, std::vector<float>> held(FsdpStep& step, int rank) {
  std::map<std::string, std::vector<float>> all;
  for (const StatePiece& piece : pieces_of(step, rank)) {
    const auto* begin = piece.values.as<float>();
    all[std::string(to_string(piece.plane)) + " " + piece.parameter].assign(begin, begin + piece.values.elements());
  }
  return all;
}

// The weights of the last norm on this rank: replicated, so that one rank's can be spoilt for a moment.
TensorView last_norm(FsdpStep& step, int rank) {
  const model::ParameterLayout& layout = step.model().parameters().layout();
  for (const StatePiece& piece : pieces_of(step, rank)) {
    if (piece.plane == StatePlane::weight && piece.parameter == layout.info(layout.ln_final()).name) {
      return piece.values;
    }
  }
  throw Error(ErrorKind::internal, "no last norm");
}

// Its gradients are finite, and so is their sum: none but rank 1 would know. The LM head is that of an infinite loss on
// rank 1's last row; the others, whose last norm is nothing for a moment, have the loss of logits that are nothing.
TEST(FsdpStep, SkipsOnAllRanksWhereTheLossOfOneIsInfinite) {
  struct Way {
    Granularity granularity;
    int parts;
  };
  for (const Way& way : {Way{Granularity::block, 1}, Way{Granularity::layer, 1}, Way{Granularity::block, 2}}) {
    SCOPED_TRACE(std::string(to_string(way.granularity)) + ", parts: " + std::to_string(way.parts));
    with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
      FsdpStepOptions options = fsdp_step_options(way.granularity);
      options.optimizer.skip_non_finite = true;
      options.parts = way.parts;
      FsdpStep step(odd_config(), {}, ranks, options, 2 / way.parts, kSeq, {}, communication);
      set_weights(step);
      const auto run = [&](int number, double rate) {
        for (int part = 0; part < way.parts; ++part) {
          load(step, part, test::batch_of(odd_config(), number), 2 * ranks.rank() + part, 2 / way.parts);
        }
        step.run(rate);
        return step.result();
      };
      EXPECT_FALSE(run(0, 0).skipped);  // moments, and weights as they were
      const auto before = held(step, ranks.rank());

      Transformer spoilt(odd_config(), {}, {});
      model::set_weights(spoilt, 1);
      const model::Sequences all = test::batch_of(odd_config(), 1);
      const auto row = [](const std::vector<std::int64_t>& of) {
        return std::vector(of.begin() + 3 * kSeq, of.begin() + 4 * kSeq);
      };
      model::make_loss_infinite(spoilt, spoilt.parameters(), {1, kSeq, row(all.ids), row(all.targets)});
      const int head = spoilt.parameters().layout().lm_head();
      const auto write_head = [&](const std::vector<double>& values) {
        step.write(head, 0, {values.data(), DType::f64, spoilt.parameters().layout().info(head).shape});
      };
      write_head(spoilt.parameters().read(model::Plane::weight, head));
      const TensorView norm = last_norm(step, ranks.rank());
      const std::vector<float> kept(norm.as<float>(), norm.as<float>() + norm.elements());
      if (ranks.rank() != 1) std::fill_n(norm.as<float>(), norm.elements(), 0.0F);

      const DataParallelResult wrong = run(1, kRate);
      EXPECT_TRUE(wrong.skipped);
      EXPECT_EQ(wrong.losses[1], INFINITY);
      EXPECT_TRUE(std::isfinite(wrong.losses[0]) && std::isfinite(wrong.losses[2]));
      EXPECT_TRUE(std::isfinite(wrong.gradient_norm.value()));
      std::ranges::copy(kept, norm.as<float>());
      write_head(model::weights_of(spoilt.parameters().layout().info(head), 1));
      EXPECT_TRUE(held(step, ranks.rank()) == before);
      EXPECT_FALSE(run(2, kRate).skipped);
      EXPECT_FALSE(held(step, ranks.rank()) == before);
      step.check();
    });
  }
}

// What overflows on one rank halves the scale of all, and is no step; a step whose loss was scaled by a power of two is
// that of an unscaled one, to the bit. (fp16_amp, whose loss is scaled so, needs a GPU.)
TEST(FsdpStep, SkippingHalvesTheScaleOfTheLossOnAllRanks) {
  with_ranks(3, [](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::block);
    options.optimizer.skip_non_finite = true;
    FsdpStep step(odd_config(), {}, ranks, options, 2, kSeq, {}, communication);
    set_weights(step);
    train::LossScaler scaler;
    const auto run = [&](int number, double scale) {
      load(step, 0, test::batch_of(odd_config(), number), 2 * ranks.rank(), 2);
      step.run(kRate, scale);
      return step.result();
    };
    run(0, 1);
    const auto before = held(step, ranks.rank());

    float& weight = *last_norm(step, ranks.rank()).as<float>();
    const float kept = weight;
    if (ranks.rank() == 1) weight = INFINITY;
    EXPECT_FALSE(scaler.update(run(1, scaler.scale()).skipped));
    for (const double scale : exchange(ranks, scaler.scale())) EXPECT_EQ(scale, 0x1p15);
    weight = kept;
    EXPECT_TRUE(held(step, ranks.rank()) == before);

    const DataParallelResult scaled = run(2, scaler.scale());
    EXPECT_TRUE(scaler.update(scaled.skipped));
    FsdpStep unscaled(odd_config(), {}, ranks, options, 2, kSeq, {}, communication);
    for (const StatePiece& piece : pieces_of(unscaled, ranks.rank())) {
      const std::vector<float>& values = before.at(std::string(to_string(piece.plane)) + " " + piece.parameter);
      std::ranges::copy(values, piece.values.as<float>());
    }
    unscaled.training().optimizer().set_steps(2);
    load(unscaled, 0, test::batch_of(odd_config(), 2), 2 * ranks.rank(), 2);
    unscaled.run(kRate);
    EXPECT_EQ(unscaled.result().gradient_norm, scaled.gradient_norm);
    EXPECT_TRUE(held(unscaled, ranks.rank()) == held(step, ranks.rank()));
  });
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
