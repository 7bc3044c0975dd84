// The small kernels before and after the large ones of flash_fp32 and flash_tf32: they convert tensors to planes,
// compute row statistics for the backward pass, and join partial results.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code), in block_max():
//   (1) block  landed: the largest value of each warp is there for all threads. Left: nothing.
//   (2) block  left: all threads have read these values, which the kernel's next block_max() overwrites. (In the last
//              call it has no job.) Landed: nothing.
// Everything else is between lanes of a warp, by shuffles, or between kernels. wait_for_kernels_before, at the top of
// each: what the kernel reads has landed, and earlier kernels have left what it overwrites.
#include "ops/attention/fp32/kernels.hpp"

#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/attention/fp32/arithmetic.cuh"
#include "ops/attention/fp32/launch.cuh"

namespace syslab::attention::fp32 {
namespace {

constexpr int kPlaneThreads = 256;

// Smallest e ≥ −95 with x < 2^e. The floor keeps 2^(kTop − e) finite and 2^(e − 2·kTop) normal, and costs nothing: even
// below it the smallest step of a plane is 2⁻¹³⁴.
__device__ __forceinline__ int exponent_above(float x) {
  const int e = static_cast<int>(__float_as_uint(x) >> 23) - 126;
  return e < -95 ? -95 : e;
}

__device__ __forceinline__ float block_max(float x, float* shared) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, step));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();  // (1)
  x = shared[0];
  for (int i = 1; i < kPlaneThreads / 32; ++i) x = fmaxf(x, shared[i]);
  __syncthreads();  // (2)
  return x;
}

// One block a tile.
template <class Arithmetic, int kColumns>
__global__ __launch_bounds__(kPlaneThreads) void planes_kernel(const PlaneJobs jobs) {
  constexpr int kVector = plane_vector(kColumns);
  constexpr int kAcross = kColumns / kVector;     // threads to a row, at most a warp
  constexpr int kDown = kPlaneThreads / kAcross;  // rows at a time
  constexpr int kEach = kTileRows / kDown;
  __shared__ float reduced[kPlaneThreads / 32];
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  int which = 0;
  while (which + 1 < jobs.count && static_cast<int>(blockIdx.x) >= jobs.job[which + 1].first_block) ++which;
  const PlaneJob& job = jobs.job[which];
  const int tiles = job.padded_rows / kTileRows;
  const int index = static_cast<int>(blockIdx.x) - job.first_block;
  const int head = index / tiles, tile = index % tiles;
  const int column = static_cast<int>(threadIdx.x) % kAcross * kVector;
  const int top = static_cast<int>(threadIdx.x) / kAcross;

  float value[kEach][kVector] = {};
  float most = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = tile * kTileRows + top + i * kDown;
    if (row >= job.rows) continue;
    const float* const from = job.from.at(head / job.heads, head % job.heads, row) + column;
    if (job.vectors && column + kVector <= jobs.head_dim) {
      if constexpr (kVector == 4) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        value[i][0] = four.x, value[i][1] = four.y, value[i][2] = four.z, value[i][3] = four.w;
      } else {
        const float2 two = *reinterpret_cast<const float2*>(from);
        value[i][0] = two.x, value[i][1] = two.y;
      }
    } else {
#pragma unroll
      for (int d = 0; d < kVector; ++d) {
        if (column + d < jobs.head_dim) value[i][d] = from[d];
      }
    }
#pragma unroll
    for (int d = 0; d < kVector; ++d) {
      // An infinity does not determine the scale, or the finite values of the tile's other rows would lose their
      // digits.
      if (isfinite(value[i][d])) most = fmaxf(most, fabsf(value[i][d]));
    }
  }
  const int exponent = exponent_above(block_max(most, reduced));
  const float scale = ldexpf(1.0F, kTop - exponent);

  char* const to = job.to.data + static_cast<std::int64_t>(index) * (kTileRows * 4 * kColumns);
  float most_squares = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = top + i * kDown;
    float squares = 0;
#pragma unroll
    for (int d = 0; d < kVector; ++d) {
      const float scaled = value[i][d] * scale;
      squares = fmaf(scaled, scaled, squares);
      value[i][d] *= job.sign;
    }
    if (jobs.norms) {
#pragma unroll
      for (int step = kAcross / 2; step > 0; step /= 2) squares += __shfl_xor_sync(~0U, squares, step);
      most_squares = fmaxf(most_squares, squares);
    }
