// Updates under the backward pass: a wait that is left out shows in the bits. Races on purpose.
#include <gtest/gtest.h>

#include "tests/parallel/sharded_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::with_ranks;

// Weights of two steps at different rates, communication that late in each, and one of ZeroSync's waits not made.
std::vector<std::vector<double>> weights_after(Sharding sharding, std::optional<test::WaitOf> left_out,
                                               std::chrono::milliseconds late) {
  std::vector<std::vector<double>> weights;
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    DataParallelOptions options;
    test::InterferingObserver observer({.waits = test::all_but(left_out)});
    options.sync.observer = &observer;
    test::ShardedRig rig(ranks, sharding, options, test::kRows / 2, communication, 2, true);
    for (int i = 0; i < 2; ++i) {
      test::sleep_in(communication, late);
      rig.load(i, 0, ranks.rank() * test::kRows / 2, test::kRows / 2);
      rig.step->run(i == 0 ? 1e-3 : 1e-2);
    }
    device::synchronize(communication);
    rig.zero->gather_weights({});
    const auto mine = rig.weights();
    if (ranks.rank() == 0) weights = mine;
  });
  return weights;
}

TEST(InTurnFaults, NoStepBringsItsNumbersBeforeTheLastOnesAreRead) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    const auto right = weights_after(sharding, {}, std::chrono::milliseconds(0));
    EXPECT_EQ(weights_after(sharding, {}, std::chrono::milliseconds(20)), right);
    bool shown = false;
    for (auto late = std::chrono::milliseconds(1); late < std::chrono::seconds(1) && !shown; late *= 2) {
      shown = weights_after(sharding, test::WaitOf{Wait::gradients_reduced}, late) != right;
    }
    EXPECT_TRUE(shown) << to_string(sharding);
  }
}

}  // namespace
}  // namespace syslab::parallel
