// What experiments are given: measured times that all ranks share, a schedule computed from them, a step that is
// checked.
#include "trials/measured_data_parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "core/error.hpp"
#include "device/queue.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "trials/measured_times.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::with_ranks;

DataParallelWorkloadOptions small_workload(Strategy strategy) {
  DataParallelWorkloadOptions options;
  options.step.config = model::tiny_config();
  options.step.config.d_model = 32;
  options.step.batch = 2;
  options.step.seq = 8;
  options.sync.strategy = strategy;
  return options;
}

TEST(MeasuredTimes, AreTheSlowestRanksOnAllRanks) {
  std::mutex mutex;
  std::vector<std::vector<TransferPoint>> curves;
  std::vector<std::vector<Seconds>> ready;
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    const TransferCurve curve = measure_curve(ranks, DType::f32, curve_sizes(100'000), communication);
    model::Transformer model(small_workload(Strategy::naive).step.config, {}, {});
    model::set_weights(model);
    const std::vector<Seconds> agreed = agree_on_ready(ranks, measure_ready(model, 2, 8, 3));
    const std::lock_guard lock(mutex);
    curves.push_back(curve.points());
    ready.push_back(agreed);
  });
  EXPECT_EQ(ready[0], ready[1]);
  EXPECT_EQ(ready[0].size(), 21);  // two layers of nine, and three
  EXPECT_TRUE(std::ranges::is_sorted(ready[0]));
  EXPECT_GT(ready[0].front(), Seconds(0));
  ASSERT_EQ(curves[0].size(), 5);  // 1, 4, 16 and 64 KiB, and the whole
  for (std::size_t i = 0; i < curves[0].size(); ++i) {
    EXPECT_EQ(curves[0][i].bytes, curves[1][i].bytes);
    EXPECT_EQ(curves[0][i].time, curves[1][i].time);
  }
  EXPECT_EQ(curves[0].back().bytes, 100'000);
}

// A rank whose second operation fails while its first one is under way.
class FailsOnce final : public comm::Communicator {
 public:
  explicit FailsOnce(std::shared_future<void> until) : Communicator(0, 2, {}), until_(std::move(until)) {}
  std::string_view backend() const override { return "fails"; }

 protected:
  void queue(std::span<const comm::Call> calls) override {
    if (calls[0].signature.number > 1) throw Error(ErrorKind::comm, "the link is gone");
    device::enqueue(calls[0].stream, [call = calls[0], until = until_] {
      until.wait();
      std::memset(call.out, 0, call.signature.bytes());
    });
  }
  void queue_alone(const comm::Call&) override {}
  void wait_until_done(std::uint64_t) override {}
  std::vector<std::string> exchange_now(const comm::Call&, std::string_view) override { return {}; }
  void spread(std::string_view) noexcept override {}

 private:
  std::shared_future<void> until_;
};

TEST(MeasuredTimes, KeepTheirBufferWhileAnOperationUsesIt) {
  const device::OwnedStream communication = device::OwnedStream::queue();
  std::promise<void> release;
  FailsOnce ranks(release.get_future().share());
  std::atomic<bool> over = false;
  std::thread measuring([&] {
    EXPECT_THROW(measure_curve(ranks, DType::f32, curve_sizes(4096), communication), Error);
    over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(over) << "the buffer is gone under an operation";
  release.set_value();
  measuring.join();
}

TEST(MeasuredDataParallel, PlansFromWhatItMeasuresAndIsCheckedAtTheEnd) {
  const DataParallelWorkloadOptions options = small_workload(Strategy::planned);
  const MeasuredDataParallel measured = measured_data_parallel(options, train::find_rung("host"), 3);
  EXPECT_EQ(measured.refusal, std::nullopt);
  EXPECT_EQ(measured.gradient_bytes, 4 * measured.parameters);
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream) {
    for (const StepCheck& distance : measured.check(ranks, {})) {
      EXPECT_LE(distance.error, distance.tolerance) << distance.message;
    }
    const auto run = measured.start(ranks, {});
    ASSERT_TRUE(run->forecast());
    EXPECT_EQ(run->forecast()->schedule, run->step().sync().schedule());
    EXPECT_GE(run->forecast()->best_end, run->forecast()->bound);
    std::vector<double> losses;
    for (int i = 0; i < 2; ++i) {
      run->refresh();
      run->forward();
      run->backward();
      run->update();
      losses.push_back(run->loss());
    }
    EXPECT_EQ(ranks.exchange(std::to_string(losses[1]))[0], ranks.exchange(std::to_string(losses[1]))[1]);
    run->step().check();
  });
}

// Plans, forecasts, and the bytes that are told and checked at the end are those of gradients as they travel.
TEST(MeasuredDataParallel, GradientsInHalfPrecisionAreHalfTheBytesThroughout) {
  for (const DType wire : {DType::bf16, DType::f16}) {
    DataParallelWorkloadOptions options = small_workload(Strategy::planned);
    options.sync.wire = wire;
    options.sync.timing = true;
    const MeasuredDataParallel measured = measured_data_parallel(options, train::find_rung("host"), 3);
    EXPECT_EQ(measured.gradient_bytes, 2 * measured.parameters);
    with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream) {
      static_cast<void>(measured.check(ranks, {}));
      const auto run = measured.start(ranks, {});
      run->refresh();
      run->run();
      EXPECT_TRUE(std::isfinite(run->loss()));
      run->step().check();
      double sent = 0, planned = 0;
      for (const BucketTimes& one : run->step().sync().timeline().buckets) sent += static_cast<double>(one.bytes);
      for (const BucketTimes& one : run->forecast()->timeline.buckets) planned += static_cast<double>(one.bytes);
      EXPECT_EQ(planned, sent);
      EXPECT_GE(sent, measured.gradient_bytes);
      EXPECT_LT(sent, 1.5 * measured.gradient_bytes) << "padding";
    });
  }
}

