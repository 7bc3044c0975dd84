// One gated layer on many devices: the hand-out's answers, their limits, and a layer that is computed.
#include "paper/layer_costs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "paper/layer_walk.hpp"
#include "tests/paper/machine.hpp"

namespace syslab::parallel {
namespace {

constexpr GatedLayer kLayer{.tokens = 65536, .d_model = 4096, .d_ff = 11008};
constexpr double kB = 65536, kD = 4096, kF = 11008, kC = 4.6e14, kW = 1.8e11;

double seconds(const PassCosts& costs) { return communication_time(costs, kMachine, Axes::overlapped).count(); }

TEST(LayerCosts, EveryStrategyDividesSixAndTwelveBDF) {
  for (const std::int64_t n : {1, 2, 8, 64}) {
    const double share = kB * kD * kF / static_cast<double>(n);
    for (const PassCosts& forward :
         {data_parallel_costs(kLayer, n, Pass::forward), sharded_costs(kLayer, {n, 1}, Pass::forward),
          sharded_costs(kLayer, {1, n}, Pass::forward)}) {
      EXPECT_DOUBLE_EQ(forward.flops, 6 * share);
    }
    for (const PassCosts& backward :
         {data_parallel_costs(kLayer, n, Pass::backward), sharded_costs(kLayer, {n, 1}, Pass::backward),
          sharded_costs(kLayer, {1, n}, Pass::backward)}) {
      EXPECT_DOUBLE_EQ(backward.flops, 12 * share);
    }
  }
}

TEST(LayerCosts, DataParallelReducesGradientsAndSendsNothingInForward) {
  for (const double n : {1.0, 2.0, 8.0, 64.0}) {
    const auto ranks = static_cast<std::int64_t>(n);
    EXPECT_EQ(seconds(data_parallel_costs(kLayer, ranks, Pass::forward)), 0);
    EXPECT_DOUBLE_EQ(seconds(data_parallel_costs(kLayer, ranks, Pass::backward)), 12 * kD * kF * (n - 1) / (n * kW));
  }
}

TEST(LayerCosts, FsdpGathersInForwardAndGathersAndScattersInBackward) {
  for (const double n : {1.0, 2.0, 8.0, 64.0}) {
    const Grid grid{static_cast<std::int64_t>(n), 1};
    EXPECT_DOUBLE_EQ(seconds(sharded_costs(kLayer, grid, Pass::forward)), 6 * kD * kF * (n - 1) / (n * kW));
    EXPECT_DOUBLE_EQ(seconds(sharded_costs(kLayer, grid, Pass::backward)), 12 * kD * kF * (n - 1) / (n * kW));
  }
}

TEST(LayerCosts, TensorParallelReducesActivationsOnceAPass) {
  for (const double n : {1.0, 2.0, 8.0, 64.0}) {
    const Grid grid{1, static_cast<std::int64_t>(n)};
    EXPECT_DOUBLE_EQ(seconds(sharded_costs(kLayer, grid, Pass::forward)), 4 * kB * kD * (n - 1) / (n * kW));
    EXPECT_DOUBLE_EQ(seconds(sharded_costs(kLayer, grid, Pass::backward)), 4 * kB * kD * (n - 1) / (n * kW));
  }
}

TEST(LayerCosts, BothAxesOfAGridSendTheirShares) {
  const PassCosts costs = sharded_costs(kLayer, {16, 4}, Pass::forward);
  EXPECT_DOUBLE_EQ(costs.flops, 6 * kB * kD * kF / 64);
  EXPECT_DOUBLE_EQ(costs.data_sent_bytes / kW, 6 * kD * kF * 15 / (64 * kW));
  EXPECT_DOUBLE_EQ(costs.tensor_sent_bytes / kW, 4 * kB * kD * 3 / (64 * kW));
  EXPECT_DOUBLE_EQ(communication_time(costs, kMachine, Axes::serial).count(),
                   (costs.data_sent_bytes + costs.tensor_sent_bytes) / kW);
  EXPECT_DOUBLE_EQ(communication_time(costs, kMachine, Axes::overlapped).count(),
                   std::max(costs.data_sent_bytes, costs.tensor_sent_bytes) / kW);
}

TEST(LayerCosts, LimitsAreTheHandOutsFormulas) {
  EXPECT_EQ(data_parallel_limit(kLayer, kMachine, Pass::forward), std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(data_parallel_limit(kLayer, kMachine, Pass::backward), 1 + kB * kW / kC);
  EXPECT_DOUBLE_EQ(fsdp_limit(kLayer, kMachine), 1 + kB * kW / kC);
  EXPECT_DOUBLE_EQ(tensor_parallel_limit(kLayer, kMachine, Pass::forward), 1 + 1.5 * kF * kW / kC);
  EXPECT_DOUBLE_EQ(tensor_parallel_limit(kLayer, kMachine, Pass::backward), 1 + 3 * kF * kW / kC);
  EXPECT_NEAR(fsdp_limit(kLayer, kMachine), 26.64, 0.005);
  EXPECT_NEAR(tensor_parallel_limit(kLayer, kMachine, Pass::forward), 7.461, 0.0005);
}

TEST(LayerCosts, TheLimitOfBothAxesIsTheirProductWhenTheyOverlap) {
  const SplitLimit limit = largest_split(kLayer, kMachine, Pass::forward, Axes::overlapped);
  EXPECT_DOUBLE_EQ(limit.ranks, (1 + kB * kW / kC) * (1 + 1.5 * kF * kW / kC));
  EXPECT_NEAR(limit.ranks, 198.8, 0.05);
}

TEST(LayerCosts, TheLimitOfBothAxesInTurnIsTheHandOutsSquare) {
  const double k = 3 * kB * kF * kW / kC;
  const SplitLimit limit = largest_split(kLayer, kMachine, Pass::forward, Axes::serial);
  EXPECT_NEAR(limit.ranks, std::pow(k + 3 * kF + 2 * kB, 2) / (24 * kB * kF), 1e-9 * limit.ranks);
  EXPECT_NEAR(limit.data, (k + 3 * kF + 2 * kB) / (6 * kF), 1e-9 * limit.data);
  EXPECT_NEAR(limit.tensor, (k + 3 * kF + 2 * kB) / (4 * kB), 1e-9 * limit.tensor);
  EXPECT_DOUBLE_EQ(limit.data * limit.tensor, limit.ranks);
}

// Links that carry any amount: a quarter of what overlapping axes reach.
TEST(LayerCosts, AxesInTurnReachAQuarterOverAFastLink) {
  const Machine fast{.flops_per_second = 1, .link_bytes_per_second = 1e9};
  const double overlapped = largest_split(kLayer, fast, Pass::forward, Axes::overlapped).ranks;
  EXPECT_NEAR(largest_split(kLayer, fast, Pass::forward, Axes::serial).ranks / overlapped, 0.25, 1e-6);
}

TEST(LayerCosts, OneAxisAloneIsBestWhereTheOtherNeverPays) {
  // Few tokens: dividing them, one must send all weights. F/C so small that α + αβ < β.
  const SplitLimit tensor =
      largest_split({.tokens = 8, .d_model = 64, .d_ff = 60000}, kMachine, Pass::forward, Axes::serial);
  EXPECT_EQ(tensor.data, 1);
  EXPECT_DOUBLE_EQ(tensor.ranks,
                   tensor_parallel_limit({.tokens = 8, .d_model = 64, .d_ff = 60000}, kMachine, Pass::forward));
  const GatedLayer narrow{.tokens = 1'000'000, .d_model = 64, .d_ff = 8};
  const SplitLimit data = largest_split(narrow, kMachine, Pass::forward, Axes::serial);
  EXPECT_EQ(data.tensor, 1);
  EXPECT_DOUBLE_EQ(data.ranks, fsdp_limit(narrow, kMachine));
}

TEST(LayerCosts, WholeGridsAreFoundByTrying) {
  EXPECT_EQ(largest_grid(kLayer, kMachine, Pass::forward, Axes::overlapped, 1000), (Grid{26, 7}));
  const Grid serial = largest_grid(kLayer, kMachine, Pass::forward, Axes::serial, 1000);
  EXPECT_LE(serial.ranks(), largest_split(kLayer, kMachine, Pass::forward, Axes::serial).ranks);
  // α = 25.64, β = 6.461: 13/α + 3/β = 0.971, but 14/α + 3/β = 1.010 and 10/α + 4/β = 1.009.
  EXPECT_EQ(serial, (Grid{14, 4}));
  EXPECT_EQ(largest_grid(kLayer, kMachine, Pass::forward, Axes::overlapped, 1), (Grid{1, 7}));
}

TEST(LayerCosts, AtTheLimitComputingTakesAsLongAsCommunicating) {
  // α = 15 and β = 7 exactly.
  const GatedLayer layer{.tokens = 15, .d_model = 10, .d_ff = 14};
  const Machine machine{.flops_per_second = 3, .link_bytes_per_second = 3};
  EXPECT_TRUE(is_compute_bound(sharded_costs(layer, {16, 1}, Pass::forward), machine, Axes::serial));
  EXPECT_FALSE(is_compute_bound(sharded_costs(layer, {17, 1}, Pass::forward), machine, Axes::serial));
  EXPECT_TRUE(is_compute_bound(sharded_costs(layer, {16, 22}, Pass::forward), machine, Axes::overlapped));
  EXPECT_FALSE(is_compute_bound(sharded_costs(layer, {16, 23}, Pass::forward), machine, Axes::overlapped));
  EXPECT_FALSE(is_compute_bound(sharded_costs(layer, {16, 22}, Pass::forward), machine, Axes::serial));
}

TEST(LayerCosts, ManyRanksHaveNothingToComputeAndTheSameToSend) {
  const std::int64_t many = 1'000'000'000'000;
  const PassCosts data = data_parallel_costs(kLayer, many, Pass::backward);
  EXPECT_NEAR(data.flops / (12 * kB * kD * kF), 0, 1e-11);
  EXPECT_NEAR(data.data_sent_bytes / (12 * kD * kF), 1, 1e-11);
  const PassCosts tensor = sharded_costs(kLayer, {1, many}, Pass::forward);
  EXPECT_NEAR(tensor.tensor_sent_bytes / (4 * kB * kD), 1, 1e-11);
}

TEST(LayerCosts, RefusesWhatCannotBe) {
  EXPECT_THROW(data_parallel_costs({.tokens = 0, .d_model = 1, .d_ff = 1}, 1, Pass::forward), Error);
  EXPECT_THROW(data_parallel_costs(kLayer, 0, Pass::forward), Error);
  EXPECT_THROW(sharded_costs(kLayer, {1, 0}, Pass::forward), Error);
  EXPECT_THROW(validate(Machine{.flops_per_second = 0, .link_bytes_per_second = 1}), Error);
  EXPECT_THROW(validate(Machine{.flops_per_second = 1, .link_bytes_per_second = std::nan("")}), Error);
}

void expect_costs(const PassCosts& found, const PassCosts& expected) {
  EXPECT_EQ(found.flops, expected.flops);
  EXPECT_EQ(found.data_sent_bytes, expected.data_sent_bytes);
  EXPECT_EQ(found.tensor_sent_bytes, expected.tensor_sent_bytes);
}

TEST(LayerWalk, GivesTheWholeLayersGradientsAtTheCostsOfTheFormulas) {
  for (const Grid grid : {Grid{1, 1}, Grid{2, 1}, Grid{1, 2}, Grid{4, 2}, Grid{3, 5}, Grid{8, 1}, Grid{1, 8}}) {
    const GatedLayer layer = walkable_layer(grid);
    const LayerWalk walk = walk_layer(layer, grid, Scheme::sharded);
    EXPECT_EQ(walk.wrong, 0) << grid.data << " × " << grid.tensor;
    EXPECT_EQ(walk.compared, layer.tokens * layer.d_model + 16);
    expect_costs(walk.forward, sharded_costs(layer, grid, Pass::forward));
    expect_costs(walk.backward, sharded_costs(layer, grid, Pass::backward));
  }
}

TEST(LayerWalk, DataParallelAgreesAsWell) {
  for (const std::int64_t n : {1, 2, 3, 8}) {
    const GatedLayer layer = walkable_layer({n, 1});
    const LayerWalk walk = walk_layer(layer, {n, 1}, Scheme::data_parallel);
    EXPECT_EQ(walk.wrong, 0) << n;
    expect_costs(walk.forward, data_parallel_costs(layer, n, Pass::forward));
    expect_costs(walk.backward, data_parallel_costs(layer, n, Pass::backward));
  }
}

TEST(LayerWalk, RefusesALayerThatDoesNotDivide) {
  EXPECT_THROW(walk_layer({.tokens = 1, .d_model = 2, .d_ff = 4}, {2, 1}, Scheme::sharded), Error);
  EXPECT_THROW(walk_layer({.tokens = 4, .d_model = 2, .d_ff = 1}, {1, 2}, Scheme::sharded), Error);
  EXPECT_THROW(walk_layer({.tokens = 4, .d_model = 2, .d_ff = 4}, {2, 2}, Scheme::data_parallel), Error);
}

}  // namespace
}  // namespace syslab::parallel
