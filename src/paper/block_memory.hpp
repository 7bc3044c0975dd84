// A model of wide blocks, each of two linear layers D → F → D and nothing else, and on how many devices it fits.
//
//   const BlockModel xxl{};                                     // D = 16384, F = 53248, 126 blocks
//   parameter_count(xxl);                                       // 219,848,638,464
//   devices_for(state_bytes(xxl).total(), 80'000'000'000);      // 44
//
// Weights, accumulated gradients and Adam's two moments are fp32; activations are bf16 and none is computed again.
// Source: hand-out 2025, communication_accounting (a) and (b).
#pragma once

#include <cstdint>
#include <optional>

namespace syslab::parallel {

struct BlockModel {
  std::int64_t d_model = 16384, d_ff = 53248, blocks = 126;  // D, F
};

// Error(usage) for sizes below 1 or with more bytes than 62 bits can count.
void validate(const BlockModel& model);

std::int64_t parameter_count(const BlockModel& model);  // 2DF · blocks

struct BlockStateBytes {
  std::int64_t weights = 0, gradients = 0, moments = 0;

  std::int64_t total() const { return weights + gradients + moments; }
};
BlockStateBytes state_bytes(const BlockModel& model);  // 4, 4 and 8 bytes a parameter

// What backward needs of a token: the inputs of both layers of every block, 2(D + F) · blocks.
std::int64_t activation_bytes_per_token(const BlockModel& model);

// How many devices hold `bytes` together.
std::int64_t devices_for(std::int64_t bytes, std::int64_t device_bytes);

// A device's memory when the state and half of its activations are sharded over N: M(N) = (S + A/2)/N + A/2, where A is
// what the tokens of one device leave behind. In bytes.
double sharded_bytes(std::int64_t state, std::int64_t activations, std::int64_t shards);
// The least N with M(N) ≤ device_bytes; none where the half that stays fills the device.
std::optional<std::int64_t> shards_for(std::int64_t state, std::int64_t activations, std::int64_t device_bytes);

}  // namespace syslab::parallel
