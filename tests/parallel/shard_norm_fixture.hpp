// A norm over ranks' parts, asked for once.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "parallel/shard_norm.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::test {

struct NormFound {
  float norm = 0, factor = 0;
  std::int64_t non_finite = 0;
};

struct NormAsked {
  double max_norm = 1;
  float scale = 1;
  std::vector<float> losses;
  std::optional<WaitOf> left_out = {};
  std::chrono::microseconds late{0};  // of either stream
};

// The last rank has nothing; the others deal out `all` one by one, and have theirs in stretches of three.
inline NormFound shard_norm(comm::Communicator& ranks, const std::vector<float>& all, const NormAsked& asked,
                            device::Stream compute, device::Stream communication) {
  std::vector<float> own;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int>(i % static_cast<std::size_t>(ranks.size() - 1)) == ranks.rank()) own.push_back(all[i]);
  }
  std::vector<ConstTensorView> stretches;
  for (std::size_t first = 0; first < own.size(); first += 3) {
    stretches.emplace_back(own.data() + first, DType::f32,
                           Shape{static_cast<std::int64_t>(std::min<std::size_t>(3, own.size() - first))});
  }
  NormFound made;
  InterferingObserver observer({.waits = all_but(asked.left_out)});
  parallel::ShardNorm norm(ranks, global_norm::find_rung("naive"), stretches, DType::f32, compute, communication,
                           &observer);
  parallel::ShardNorm::Places places{.norm = {&made.norm, DType::f32, {1}},
                                     .factor = {&made.factor, DType::f32, {1}},
                                     .non_finite = &made.non_finite,
                                     .grad_scale = {&asked.scale, DType::f32, {1}},
                                     .max_norm = asked.max_norm};
  if (!asked.losses.empty()) {
    places.losses = {asked.losses.data() + ranks.rank(), DType::f32, {1}};
  }
  sleep_in(asked.left_out == WaitOf{parallel::Wait::norm_computed} ? compute : communication, asked.late);
  norm.queue(places, compute);
  device::synchronize(communication);
  device::synchronize(compute);
  return made;
}

inline std::vector<float> drawn_gradients(int count) {
  const RandomStream random(3);
  std::vector<float> all;
  for (int i = 0; i < count; ++i) all.push_back(random.normal(static_cast<std::uint64_t>(i)));
  return all;
}

}  // namespace syslab::test
