// The small kernels around flash_mma's backward passes, both bound by memory: statistics of rows before, sums of fp32
// parts after. A pass of n parts reads 4·n bytes and writes 2 an element of the gradient.
//
// What waits for what. Threads and warps share no memory, so there is no barrier. Ordinary launches order the kernels:
// the keys kernel finds the zeros and statistics stored here, and the sum kernel finds all parts.
#pragma once

#include "ops/attention/mma/backward.cuh"

namespace syslab::attention::flash {

inline constexpr int kStatisticsThreads = 256;

template <typename T, int kD>
__global__ void __launch_bounds__(kStatisticsThreads) statistics_kernel(const __grid_constant__ BackwardParams p) {
  constexpr int kWarpRows = kStatisticsRows / (kStatisticsThreads / 32);
  const int blocks = p.rows_q / kStatisticsRows;
  const int first = static_cast<int>(blockIdx.x) % blocks * kStatisticsRows;
  const int head = static_cast<int>(blockIdx.x) / blocks;
  auto* zeros = reinterpret_cast<float4*>(p.dq_parts + (static_cast<std::int64_t>(head) * p.rows_q + first) * kD);
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kStatisticsRows * kD / 4; i += kStatisticsThreads) {
    zeros[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  }
  make_statistics<T, kD, kWarpRows>(p, head / p.heads_q, head % p.heads_q,
                                    first + static_cast<int>(threadIdx.x / 32) * kWarpRows, nullptr);
}

template <typename T, int kD>
__global__ void __launch_bounds__(kSumThreads) sum_kernel(const __grid_constant__ BackwardParams p) {
  int block = static_cast<int>(blockIdx.x);
  std::size_t which = 0;
  while (which + 1 < p.sums.size() && block >= p.sums[which].blocks) block -= p.sums[which++].blocks;
  const Sum& sum = p.sums[which];

  // Sixteen neighbouring threads make eight columns of sixteen rows: two blocks of fragments.
  const std::int64_t index = static_cast<std::int64_t>(block) * kSumThreads + threadIdx.x;
  constexpr int kChunks = kD / 8;
  const int row_in_block = static_cast<int>(index % 16), chunk = static_cast<int>(index / 16 % kChunks);
  const std::int64_t row_block = index / 16 / kChunks;  // over all heads
  const int head = static_cast<int>(row_block / (sum.padded_rows / 16));
  const int row = static_cast<int>(row_block % (sum.padded_rows / 16)) * 16 + row_in_block;
  if (row >= sum.rows || chunk * 8 >= p.head_dim) return;

  int parts = 1;
  const int first = row / sum.tile * sum.tile;
  if (sum.cut == Sum::Cut::keys) {
    parts = (steps_of_keys(p.seen, first, sum.other_tile) + p.keys_steps - 1) / p.keys_steps;
  } else if (sum.cut == Sum::Cut::queries) {
    parts = (steps_of_queries(p.seen, first, sum.tile, sum.other_tile) + p.queries_steps - 1) / p.queries_steps;
  }
  const float* from = sum.parts + (row_block * kChunks + chunk) * kFragment;
  const int lane = row_in_block % 8 * 4, half = row_in_block / 8 * 2;
  float value[8] = {};
  for (int part = 0; part < parts; ++part, from += sum.part_stride) {
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] += from[fragment_offset(lane + i / 2, half + i % 2)];
  }
  uint4 packed;
  packed.x = ptx::pack<T>(value[0] * sum.scale, value[1] * sum.scale);
  packed.y = ptx::pack<T>(value[2] * sum.scale, value[3] * sum.scale);
  packed.z = ptx::pack<T>(value[4] * sum.scale, value[5] * sum.scale);
  packed.w = ptx::pack<T>(value[6] * sum.scale, value[7] * sum.scale);
  *reinterpret_cast<uint4*>(rows_of<T>(sum.to, head / sum.heads, head % sum.heads, row) + chunk * 8) = packed;
}

}  // namespace syslab::attention::flash