#pragma unroll
    for (int d = 0; d < kVector; d += 2) {
      const int at = column + d;
      if constexpr (Arithmetic::kScaled) {
        std::uint32_t high, low;
        Half3::split(value[i][d] * scale, value[i][d + 1] * scale, high, low);
        const int inside = at % 8 * 2;
        *reinterpret_cast<std::uint32_t*>(to + PlaneTile<kColumns>::offset(row, at / 8) + inside) = high;
        *reinterpret_cast<std::uint32_t*>(to + PlaneTile<kColumns>::offset(row, kColumns / 8 + at / 8) + inside) = low;
      } else {
        *reinterpret_cast<uint2*>(to + PlaneTile<kColumns>::offset(row, at / 4) + at % 4 * 4) =
            make_uint2(ptx::to_tf32(value[i][d]), ptx::to_tf32(value[i][d + 1]));
      }
    }
  }
  const float norm = jobs.norms ? sqrtf(block_max(most_squares, reduced)) : 0;
  if (threadIdx.x == 0) {
    // A plane without scaling has the exponent that scales by one.
    job.to.scales[index] = {Arithmetic::kScaled ? exponent : kTop, exponent - kTop + exponent_above(norm)};
  }
}

// Of each row s − L·log2(e), s by row, and Σ_d dO·O, and of each tile the exponent of the largest of these. One block a
// tile.
__global__ __launch_bounds__(kPlaneThreads) void statistics_kernel(const StatisticsParams params) {
  __shared__ float reduced[kPlaneThreads / 32];
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const Shape& shape = params.shape;
  const int tiles = shape.padded_q / kTileRows;
  const int head = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const int batch = head / shape.heads_q, head_q = head % shape.heads_q;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  float most = 0;
  for (int i = warp; i < kTileRows; i += kPlaneThreads / 32) {
    const int row = tile * kTileRows + i;
    float shift = -INFINITY, sum = 0, top = 0;
    if (row < shape.seq_q) {
      const float lse = *params.lse.at(batch, head_q, row);
      if (lse != -INFINITY) {
        const float* const out = params.out.at(batch, head_q, row);
        const float* const dout = params.dout.at(batch, head_q, row);
        for (int d = lane; d < shape.head_dim; d += 32) sum = fmaf(out[d], dout[d], sum);
#pragma unroll
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
        // Exponents of a row that sees n keys are around −L·log2(e) ≈ −log2(n).
        top = fminf(fmaxf(rintf(lse * 1.44269504F), 0.0F), static_cast<float>(kTop));
        // log2(e) as two floats: rounding the product would err by 2⁻²⁴·|L|, and the difference is small.
        shift = fmaf(-lse, 1.925963033500e-8F, fmaf(-lse, 1.44269502162933F, top));
      }
    }
    if (lane == 0) {
      const std::int64_t at = static_cast<std::int64_t>(head) * shape.padded_q + row;
      params.shift[at] = shift;
      params.rest[at] = exp2f(kTop - top);
      params.delta[at] = sum;
    }
    if (isfinite(sum)) most = fmaxf(most, fabsf(sum));
  }
  most = block_max(most, reduced);
  if (threadIdx.x == 0) params.delta_scale[blockIdx.x] = exponent_above(most);
}

// Chunks that a tile's range was cut into, at least one.
__device__ __forceinline__ int chunks_of(int length, const Split& split) {
  const int chunks = (length + split.tiles - 1) / split.tiles;
  return chunks < 1 ? 1 : chunks;
}

// For each row: L = log Σ_c exp(L_c), O = Σ_c exp(L_c − L)·O_c. One thread an element.
__global__ __launch_bounds__(kPlaneThreads) void join_forward_kernel(const JoinParams params) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kPlaneThreads + threadIdx.x;
  const int column = static_cast<int>(index % params.columns);
  const std::int64_t row_index = index / params.columns;
  const int row = static_cast<int>(row_index % params.rows), head = static_cast<int>(row_index / params.rows);
  if (head >= params.heads || column >= params.shape.head_dim) return;
  const int chunks = chunks_of(
      keys_of(params.shape, row / params.block_rows * params.block_rows, params.block_rows).end, params.split);
  const std::int64_t first = static_cast<std::int64_t>(head) * params.split.chunks * params.padded_rows + row;
  float most = -INFINITY;
  for (int c = 0; c < chunks; ++c) {
    most = fmaxf(most, params.partial_lse[first + static_cast<std::int64_t>(c) * params.padded_rows]);
  }
  const float base = most == -INFINITY ? 0.0F : most;
  float weights = 0, sum = 0;
  for (int c = 0; c < chunks; ++c) {
    const std::int64_t at = first + static_cast<std::int64_t>(c) * params.padded_rows;
    const float weight = exp2f(params.partial_lse[at] - base);
    weights += weight;
    sum = fmaf(weight, params.partial[at * params.columns + column], sum);
  }
  const int batch = head / params.heads_of_batch, head_of_batch = head % params.heads_of_batch;
  params.out.at(batch, head_of_batch, row)[column] = weights == 0 ? 0.0F : sum / weights;
  if (column == 0) {
    *params.lse.at(batch, head_of_batch, row) = weights == 0 ? -INFINITY : (most + log2f(weights)) * 0.693147180559945F;
  }
}

