// The transformer with its weights divided: the bits of data parallelism, the bytes of the formula, and no weight that
// is held any longer than it is read.
#include "parallel/fsdp/step.hpp"

#include <gtest/gtest.h>

#include <map>

#include "device/memory_log.hpp"
#include "model/initialise.hpp"
#include "parallel/ddp/data_parallel_step.hpp"
#include "parallel/fsdp/state.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/fsdp_step_fixture.hpp"
#include "train/ladder.hpp"
#include "trials/measured_data_parallel.hpp"
#include "trials/measured_fsdp.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using model::Transformer;
using test::kRate;
using test::kRows;
using test::kSeq;
using test::load;
using test::odd_config;
using test::parameters_of;
using test::set_weights;
using test::Training;
using test::weights_of;
using test::with_ranks;

model::Sequences batch_of(int step) { return test::batch_of(odd_config(), step); }

Training train_alone(const train::OptimizerOptions& optimizer, int steps) {
  return test::train_alone(odd_config(), optimizer, steps);
}

// Of rank 0; the others have the same.
Training train_replicated(int count, int steps) {
  Training made;
  with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
    Transformer model(odd_config(), {}, {});
    model::set_weights(model, 1);
    DataParallelStep step(model, ranks, {}, kRows / count, kSeq, communication);
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      load(step, 0, batch_of(i), ranks.rank() * kRows / count, kRows / count);
      step.run(kRate);
      losses.push_back(step.result().loss);
    }
    if (ranks.rank() == 0) made = {weights_of(model), losses};
  });
  return made;
}

TEST(FsdpStep, HasTheBitsOfReplicasHoweverItGathers) {
  constexpr int kSteps = 4;
  for (const int count : {1, 2, 3}) {
    const Training replicas = train_replicated(count, kSteps);
    struct Way {
      Granularity granularity;
      int slots, gradient_slots;
      bool reshard;
      double blocks;  // of a recomputed segment
    };
    for (const Way& way : {Way{Granularity::layer, 2, 2, true, 0}, Way{Granularity::block, 2, 4, true, 0},
                           Way{Granularity::block, 1, 1, true, 1}, Way{Granularity::layer, 3, 1, true, 0.5},
                           Way{Granularity::block, 2, 2, false, 0}, Way{Granularity::block, 2, 4, true, 2}}) {
      with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
        FsdpStepOptions options = fsdp_step_options(way.granularity);
        options.fsdp.gather = {.slots = way.slots, .reshard_after_forward = way.reshard, .poison = true};
        options.fsdp.scatter.slots = way.gradient_slots;
        FsdpStep step(odd_config(), {.recompute = model::segments_of(way.blocks)}, ranks, options, kRows / count, kSeq,
                      {}, communication);
        set_weights(step);
        for (int i = 0; i < kSteps; ++i) {
          load(step, 0, batch_of(i), ranks.rank() * kRows / count, kRows / count);
          step.run(kRate);
          EXPECT_EQ(step.result().loss, replicas.losses[static_cast<std::size_t>(i)]);
        }
        step.check();
        EXPECT_EQ(weights_of(step), replicas.weights) << count << " ranks, " << to_string(way.granularity) << ", "
                                                      << way.slots << " slots, segments of " << way.blocks;
      });
    }
  }
}

TEST(FsdpStep, ClipsByTheNormOfAllShards) {
  const train::OptimizerOptions optimizer{.max_norm = 0.5};
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::block);
    options.optimizer = optimizer;
    FsdpStep step(odd_config(), {}, ranks, options, kRows / 3, kSeq, {}, communication);
    set_weights(step);
    test::ExactSteps exact(odd_config(), optimizer);
    for (int i = 0; i < 10; ++i) {
      load(step, 0, batch_of(i), ranks.rank() * kRows / 3, kRows / 3);
      step.run(kRate);
      SCOPED_TRACE(i);
      exact.expect_step(batch_of(i), step.result(), parameters_of(step));
    }
    step.check();
  });
}

TEST(FsdpStep, WeighsUnevenRowsAndAddsPartsUp) {
  const train::OptimizerOptions optimizer{.max_norm = 100};  // never reached: for the norm
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::layer);
    options.optimizer = optimizer;
    const int rank = ranks.rank();
    const std::int64_t rows = rank == 0 ? 1 : rank == 1 ? 2 : 3, first = rank == 0 ? 0 : rank == 1 ? 1 : 3;
    FsdpStep uneven(odd_config(), {}, ranks, options, rows, kSeq, {}, communication);
    set_weights(uneven);
    options.parts = 2;
    FsdpStep parts(odd_config(), {}, ranks, options, 1, kSeq, {}, communication);
    set_weights(parts);
    test::ExactSteps exact_uneven(odd_config(), optimizer), exact_parts(odd_config(), optimizer);
    for (int i = 0; i < 4; ++i) {
      SCOPED_TRACE(i);
      load(uneven, 0, batch_of(i), first, rows);
      uneven.run(kRate);
      exact_uneven.expect_step(batch_of(i), uneven.result(), parameters_of(uneven));
      for (int part = 0; part < 2; ++part) load(parts, part, batch_of(i), 2 * rank + part, 1);
      parts.run(kRate);
      exact_parts.expect_step(batch_of(i), parts.result(), parameters_of(parts));
    }
  });
}

