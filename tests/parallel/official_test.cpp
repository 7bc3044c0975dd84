// The hand-outs' DDP tests (tests/test_ddp_individual_parameters.py, tests/test_ddp.py), said again: two ranks that
// begin with weights of their own, five steps of SGD with a rate of 0.1 on half the rows each, both toy models; after
// every step rank 0 holds what one process on all rows holds, to allclose's defaults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "parallel/ddp/gradient_sync.hpp"
#include "parallel/replicas.hpp"
#include "tests/parallel/official_models.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::with_ranks;

constexpr std::int64_t kRows = 20;
constexpr double kRate = 0.1;

struct Data {
  std::vector<double> x, y;
};

Data drawn(const ToyModel& model) {
  const RandomStream random(0);
  Data data;
  std::uint64_t at = 0;
  for (std::int64_t i = 0; i < kRows * model.layers.front().in; ++i) data.x.push_back(random.normal(at++));
  for (std::int64_t i = 0; i < kRows * model.layers.back().out; ++i) data.y.push_back(random.normal(at++));
  return data;
}

// Rows `order[first]` … as a batch.
ToyBatch rows_of(const Data& data, const std::vector<std::int64_t>& order, const RowBlock& block) {
  const auto take = [&](const std::vector<double>& from, std::vector<double>& to) {
    const auto width = static_cast<std::int64_t>(from.size()) / kRows;
    for (std::int64_t row = block.first; row < block.first + block.count; ++row) {
      const auto begin = from.begin() + order[static_cast<std::size_t>(row)] * width;
      to.insert(to.end(), begin, begin + width);
    }
  };
  ToyBatch batch{.rows = block.count};
  take(data.x, batch.x);
  take(data.y, batch.y);
  return batch;
}

void shuffle(std::vector<std::int64_t>& order, std::uint64_t seed) {
  const RandomStream random(seed);
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.bits(i) % (i + 1)]);
}

bool all_close(const std::vector<float>& found, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= 1e-8 + 1e-5 * std::abs(expected[i]))) return false;  // nor a NaN
  }
  return found.size() == expected.size();
}

void five_steps(const ToyModel& model, const SyncOptions& options, comm::Communicator& ranks, Stream compute,
                Stream communication) {
  ToyNetwork baseline(model, {}), replica(model, compute);
  const auto seed = static_cast<std::uint64_t>(ranks.rank());
  draw_normal(baseline, seed);
  draw_normal(replica, seed);
  make_replicas(ranks, replica.weights(), communication);
  replica.set_weights(replica.read_weights());
  const std::vector<float> own = baseline.read_weights(), begun = replica.read_weights();
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(ranks.rank() == 0, own[i] == begun[i]) << i;

  GradientSync sync(ranks, replica.pieces(), replica.gradients(), options, communication);
  const Data data = drawn(model);
  const double scale = 2.0 / static_cast<double>(data.y.size());  // of the mean squared error
  const RowBlock block = even_blocks(kRows, ranks.size())[static_cast<std::size_t>(ranks.rank())];
  std::vector<std::int64_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  for (int step = 0; step < 5; ++step) {
    baseline.pass(rows_of(data, order, {0, kRows}), scale, true, true, {});
    baseline.update(kRate, false);
    const bool judges = ranks.rank() == 0;  // the others' baselines began with weights of their own
    EXPECT_FALSE(judges && all_close(replica.read_weights(), baseline.read_weights()));

    sync.begin(compute);
    replica.pass(rows_of(data, order, block), scale, true, true,
                 {.piece_final = [&](int piece) { sync.grad_final(piece, compute); }});
    sync.finish(compute);
    replica.update(kRate, false);
    EXPECT_TRUE(!judges || all_close(replica.read_weights(), baseline.read_weights())) << "step " << step;
    shuffle(order, 42 + static_cast<std::uint64_t>(step));
  }
  require_replicas(ranks, replica.weights(), compute);
  const std::vector<float> ended = replica.read_weights();
  for (std::size_t i = 0; i < ended.size(); ++i) {
    EXPECT_TRUE(is_trained(replica, i) || ended[i] == begun[i]) << "frozen weight " << i;
  }
  sync.check_bytes();
}

class OfficialDdp : public ::testing::TestWithParam<SyncOptions> {};

TEST_P(OfficialDdp, TrainsBothToyModelsAsOneProcessDoes) {
  for (const ToyModel& model : {official_model(), official_tied_model()}) {
    with_ranks(2, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
      five_steps(model, GetParam(), ranks, compute, communication);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(, OfficialDdp,
                         ::testing::Values(SyncOptions{.strategy = Strategy::naive},
                                           SyncOptions{.strategy = Strategy::flat_copy},
                                           SyncOptions{.strategy = Strategy::flat_view},
                                           SyncOptions{.strategy = Strategy::overlap},
                                           SyncOptions{.strategy = Strategy::bucketed, .bucket_mb = {0.0016}},
                                           SyncOptions{.strategy = Strategy::bucketed, .bucket_mb = {0.0001}},
                                           SyncOptions{.strategy = Strategy::bucketed, .bucket_mb = {0.01}}));

}  // namespace
}  // namespace syslab::parallel