// Gradients from split ranges: their sum, in order. One thread an element.
__global__ __launch_bounds__(kPlaneThreads) void join_gradient_kernel(const GradientJoinParams params) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kPlaneThreads + threadIdx.x;
  const int column = static_cast<int>(index % params.columns);
  const int row = static_cast<int>(index / params.columns % params.rows);
  const int which_head = static_cast<int>(index / params.columns / params.rows);
  if (which_head >= params.heads * (params.keys ? 2 : 1) || column >= params.shape.head_dim) return;
  const int first_row = row / params.block_rows * params.block_rows;
  int length = 0;
  if (params.keys) {
    const Range queries = queries_of(params.shape, first_row);
    length = (queries.end - queries.begin) * params.shape.group;
  } else {
    length = keys_of(params.shape, first_row, params.block_rows).end;
  }
  const int chunks = chunks_of(length, params.split);
  const std::int64_t first = static_cast<std::int64_t>(which_head) * params.split.chunks * params.padded_rows + row;
  float sum = 0;
  for (int c = 0; c < chunks; ++c) {
    sum += params.partial[(first + static_cast<std::int64_t>(c) * params.padded_rows) * params.columns + column];
  }
  const int head = which_head % params.heads;
  const Rows<float>& to = which_head < params.heads ? params.first : params.second;
  to.at(head / params.heads_of_batch, head % params.heads_of_batch, row)[column] = sum;
}

unsigned blocks_for(std::int64_t elements) {
  return static_cast<unsigned>((elements + kPlaneThreads - 1) / kPlaneThreads);
}

template <class Arithmetic>
void launch_planes(const PlaneJobs& jobs, int columns, std::int64_t blocks, device::Stream stream) {
  with_columns(columns, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    static device::OverlappedKernel kernel(planes_kernel<Arithmetic, kColumns>, 0, "flash_fp32 planes");
    kernel.launch(static_cast<unsigned>(blocks), kPlaneThreads, stream, jobs);
  });
}

}  // namespace

template <>
void make_planes<Half3>(const PlaneJobs& jobs, int columns, std::int64_t blocks, device::Stream stream) {
  launch_planes<Half3>(jobs, columns, blocks, stream);
}
template <>
void make_planes<Tf32>(const PlaneJobs& jobs, int columns, std::int64_t blocks, device::Stream stream) {
  launch_planes<Tf32>(jobs, columns, blocks, stream);
}

void make_statistics(const StatisticsParams& params, device::Stream stream) {
  const Shape& shape = params.shape;
  const std::int64_t heads = static_cast<std::int64_t>(shape.batch) * shape.heads_q;
  static device::OverlappedKernel kernel(statistics_kernel, 0, "flash_fp32 statistics");
  kernel.launch(static_cast<unsigned>(heads * (shape.padded_q / kTileRows)), kPlaneThreads, stream, params);
}

void join_forward(const JoinParams& params, device::Stream stream) {
  const std::int64_t elements = static_cast<std::int64_t>(params.heads) * params.rows * params.columns;
  static device::OverlappedKernel kernel(join_forward_kernel, 0, "flash_fp32 join");
  kernel.launch(blocks_for(elements), kPlaneThreads, stream, params);
}

void join_gradients(const GradientJoinParams& params, device::Stream stream) {
  const std::int64_t elements = std::int64_t{params.keys ? 2 : 1} * params.heads * params.rows * params.columns;
  static device::OverlappedKernel kernel(join_gradient_kernel, 0, "flash_fp32 join of gradients");
  kernel.launch(blocks_for(elements), kPlaneThreads, stream, params);
}

}  // namespace syslab::attention::fp32