TEST(FsdpStep, InBf16OnTheWireStaysNear) {
  const Training alone = train_alone({}, 4);
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::block);
    options.fsdp.scatter.wire = DType::bf16;
    options.parts = 3;
    FsdpStep step(odd_config(), {}, ranks, options, 1, kSeq, {}, communication);
    set_weights(step);
    for (int i = 0; i < 4; ++i) {
      for (int part = 0; part < 3; ++part) load(step, part, batch_of(i), 3 * ranks.rank() + part, 1);
      step.run(kRate);
      static_cast<void>(step.result());
    }
    step.check();
    const double off = model::relative_distance(weights_of(step), alone.weights);
    EXPECT_GT(off, 0);
    // As of DataParallelStep's test of the same.
    EXPECT_LT(off, 0.05);
  });
}

// Live bytes of host memory by tag, of all ranks together: those that were logged since the log was cleared.
std::map<std::string, std::int64_t> live_by_tag() {
  std::map<std::string, std::int64_t> live;
  for (const device::MemoryEvent& event : device::MemoryLog::global().events()) live[event.tag] += event.delta;
  return live;
}

TEST(FsdpStep, HoldsTheBytesOfTheFormulaAndNoWholeWeight) {
  for (const int count : {1, 2, 4}) {
    with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
      ranks.barrier();
      if (ranks.rank() == 0) device::MemoryLog::global().clear();
      ranks.barrier();
      FsdpStep step(odd_config(), {}, ranks, fsdp_step_options(Granularity::block), 1, kSeq, {}, communication);
      set_weights(step);
      load(step, 0, batch_of(0), 0, 1);
      step.run(kRate);
      static_cast<void>(step.result());
      ranks.barrier();
      const FsdpBytes bytes = step.bytes();
      const FsdpState formula = fsdp_state(odd_config(), count, kFp32State);
      EXPECT_EQ(static_cast<double>(static_cast<std::int64_t>(bytes.state()) - bytes.padding), formula.rank_bytes);
      std::map<std::string, std::int64_t> live = live_by_tag();
      const auto take = [&live](std::initializer_list<const char*> tags) {
        std::int64_t sum = 0;
        for (const char* tag : tags) {
          EXPECT_TRUE(live.contains(tag)) << tag;
          sum += live[tag];
          live.erase(tag);
        }
        return sum;
      };
      const auto all = [count](auto rank_bytes) { return count * static_cast<std::int64_t>(rank_bytes); };
      EXPECT_EQ(take({"weight shards", "gradient shards", "owned first moments", "owned second moments"}),
                all(bytes.state()));
      EXPECT_EQ(take({"gathered weights", "gradients before they are scattered", "gradients that came"}),
                all(bytes.slots));
      std::int64_t rest = 0;
      for (const auto& [tag, left] : live) rest += left;
      // RoPE's tables, tokens and numbers of a step: not one whole matrix, the smallest of which has 1600 bytes, by
      // rank.
      const std::int64_t tables = 2 * odd_config().context * odd_config().head_dim() / 2 * 4;
      EXPECT_LT(rest, count * (tables + 1600));
      ranks.barrier();
    });
  }
}

TEST(FsdpStep, PeaksNoHigherInAStepThanActivationsDo) {
  const auto peak_of = [](auto& step) {
    load(step, 0, batch_of(0), 0, kRows);
    step.run(kRate);
    static_cast<void>(step.training().result());
    const std::int64_t live = device::MemoryLog::global().live_bytes();
    device::MemoryLog::global().reset_peak();
    step.run(kRate);
    static_cast<void>(step.training().result());
    return device::MemoryLog::global().peak_bytes() - live;
  };
  with_ranks(1, [&](comm::Communicator& ranks, Stream, Stream communication) {
    Transformer model(odd_config(), {}, {});
    DataParallelStep plain(model, ranks, {}, kRows, kSeq, communication);
    FsdpStep sharded(odd_config(), {}, ranks, fsdp_step_options(Granularity::layer), kRows, kSeq, {}, communication);
    EXPECT_EQ(peak_of(sharded), peak_of(plain));
  });
}

