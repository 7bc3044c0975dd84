// Combines the partial results of rows with split keys: with L_s and O_s of split s,
//   L = log Σ_s exp(L_s),  O = Σ_s exp(L_s − L)·O_s
//
// A row belongs to a few neighbouring threads, four columns each. Partial results were written a moment ago and lie in
// L2: 8192 rows of 64 with 9 splits on average are 19 MB, about 6 µs. Every thread reads the L_s of its row itself, one
// float for four of O_s.
//
// What waits for what. Threads share nothing, so there is no barrier. wait_for_kernels_before: the partial results of
// the forward kernel have landed, and earlier kernels have left `out` and `lse`, which are overwritten here.
#include <cstdint>

#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/attention/combine.hpp"

namespace syslab::attention::flash {

namespace {

constexpr int kThreads = 128;
// Splits read at a time: their loads are under way together, and the time is the latency of a few rounds.
constexpr int kTogether = 8;

// `log2_lanes`: 2^that threads a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    flash_combine_kernel(const __grid_constant__ CombineParams p, int log2_lanes) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t rows = static_cast<std::int64_t>(p.heads) * p.seq_q;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t all = index >> log2_lanes;
  if (all >= rows) return;
  const int column = static_cast<int>(index & ((1 << log2_lanes) - 1)) * 4;
  const int head_index = static_cast<int>(all / p.seq_q), row = static_cast<int>(all % p.seq_q);
  // Splits that the row's block had: those that some row of it sees a key of.
  const int block_last = min(row / p.rows_of_block * p.rows_of_block + p.rows_of_block, p.seq_q) - 1;
  const int sees = max(0, min(block_last + 1 + p.shift, p.seq_k));
  const int splits = (sees + p.keys_of_split - 1) / p.keys_of_split;
  if (splits <= 1) return;

  float most = -INFINITY, sum = 0, x = 0, y = 0, z = 0, w = 0;
  for (int first = 0; first < splits; first += kTogether) {
    float lse[kTogether];
    float4 part[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const std::int64_t place = (first + i) * rows + all;
      const bool there = first + i < splits;
      lse[i] = there ? p.partial_lse[place] : -INFINITY;
      part[i] = there && column < p.head_dim
                    ? *reinterpret_cast<const float4*>(p.partial_out + place * p.head_dim + column)
                    : float4{0, 0, 0, 0};
    }
    float top = most;
    bool saw = false;  // a key, whatever came of it: fmaxf passes over NaN
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      top = fmaxf(top, lse[i]);
      saw |= lse[i] != -INFINITY;
    }
    if (!saw) continue;
    const float before = __expf(most - top);
    sum *= before;
    x *= before;
    y *= before;
    z *= before;
    w *= before;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const float weight = __expf(lse[i] - top);
      sum += weight;
      x = fmaf(weight, part[i].x, x);
      y = fmaf(weight, part[i].y, y);
      z = fmaf(weight, part[i].z, z);
      w = fmaf(weight, part[i].w, w);
    }
    most = top;
  }
  const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
  const int batch = head_index / p.heads_q, head = head_index % p.heads_q;
  if (column == 0) {
    p.lse[batch * p.lse_stride.batch + head * p.lse_stride.head + row * p.lse_stride.row] =
        sum == 0.0F ? -INFINITY : most + logf(sum);
  }
  if (column >= p.head_dim) return;
  T* to = static_cast<T*>(p.out) + batch * p.out_stride.batch + head * p.out_stride.head + row * p.out_stride.row;
  *reinterpret_cast<uint2*>(to + column) =
      uint2{ptx::pack<T>(x * inverse, y * inverse), ptx::pack<T>(z * inverse, w * inverse)};
}

}  // namespace

void launch_combine(DType dtype, const CombineParams& params, device::Stream stream) {
  int log2_lanes = 0;
  while ((4 << log2_lanes) < params.head_dim) ++log2_lanes;
  const std::int64_t threads = (static_cast<std::int64_t>(params.heads) * params.seq_q) << log2_lanes;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  if (dtype == DType::bf16) {
    static device::OverlappedKernel kernel(flash_combine_kernel<__nv_bfloat16>, 0, "flash combine");
    kernel.launch(blocks, kThreads, stream, params, log2_lanes);
  } else {
    static device::OverlappedKernel kernel(flash_combine_kernel<__half>, 0, "flash combine");
    kernel.launch(blocks, kThreads, stream, params, log2_lanes);
  }
}

}  // namespace syslab::attention::flash
