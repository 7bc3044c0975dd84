// Laws of the calculators: what the formulas say is what a count, a walk or a search finds.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "paper/block_memory.hpp"
#include "paper/layer_walk.hpp"
#include "paper/mesh_batch.hpp"
#include "paper/ring_costs.hpp"
#include "paper/ring_walk.hpp"
#include "tests/laws/expect_law.hpp"

namespace syslab::parallel {
namespace {

using property::drawn_size;
using property::expect_law;

GatedLayer drawn_layer(const char* which, int most) {
  return {.tokens = drawn_size("tokens", 1, most),
          .d_model = drawn_size("d_model", 1, most),
          .d_ff = drawn_size(which, 1, most),
          .element_bytes = *rc::gen::element(1, 2, 4).as("bytes an element")};
}

// Rates whose quotient runs from far below to far above the sizes that are drawn.
Machine drawn_machine() {
  return {.flops_per_second = drawn_size("flops", 1, 100000) * 1e10,
          .link_bytes_per_second = drawn_size("bytes", 1, 1000) * 1e9};
}

// Parts of a tensor differ by one element at most, so a rank's count by less than one a message.
TEST(CalculatorLaws, RingFormulasAreCountsOfTheWalk) {
  expect_law("parallel.ring_counts", 200, [](check::Observation&) {
    const int ranks = drawn_size("ranks", 1, 9), elements = drawn_size("elements", 0, 60);
    const auto check_one = [&](double formula, void (RingWalk::*collective)(Buffers&)) {
      RingWalk ring(ranks);
      Buffers buffers(static_cast<std::size_t>(ranks), std::vector<double>(static_cast<std::size_t>(elements), 1));
      (ring.*collective)(buffers);
      double sum = 0;
      for (const std::int64_t sent : ring.sent_elements()) {
        sum += static_cast<double>(sent);
        RC_ASSERT(std::abs(static_cast<double>(sent) - formula) <= static_cast<double>(ring.steps()));
      }
      RC_ASSERT(std::abs(sum / ranks - formula) <= 1e-9 * (1 + formula));
    };
    check_one(ring_all_gather_sent(elements, ranks), &RingWalk::all_gather);
    check_one(ring_reduce_scatter_sent(elements, ranks), &RingWalk::reduce_scatter);
    check_one(ring_all_reduce_sent(elements, ranks), &RingWalk::all_reduce);
  });
}

TEST(CalculatorLaws, AShardedLayerIsTheWholeLayer) {
  expect_law("parallel.layer_walk", 60, [](check::Observation&) {
    const Grid grid{drawn_size("data", 1, 6), drawn_size("tensor", 1, 6)};
    const GatedLayer layer{.tokens = grid.data + drawn_size("more tokens", 0, 6),
                           .d_model = drawn_size("d_model", 1, 9),
                           .d_ff = grid.tensor + drawn_size("more of F", 0, 6)};
    const auto seed = static_cast<std::uint32_t>(drawn_size("seed", 0, 1000));
    const LayerWalk walk = walk_layer(layer, grid, Scheme::sharded, seed);
    RC_ASSERT(walk.wrong == 0);
    // Uneven parts: the busiest rank does no less than the mean.
    RC_ASSERT(walk.forward.flops >= sharded_costs(layer, grid, Pass::forward).flops - 0.5);
    RC_ASSERT(walk.backward.flops >= sharded_costs(layer, grid, Pass::backward).flops - 0.5);
    RC_ASSERT(walk_layer(layer, {grid.data, 1}, Scheme::data_parallel, seed).wrong == 0);
  });
}

TEST(CalculatorLaws, CountsOfAnEvenLayerAreTheFormulas) {
  expect_law("parallel.layer_counts", 40, [](check::Observation&) {
    const Grid grid{drawn_size("data", 1, 7), drawn_size("tensor", 1, 7)};
    GatedLayer layer = walkable_layer(grid);
    layer.tokens *= drawn_size("times the tokens", 1, 4);
    layer.d_ff *= drawn_size("times F", 1, 4);
    const LayerWalk walk = walk_layer(layer, grid, Scheme::sharded);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const PassCosts formula = sharded_costs(layer, grid, pass);
      const PassCosts& counted = pass == Pass::forward ? walk.forward : walk.backward;
      RC_ASSERT(std::abs(counted.flops - formula.flops) <= 1e-9 * formula.flops);
      RC_ASSERT(std::abs(counted.data_sent_bytes - formula.data_sent_bytes) <= 1e-9 * formula.data_sent_bytes);
      RC_ASSERT(std::abs(counted.tensor_sent_bytes - formula.tensor_sent_bytes) <= 1e-9 * formula.tensor_sent_bytes);
    }
  });
}

// Bound by compute up to the limit and never beyond it.
TEST(CalculatorLaws, LimitsSeparateComputeFromCommunication) {
  expect_law("parallel.limits", 300, [](check::Observation&) {
    const GatedLayer layer = drawn_layer("d_ff", 5000);
    const Machine machine = drawn_machine();
    const auto check_limit = [&](double limit, const std::function<PassCosts(std::int64_t)>& costs) {
      RC_PRE(limit < 1e12);
      const auto largest = static_cast<std::int64_t>(std::floor(limit * (1 + 1e-12)));
      RC_ASSERT(is_compute_bound(costs(largest), machine, Axes::serial));
      RC_ASSERT(is_compute_bound(costs(std::max<std::int64_t>(1, largest / 2)), machine, Axes::serial));
      RC_ASSERT(
          !is_compute_bound(costs(static_cast<std::int64_t>(std::ceil(limit * 1.001)) + 1), machine, Axes::serial));
    };
    check_limit(data_parallel_limit(layer, machine, Pass::backward),
                [&](std::int64_t n) { return data_parallel_costs(layer, n, Pass::backward); });
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      check_limit(fsdp_limit(layer, machine), [&](std::int64_t n) { return sharded_costs(layer, {n, 1}, pass); });
      check_limit(tensor_parallel_limit(layer, machine, pass), [&](std::int64_t n) {
        return sharded_costs(layer, {1, n}, pass);
      });
    }
  });
}

