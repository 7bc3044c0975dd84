// A small transformer and its step, its state divided in any way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/ddp/data_parallel_step.hpp"
#include "tests/parallel/step_fixture.hpp"
#include "train/workload.hpp"

namespace syslab::test {

// A model and its step, sharded in any way.
struct ShardedRig {
  ShardedRig(comm::Communicator& ranks, parallel::Sharding sharding, parallel::DataParallelOptions options,
             std::int64_t rows, device::Stream communication, int slots = 2, bool in_turn = false) {
    const bool flat = sharding == parallel::Sharding::zero1 || sharding == parallel::Sharding::zero2;
    model::TransformerOptions model_options{.with_moments = sharding == parallel::Sharding::none};
    options.sharding = flat ? parallel::Sharding::none : sharding;
    options.sync.bucket_mb = {0.01};
    if (flat) {
      zero.emplace(ranks, small_config(), model_options,
                   parallel::ZeroModelOptions{.sharding = sharding,
                                              .sync = options.sync,
                                              .parts = options.parts,
                                              .slots = slots,
                                              .poison = true,
                                              .in_turn = in_turn},
                   device::Stream{}, communication);
      model_options.source = options.zero = &*zero;
    }
    model.emplace(small_config(), model_options, device::Stream{});
    train::draw_weights(arena(), model->kernels(), 1 + static_cast<std::uint64_t>(ranks.rank()));
    step.emplace(*model, ranks, options, rows, kSeq, communication);
  }

  model::ParameterArena& arena() { return zero ? zero->arena() : model->parameters(); }

  // Rows from `first` on of batch `number` into a part.
  void load(int number, int part, std::int64_t first, std::int64_t rows) {
    test::load(*step, part, batch_of(small_config(), number), first, rows);
  }

  std::vector<std::vector<double>> weights() {
    if (zero) zero->all_needed({});
    std::vector<std::vector<double>> all;
    for (int i = 0; i < arena().layout().size(); ++i) all.push_back(arena().read(model::Plane::weight, i));
    return all;
  }

  std::optional<parallel::ZeroParameters> zero;
  std::optional<model::Transformer> model;
  std::optional<parallel::DataParallelStep> step;
};

}  // namespace syslab::test