TEST(MeasuredDataParallel, WithoutCommunicationIsTheSameStepOfEachRankAlone) {
  DataParallelWorkloadOptions options = small_workload(Strategy::overlap);
  options.communicates = false;
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream) {
    DataParallelWorkload run(options, ranks, {}, 3);
    run.refresh();
    run.run();
    EXPECT_GT(run.loss(), 0);
    EXPECT_EQ(ranks.counters().total().calls, 0);
    // Ranks learn from rows of their own.
    const std::vector<std::string> losses = ranks.exchange(std::to_string(run.loss()));
    EXPECT_NE(losses[0], losses[1]);
  });
}

// Weights are on their way when the last step has been taken: who ends then waits for a stream that is still there.
TEST(MeasuredDataParallel, EndsWhileNewWeightsAreOnTheirWay) {
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::zero1, Sharding::zero2}) {
    DataParallelWorkloadOptions options = small_workload(Strategy::bucketed);
    options.sharding = sharding;
    with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream) {
      for (int run = 0; run < 8; ++run) {
        DataParallelWorkload workload(options, ranks, {}, 3);
        workload.refresh();
        workload.run();
      }
    });
  }
}

TEST(MeasuredDataParallel, UpdatesFlatSlicesInTurnAndNoOthers) {
  DataParallelWorkloadOptions options = small_workload(Strategy::bucketed);
  options.in_turn = true;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer}) {
    options.sharding = sharding;
    const auto refusal = measured_data_parallel(options, train::find_rung("host"), 3).refusal;
    EXPECT_NE(refusal.value_or("").find("in turn are of zero1 and zero2"), std::string::npos) << to_string(sharding);
    EXPECT_TRUE(refusal.value_or("").ends_with(": take updates=at_end")) << to_string(sharding);
  }
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    options.sharding = sharding;
    for (const std::optional<DType> wire : {std::optional<DType>(), std::optional(DType::f16)}) {
      options.sync.wire = wire;
      const MeasuredDataParallel measured = measured_data_parallel(options, train::find_rung("host"), 3);
      EXPECT_EQ(measured.refusal, std::nullopt);
      for (const int count : {1, 2}) {
        with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream) {
          static_cast<void>(measured.check(ranks, {}));
          const auto run = measured.start(ranks, {});
          for (int step = 0; step < 2; ++step) {
            run->refresh();
            run->run();
          }
          EXPECT_TRUE(std::isfinite(run->loss()));
          run->step().check();
        });
      }
    }
  }
}

TEST(MeasuredDataParallel, NeedsAnUpdateToReduceFor) {
  DataParallelWorkloadOptions options = small_workload(Strategy::naive);
  options.step.mode = train::Mode::forward;
  const auto refusal = measured_data_parallel(options, train::find_rung("host"), 3).refusal;
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("mode=train"), std::string::npos);
}

// By the formula of the step's traffic, of what products read two bytes an element.
TEST(MeasuredDataParallel, TellsTheBytesOfNewWeightsAsTheyTravel) {
  DataParallelWorkloadOptions options;
  options.step.config = model::tiny_config();
  options.step.mode = train::Mode::train;
  const train::Rung& rung = train::find_rung("host");
  options.step.model.variant = rung.variant;
  double read_in_full = 0, all = 0;
  const model::ParameterLayout layout(options.step.config);
  for (const model::ParameterInfo& one : layout.infos()) {
    all += static_cast<double>(one.shape.elements());
    if (one.kind != model::ParameterKind::linear) read_in_full += static_cast<double>(one.shape.elements());
  }
  const auto bytes = [&](Sharding sharding, model::Precision precision) {
    options.sharding = sharding;
    options.step.model.precision = precision;
    return measured_data_parallel(options, rung, 1).weight_bytes;
  };
  EXPECT_EQ(bytes(Sharding::none, model::Precision::bf16_amp), 0);
  EXPECT_EQ(bytes(Sharding::optimizer, model::Precision::bf16_amp), 4 * all);
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    EXPECT_EQ(bytes(sharding, model::Precision::fp32), 4 * all);
    EXPECT_EQ(bytes(sharding, model::Precision::bf16_amp), 2 * all + 2 * read_in_full);
  }
}

}  // namespace
}  // namespace syslab::parallel
