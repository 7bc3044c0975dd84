// Our own rungs, listed by ladder.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

Rung reference_rung();
Rung naive_rung();
Rung flash_tiled_rung();
Rung reference_cuda_rung();
Rung naive_cuda_rung();
Rung flash_tf32_rung();
Rung flash_fp32_rung();
Rung flash_mma_rung();
Rung flash_mma_deterministic_rung();
Rung flash_wgmma_rung();
Rung flash_wgmma_deterministic_rung();

// "forward_tile_64": queries × keys that a block or a task of the forward pass has on chip at a time, for heads of up
// to `head_dim`; 0: for all.
RungFact forward_tile_fact(int head_dim, std::int64_t queries, std::int64_t keys);
// The largest tile for each head_dim of a table of shapes.
template <typename Shapes>
std::vector<RungFact> forward_tile_facts(const Shapes& shapes) {
  std::map<int, std::pair<std::int64_t, std::int64_t>> largest;
  for (const auto& shape : shapes) {
    auto& [queries, keys] = largest[shape.head_dim];
    if (shape.rows() * shape.keys > queries * keys) queries = shape.rows(), keys = shape.keys;
  }
  std::vector<RungFact> facts;
  for (const auto& [head_dim, tile] : largest) facts.push_back(forward_tile_fact(head_dim, tile.first, tile.second));
  return facts;
}

// Why a rung for these dtypes cannot take the problem; nothing if it can.
std::optional<std::string> refuse_dtype(const std::vector<DType>& dtypes, const Problem& problem);

// Number of host threads for a call, at most device::thread_count(): one per half millisecond of work on one core.
// Smaller pieces finish before a thread wakes up or, on a busy machine, is scheduled at all.
int threads_worth(const Problem& problem, Pass pass);

}  // namespace syslab::attention