TEST(FsdpStep, HoldsSlotsOfItsTwoLargestNeighboursAtLayers) {
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStep step(odd_config(), {}, ranks, fsdp_step_options(Granularity::layer), 1, kSeq, {}, communication);
    // (w1, w3) and the embedding or the LM head, whose 101 rows are one short.
    EXPECT_LE(step.fsdp().gathered().bytes(), (102 * 20 + 100 * 20) * 4 + 2 * 128);
    // A step gathers forward and backward, but the embedding once, and not what is there still: LM head and last w2.
    std::int64_t units = 0;
    for (int unit = 0; unit < static_cast<int>(step.fsdp().parts().units.size()); ++unit) {
      units += step.fsdp().gathered().unit_bytes(unit);
    }
    const std::int64_t saved = (102 * 20 + 102 * 20 + 20 * 50) * 4;
    load(step, 0, batch_of(0), 0, 1);
    step.run(kRate);
    static_cast<void>(step.result());
    EXPECT_EQ(ranks.counters().total(comm::Operation::all_gather, "parameter").payload_bytes,
              static_cast<std::uint64_t>(2 * units - saved));
    EXPECT_EQ(ranks.counters().total(comm::Operation::reduce_scatter, "gradient").payload_bytes,
              static_cast<std::uint64_t>(units));
    step.check();
  });
}

TEST(FsdpStep, StartsAGatherWhenTheLayerTwoBeforeIsDone) {
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::layer);
    options.fsdp.gather.timing = true;
    FsdpStep step(odd_config(), {}, ranks, options, 1, kSeq, {}, communication);
    set_weights(step);
    load(step, 0, batch_of(0), 0, 1);
    step.run(kRate);
    static_cast<void>(step.result());
    const std::vector<GatherTimes> times = step.fsdp().gathered().times();
    const auto units = step.fsdp().parts().units.size();
    ASSERT_EQ(times.size(), 2 * units - 3);
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_LE(times[i].start, times[i].end);
      EXPECT_LE(times[i].end, times[i].first_use);
      EXPECT_GE(times[i].exposed(), Seconds(0));
      if (i >= 2 && i < units) {
        EXPECT_GE(times[i].start, times[i - 2].first_use) << "forward, layer " << i;
      }
    }
  });
}

TEST(FsdpStep, EvaluatesBetweenSteps) {
  Transformer model(odd_config(), {}, {});
  model::set_weights(model, 1);
  const model::Uploaded batch(batch_of(0), {});
  const std::vector<double> expected = model::values_of(model.forward(batch.tokens()).logits, {});
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStepOptions options = fsdp_step_options(Granularity::block);
    options.fsdp.gather.poison = true;
    FsdpStep step(odd_config(), {}, ranks, options, kRows, kSeq, {}, communication);
    set_weights(step);
    EXPECT_EQ(model::values_of(step.evaluate(batch.tokens()).logits, {}), expected);
    load(step, 0, batch_of(0), 0, kRows);
    step.run(0);  // a rate of nothing moves nothing
    static_cast<void>(step.result());
    EXPECT_EQ(model::values_of(step.evaluate(batch.tokens()).logits, {}), expected);
    step.check();
  });
}

TEST(FsdpStep, BeginsWithTheWeightsOfTheSeed) {
  Transformer model(odd_config(), {}, {});
  model::initialise(model.parameters(), 3);
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    FsdpStep step(odd_config(), {}, ranks, fsdp_step_options(Granularity::block), 1, kSeq, {}, communication);
    step.initialise(3);
    EXPECT_EQ(weights_of(step), weights_of(model));
  });
}

TEST(MeasuredFsdp, IsCertifiedAndHasTheLossOfReplicas) {
  train::WorkloadOptions workload{.config = odd_config(), .batch = 2, .seq = kSeq};
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream) {
    const train::Rung& rung = train::find_rung("host");
    const MeasuredFsdp measured =
        measured_fsdp({.step = workload, .sharding = fsdp_step_options(Granularity::block)}, rung, 7);
    EXPECT_FALSE(measured.refusal);
    for (const StepCheck& one : measured.check(ranks, {})) EXPECT_LE(one.error, one.tolerance) << one.name;
    const auto losses_of = [](auto& run) {
      std::vector<double> losses;
      for (int i = 0; i < 3; ++i) {
        run.refresh();
        run.run();
        losses.push_back(run.loss());
      }
      run.step().check();
      return losses;
    };
    const std::shared_ptr<FsdpWorkload> sharded = measured.start(ranks, {});
    EXPECT_EQ(sharded->unit_name(1), "layers.2.attn.q_proj.weight");
    const std::vector<double> losses = losses_of(*sharded);
    DataParallelWorkload replicas({.step = workload}, ranks, {}, 7);
    EXPECT_EQ(losses, losses_of(replicas));
  });
}

TEST(FsdpStep, RefusesARecordedStep) {
  with_ranks(1, [](comm::Communicator& ranks, Stream, Stream communication) {
    EXPECT_TRUE(test::refuses(
        [&] {
          FsdpStep(odd_config(), {.variant = model::Variant::graph}, ranks, fsdp_step_options(Granularity::block), 1,
                   kSeq, {}, communication);
        },
        "recorded step"));
  });
}

}  // namespace
}  // namespace syslab::parallel
