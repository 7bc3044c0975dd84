// The transformer on many ranks: the weights of one process on the whole batch, the same NaN everywhere, and the same
// bytes as the formula.
#include "parallel/ddp/data_parallel_step.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <string>

#include "model/initialise.hpp"
#include "parallel/replicas.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/step_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using model::Plane;
using model::Transformer;
using test::kRate;
using test::kRows;
using test::kSeq;
using test::load;
using test::parameters_of;
using test::small_config;
using test::Training;
using test::weights_of;
using test::with_ranks;

model::Sequences batch_of(int step) { return test::batch_of(small_config(), step); }

Training train_alone(const train::OptimizerOptions& optimizer, int steps) {
  return test::train_alone(small_config(), optimizer, steps);
}

TEST(DataParallelStep, StaysWithOneProcessForTenSteps) {
  const train::OptimizerOptions optimizer{.max_norm = 0.5};
  for (const StrategyInfo& info : strategies()) {
    with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
      Transformer model(small_config(), {}, {});
      model::set_weights(model, 1 + static_cast<std::uint64_t>(ranks.rank()));  // ranks begin differently
      DataParallelOptions options{.optimizer = optimizer, .sync = {.strategy = info.strategy, .bucket_mb = {0.01}}};
      options.sync.schedule = BucketSchedule({5, 12, model.parameters().layout().size()});
      DataParallelStep step(model, ranks, options, kRows / 2, kSeq, communication);
      EXPECT_EQ(step.share(), 0.5);
      test::ExactSteps exact(small_config(), optimizer);
      for (int i = 0; i < 10; ++i) {
        load(step, 0, batch_of(i), ranks.rank() * kRows / 2, kRows / 2);
        step.run(kRate);
        SCOPED_TRACE(std::string(to_string(info.strategy)) + ", step " + std::to_string(i));
        exact.expect_step(batch_of(i), step.result(), parameters_of(model));
      }
      step.check();
    });
  }
}

TEST(DataParallelStep, WeighsUnevenRowsByTheirNumberAndPartsAlike) {
  const train::OptimizerOptions optimizer{.max_norm = 100};  // never reached: for the norm
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    Transformer model(small_config(), {}, {});
    model::set_weights(model, 1);
    const int rank = ranks.rank();
    const std::int64_t rows = rank == 0 ? 1 : rank == 1 ? 2 : 3, first = rank == 0 ? 0 : rank == 1 ? 1 : 3;
    DataParallelStep uneven(model, ranks, {.optimizer = optimizer}, rows, kSeq, communication);
    EXPECT_DOUBLE_EQ(uneven.share(), static_cast<double>(rows) / kRows);
    test::ExactSteps exact(small_config(), optimizer);
    for (int i = 0; i < 2; ++i) {
      SCOPED_TRACE(i);
      load(uneven, 0, batch_of(i), first, rows);
      uneven.run(kRate);
      exact.expect_step(batch_of(i), uneven.result(), parameters_of(model));
    }
    uneven.check();
    const std::uint64_t sent = ranks.counters().total(comm::Operation::all_reduce, "gradient").payload_bytes;
    DataParallelStep parts(model, ranks, {.optimizer = optimizer, .parts = 2}, 1, kSeq, communication);
    parts.training().optimizer().set_steps(2);
    for (int i = 2; i < 4; ++i) {
      SCOPED_TRACE(i);
      for (int part = 0; part < 2; ++part) load(parts, part, batch_of(i), 2 * rank + part, 1);
      parts.run(kRate);
      exact.expect_step(batch_of(i), parts.result(), parameters_of(model));
    }
    parts.check();  // parts before the last communicate nothing
    EXPECT_EQ(ranks.counters().total(comm::Operation::all_reduce, "gradient").payload_bytes, 2 * sent);
  });
}

TEST(DataParallelStep, InBf16OnTheWireStaysNearAndEqualOnAllRanks) {
  const Training alone = train_alone({}, 4);
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    Transformer model(small_config(), {}, {});
    model::set_weights(model, 1);
    DataParallelStep step(model, ranks, {.sync = {.bucket_mb = {0.01}, .wire = DType::bf16}}, kRows / 2, kSeq,
                          communication);
    for (int i = 0; i < 4; ++i) {
      load(step, 0, batch_of(i), ranks.rank() * kRows / 2, kRows / 2);
      step.run(kRate);
      static_cast<void>(step.result());
    }
    step.check();
    const double off = model::relative_distance(weights_of(model), alone.weights);
    EXPECT_GT(off, 0);
    // Four steps of Adam move a weight of size 1/√32 by 4 · rate at most; rounding to 2^-9 may turn a few of them
    // around.
    EXPECT_LT(off, 0.05);
  });
}

