// Gradients at a pace: summed right in any buckets, no faster than their pace, and forecast by the closed formula.
#include "trials/paced_gradients.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "core/error.hpp"
#include "device/stream.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::parallel {
namespace {

using test::with_ranks;

constexpr AffineTransfer kLaw{Seconds(20e-6), 1e9};

TEST(PacedGradients, AreSummedRightInAnyBuckets) {
  for (const int size : {1, 2, 3}) {
    for (const std::int64_t limit : {1, 4'096, 10'000, 1 << 20}) {
      with_ranks(size, [&](comm::Communicator& ranks, device::Stream compute, device::Stream communication) {
        PacedGradients step(ranks, {.tensors = 10, .tensor_bytes = 4'096, .bucket_bytes = limit}, kLaw, communication);
        for (int repeat = 0; repeat < 2; ++repeat) {
          step.refresh();
          step.run(compute);
          device::synchronize(compute);
          EXPECT_EQ(step.error(), 0) << step.what();
        }
        const int buckets = limit < 8'192 ? 10 : limit == 10'000 ? 5 : 1;
        EXPECT_EQ(step.sync().schedule().size(), buckets);
        EXPECT_EQ(step.bucket_bytes(), 40'960.0 / buckets);
        step.sync().check_bytes();
        step.refresh();
        EXPECT_EQ(step.error() > 0, size > 1) << "nothing was summed yet";
      });
    }
  }
}

// From the plain stream, whose marks hold the host's time: that of a queue begins when its thread comes to it.
TEST(PacedGradients, BecomeFinalNoFasterThanTheirPace) {
  with_ranks(2, [](comm::Communicator& ranks, device::Stream, device::Stream communication) {
    // 40,960 bytes at 1 GB/s take 41 µs; a thousand times that.
    PacedGradients step(ranks, {.tensors = 10, .tensor_bytes = 4'096, .bucket_bytes = 4'096, .pace = 1000}, kLaw,
                        communication);
    step.refresh();
    step.run({});
    const BucketTimeline timeline = step.sync().timeline();
    ASSERT_EQ(timeline.buckets.size(), 10U);
    for (std::size_t i = 0; i < timeline.buckets.size(); ++i) {
      EXPECT_GE(timeline.buckets[i].ready.count(), 4.096e-3 * static_cast<double>(i + 1));
    }
  });
}

TEST(PacedGradients, AreForecastByTheFormulaOfTheHandOut) {
  with_ranks(1, [](comm::Communicator& ranks, device::Stream, device::Stream communication) {
    const PacedOptions options{.tensors = 100, .tensor_bytes = 10'000, .bucket_bytes = 50'000};
    const PacedGradients step(ranks, options, kLaw, communication);
    // s/(n·w) + n·o with s = 1 MB, n = 20, w = 1 GB/s and o = 20 µs.
    EXPECT_NEAR(step.forecast().count(), 1e-3 / 20 + 20 * 20e-6, 1e-12);
    EXPECT_NEAR(best_bucket_bytes(step.uniform()), std::sqrt(1e6 * 1e9 * 20e-6), 1e-6);
  });
}

TEST(PacedGradients, RefuseWhatMakesNone) {
  with_ranks(1, [](comm::Communicator& ranks, device::Stream, device::Stream communication) {
    for (const PacedOptions& wrong :
         {PacedOptions{.tensors = 0}, PacedOptions{.tensor_bytes = 3}, PacedOptions{.bucket_bytes = 0},
          PacedOptions{.pace = 0}, PacedOptions{.pace = NAN}, PacedOptions{.tensors = std::int64_t{1} << 50}}) {
      EXPECT_THROW(PacedGradients(ranks, wrong, kLaw, communication), Error);
      EXPECT_THROW(require_gradients(wrong), Error) << "before there are ranks";
    }
  });
}

}  // namespace
}  // namespace syslab::parallel