// Every grid that is bound by compute has fewer ranks than the closed form allows; and some split comes as near to it
// as the parabola allows at the step that is tried: p(x*) − p(x) = a(x* − x)².
TEST(CalculatorLaws, NoGridPassesTheClosedForm) {
  expect_law("parallel.split_is_largest", 200, [](check::Observation&) {
    const GatedLayer layer = drawn_layer("d_ff", 3000);
    const Machine machine{.flops_per_second = drawn_size("flops", 1, 3000) * 1e10, .link_bytes_per_second = 1e10};
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const Axes axes : {Axes::overlapped, Axes::serial}) {
        const SplitLimit limit = largest_split(layer, machine, pass, axes);
        RC_PRE(limit.ranks < 1e9);
        for (std::int64_t data = 1; data <= 40; ++data) {
          const Grid grid = {data, std::max<std::int64_t>(1, drawn_size("tensor", 1, 60))};
          if (!is_compute_bound(sharded_costs(layer, grid, pass), machine, axes)) continue;
          RC_ASSERT(static_cast<double>(grid.ranks()) <= limit.ranks * (1 + 1e-9));
        }
        RC_ASSERT(static_cast<double>(largest_grid(layer, machine, pass, axes, 200).ranks()) <=
                  limit.ranks * (1 + 1e-9));
      }
      const double a = fsdp_limit(layer, machine) - 1, b = tensor_parallel_limit(layer, machine, pass) - 1;
      double best = 0;
      constexpr int kSteps = 1000;
      for (int step = 0; step <= kSteps; ++step) {
        const double share = static_cast<double>(step) / kSteps;
        best = std::max(best, (1 + a * share) * (1 + b * (1 - share)));
      }
      const double limit = largest_split(layer, machine, pass, Axes::serial).ranks;
      RC_ASSERT(best <= limit * (1 + 1e-9));
      RC_ASSERT(best >= limit * (1 - 1e-9) - a * b / (4.0 * kSteps * kSteps));
    }
  });
}

TEST(CalculatorLaws, TheLeastBatchIsWhatTheSearchFinds) {
  expect_law("parallel.least_batch", 300, [](check::Observation&) {
    const Mesh mesh{.x = drawn_size("x", 1, 70),
                    .y = drawn_size("y", 1, 70),
                    .x_links = drawn_size("x links", 1, 4),
                    .y_links = drawn_size("y links", 1, 4),
                    .weight_bytes = *rc::gen::element(1.0, 2.0, 4.0).as("bytes of a weight"),
                    .activation_bytes = *rc::gen::element(1.0, 2.0, 4.0).as("bytes of an activation"),
                    .micro_batches_per_gather = *rc::gen::element(1.0, 3.0).as("micro-batches")};
    const std::int64_t d_ff = drawn_size("d_ff", 1, 100000);
    const Machine machine = drawn_machine();
    for (const Axes axes : {Axes::overlapped, Axes::serial}) {
      const auto formula = least_whole_tokens(mesh, d_ff, machine, axes);
      RC_PRE(!formula || *formula < 1'000'000'000);
      const auto tried = least_tokens_by_search(mesh, d_ff, machine, axes);
      RC_ASSERT(tried.has_value() == formula.has_value());
      const double rounding = tokens_of_rounding(mesh, d_ff, machine, axes);
      if (formula) RC_ASSERT(std::abs(static_cast<double>(*tried - *formula)) <= rounding);
      if (axes == Axes::overlapped) RC_ASSERT(rounding == 0);
      const FreeSplit free = best_free_split(mesh, d_ff, machine, axes);
      if (formula) RC_ASSERT(static_cast<double>(*formula) >= free.tokens * (1 - 1e-9));
    }
  });
}

TEST(CalculatorLaws, DevicesAndShardsAreTheFirstThatFit) {
  expect_law("parallel.first_that_fits", 300, [](check::Observation&) {
    const std::int64_t state = drawn_size("state", 1, 100000), activations = drawn_size("activations", 0, 2000);
    const std::int64_t device = drawn_size("device", 1, 2000);
    std::int64_t devices = 1;
    while (devices * device < state) ++devices;
    RC_ASSERT(devices_for(state, device) == devices);
    const auto shards = shards_for(state, activations, device);
    if (!shards) {
      RC_ASSERT(activations >= 2 * device);
      return;
    }
    const auto fits = [&](std::int64_t n) { return 2 * state + activations + n * activations <= 2 * n * device; };
    RC_ASSERT(fits(*shards));
    RC_ASSERT(*shards == 1 || !fits(*shards - 1));
  });
}

}  // namespace
}  // namespace syslab::parallel