TEST(DataParallelStep, OfOneRankIsThePlainStep) {
  const Training alone = train_alone({}, 2);
  with_ranks(1, [&](comm::Communicator& ranks, Stream, Stream communication) {
    Transformer model(small_config(), {}, {});
    model::set_weights(model, 1);
    DataParallelStep step(model, ranks, {}, kRows, kSeq, communication);
    for (int i = 0; i < 2; ++i) {
      load(step, 0, batch_of(i), 0, kRows);
      step.run(kRate);
      EXPECT_EQ(step.result().loss, alone.losses[static_cast<std::size_t>(i)]);
    }
    step.check();
    EXPECT_EQ(weights_of(model), alone.weights);
    EXPECT_EQ(ranks.counters().total(comm::Operation::all_reduce).calls, 0);
  });
}

TEST(DataParallelStep, SkipsOnAllRanksWhatIsNoNumberOnOne) {
  with_ranks(3, [](comm::Communicator& ranks, Stream, Stream communication) {
    Transformer model(small_config(), {}, {});
    model::set_weights(model, 1);
    DataParallelStep step(model, ranks, {.optimizer = {.skip_non_finite = true}, .sync = {.bucket_mb = {0.01}}}, 2,
                          kSeq, communication);
    const auto run = [&](int number) {
      load(step, 0, batch_of(number), 2 * ranks.rank(), 2);
      step.run(kRate);
      return step.result();
    };
    EXPECT_FALSE(run(0).skipped);
    const std::vector<double> before = weights_of(model);
    float& weight = *model.parameters().view(Plane::weight, model.parameters().layout().ln_final()).as<float>();
    const float kept = weight;
    if (ranks.rank() == 1) weight = std::numeric_limits<float>::quiet_NaN();
    const DataParallelResult wrong = run(1);
    EXPECT_TRUE(wrong.skipped);
    EXPECT_TRUE(std::isnan(wrong.loss) && std::isnan(wrong.losses[1]));
    EXPECT_TRUE(std::isfinite(wrong.losses[0]) && std::isfinite(wrong.losses[2]));
    weight = kept;
    EXPECT_EQ(weights_of(model), before);
    EXPECT_FALSE(run(2).skipped);
    step.check();
  });
}

TEST(DataParallelStep, TellsTheOtherRanksWhatEndedIt) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    const device::OwnedStream communication = device::OwnedStream::queue();
    Transformer model(small_config(), {}, {});
    model::set_weights(model, 1);
    DataParallelStep step(model, ranks, {}, kRows / 2, kSeq, communication);
    load(step, 0, batch_of(0), 0, kRows / 2);
    step.begin(kRate);
    if (ranks.rank() == 0) step.forward(0);
    step.backward(0);  // of what rank 1 has not computed
    step.update();
  });
  EXPECT_TRUE(test::threw(thrown[0], "rank 1", "bad optional access"));
  EXPECT_TRUE(test::threw(thrown[1], "bad optional access"));
}

TEST(DataParallelStep, FindsReplicasThatDrifted) {
  const auto thrown = comm::try_local(3, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    std::vector<float> weights(100, 1);
    make_replicas(ranks, {weights.data(), DType::f32, {100}}, {});
    if (ranks.rank() == 2) weights[99] = std::nextafter(1.0F, 2.0F);
    require_replicas(ranks, {weights.data(), DType::f32, {100}}, {});
  });
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, "rank 0", "unlike rank 2"));
}

TEST(DataParallelStep, RefusesARecordedStepAndRanksThatTakeOtherSteps) {
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    Transformer model(small_config(), {}, {});
    const DataParallelStep step(model, ranks, {.parts = 1 + ranks.rank()}, 1, kSeq, {});
  });
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, "\"1 parts\"", "\"2 parts\""));
  const auto decays = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [](comm::Communicator& ranks) {
    Transformer model(small_config(), {}, {});
    train::OptimizerOptions optimizer;
    optimizer.adamw.weight_decay = 0.25 * ranks.rank();
    const DataParallelStep step(model, ranks, {.optimizer = optimizer}, 1, kSeq, {});
  });
  for (const std::exception_ptr& error : decays) EXPECT_TRUE(test::threw(error, "decay 0x0p+0", "decay 0x1p-2"));
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream) {
    Transformer model(small_config(), {.variant = model::Variant::graph}, {});
    EXPECT_TRUE(test::refuses([&] { DataParallelStep(model, ranks, {}, 1, kSeq, {}); }, "recorded step"));
  });
}

}  // namespace
}  // namespace syslab::parallel
