// The weighted sum on a GPU: forward and backward read x once, at the speed of memory, without atomics.
//
// A *row group* of 1 to 32 adjacent lanes shares a row, as many as it takes to cover D with one vector a lane (16 bytes
// where the rows are aligned to that, one element where they are not), so that narrow rows do not leave lanes idle.
//
//   forward   a group walks its row a vector a lane, keeps one fp32 sum a lane and adds the lanes up in a butterfly.
//   backward  a block takes a tile of columns and a chunk of rows. A lane holds w of its columns in registers and walks
//             down the rows: reads x once, writes dx, and adds x·g to its fp32 part of dw. The groups' parts are added
//             in shared memory, in order, to one row of a (chunks × D) buffer; a second kernel adds its columns, in
//             order. The number of chunks depends on the shape alone, so the bits are the same on every GPU.
//
// Napkin, rows 65,536, D 1024, fp32 on an H100 (3.0 TB/s): forward reads 268 MB, 90 µs; backward reads and writes
// 537 MB, 180 µs; the parts of dw add 64·1024·4·2 = 0.5 MB, 0.1 %.
//
// Source: CS336 assignment 2, the weighted-sum example (row tiles with a buffer of partial gradients of w).
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//   (1) backward_kernel, block   landed: the parts of all groups are there: a thread adds up one column.
//   (2) sum_kernel, block        landed: the sums of all slices are there for the first.
//   Left: nothing. Neither kernel overwrites shared memory after it. Ordinary launches order the two kernels.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "device/cuda/cuda.cuh"
#include "ops/vectors.cuh"
#include "ops/weighted_sum/cuda_kernels.hpp"
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {
namespace {

using ops::Element;
using ops::kVectorBytes;
using ops::load_pack;
using ops::Pack;
using ops::store_pack;
using ops::takes_packs;

constexpr int kThreads = 256;
constexpr std::int64_t kBlocksWanted = 512;  // of a backward pass: about four a multiprocessor of an H100
constexpr int kColumnsOfSum = 32, kSlicesOfSum = 16;

// --- how a problem is cut ---

struct Cut {
  int width = 1;            // elements of a lane's vector
  int lanes = 1;            // of a row group, a power of two up to 32
  int groups = 1;           // of a block
  std::int64_t tiles = 1;   // of columns
  std::int64_t chunks = 1;  // of rows, backward
  std::int64_t rows_of_chunk = 1;
};

template <typename T>
constexpr int kWidest = kVectorBytes / static_cast<int>(sizeof(T));

Cut cut_of(const Problem& problem, int width) {
  Cut cut;
  cut.width = width;
  const std::int64_t vectors = (problem.dim + width - 1) / width;
  cut.lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(vectors, 32))));
  cut.groups = kThreads / cut.lanes;
  cut.tiles = (vectors + cut.lanes - 1) / cut.lanes;
  // A chunk costs a row of parts, so it has many rows: at least four a group.
  const std::int64_t most = std::max<std::int64_t>(problem.rows / (4 * cut.groups), 1);
  cut.chunks = std::clamp<std::int64_t>((kBlocksWanted + cut.tiles - 1) / cut.tiles, 1, most);
  cut.rows_of_chunk = (problem.rows + cut.chunks - 1) / cut.chunks;
  cut.chunks = (problem.rows + cut.rows_of_chunk - 1) / cut.rows_of_chunk;
  return cut;
}

// --- kernels ---

// Adds up over the `lanes` neighbours that share a row; all of them get the sum.
__device__ float sum_of_group(float value, int lanes) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffU, value, apart);
  return value;
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const T* __restrict__ x, std::int64_t x_stride, const T* __restrict__ w, T* __restrict__ y,
                   std::int64_t y_stride, std::int64_t rows, std::int64_t dim, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes, groups = kThreads / lanes;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * groups + static_cast<int>(threadIdx.x) / lanes;
  float sum = 0;
  if (row < rows) {
    const T* mine = x + row * x_stride;
#pragma unroll 4
    for (std::int64_t d = lane * kWidth; d < dim; d += lanes * kWidth) {
      const Pack<T, kWidth> values = load_pack<kWidth>(mine + d), weights = load_pack<kWidth>(w + d);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum += static_cast<float>(values.at[i]) * static_cast<float>(weights.at[i]);
    }
  }
  sum = sum_of_group(sum, lanes);  // all lanes of the warp are here, also those without a row
  if (row < rows && lane == 0) y[row * y_stride] = static_cast<T>(sum);
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(const T* __restrict__ x, std::int64_t x_stride, const T* __restrict__ w, const T* __restrict__ dy,
                    std::int64_t dy_stride, T* __restrict__ dx, std::int64_t dx_stride, float* __restrict__ partial,
                    std::int64_t rows, std::int64_t dim, int lanes, std::int64_t rows_of_chunk) {
  __shared__ float parts[kThreads * kWidth];  // [group][lane][element]
  const int lane = static_cast<int>(threadIdx.x) % lanes, group = static_cast<int>(threadIdx.x) / lanes;
  const int groups = kThreads / lanes, columns = lanes * kWidth;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * columns + lane * kWidth;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * rows_of_chunk;
  const std::int64_t end = min(first + rows_of_chunk, rows);

  float sums[kWidth] = {};
  if (column < dim) {
    float weights[kWidth];
    const Pack<T, kWidth> packed = load_pack<kWidth>(w + column);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) weights[i] = static_cast<float>(packed.at[i]);
#pragma unroll 4
    for (std::int64_t row = first + group; row < end; row += groups) {
      const float g = static_cast<float>(dy[row * dy_stride]);
      const Pack<T, kWidth> values = load_pack<kWidth>(x + row * x_stride + column);
      Pack<T, kWidth> gradient;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        sums[i] += static_cast<float>(values.at[i]) * g;
        gradient.at[i] = static_cast<T>(weights[i] * g);
      }
      store_pack(dx + row * dx_stride + column, gradient);
    }
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) parts[static_cast<int>(threadIdx.x) * kWidth + i] = sums[i];
  __syncthreads();  // (1)
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += kThreads) {
    const std::int64_t to = static_cast<std::int64_t>(blockIdx.x) * columns + c;
    if (to >= dim) continue;
    float sum = 0;
    for (int g = 0; g < groups; ++g) sum += parts[g * columns + c];
    partial[static_cast<std::int64_t>(blockIdx.y) * dim + to] = sum;
  }
}

// dw[c] = Σ over chunks: slice s of a block adds chunks s, s + kSlicesOfSum, …; then the slices in order.
template <typename T>
__global__ void __launch_bounds__(kColumnsOfSum* kSlicesOfSum)
    sum_kernel(const float* __restrict__ partial, std::int64_t chunks, std::int64_t dim, T* __restrict__ dw) {
  __shared__ float parts[kSlicesOfSum][kColumnsOfSum];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumnsOfSum + threadIdx.x;
  float sum = 0;
  if (column < dim) {
#pragma unroll 8
    for (std::int64_t chunk = threadIdx.y; chunk < chunks; chunk += kSlicesOfSum) sum += partial[chunk * dim + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();  // (2)
  if (threadIdx.y != 0 || column >= dim) return;
  float total = 0;
#pragma unroll
  for (int slice = 0; slice < kSlicesOfSum; ++slice) total += parts[slice][threadIdx.x];
  dw[column] = static_cast<T>(total);
}

template <typename T, int kWidth>
void launch_forward(const Problem& problem, const ForwardArgs& args, cudaStream_t stream) {
  using E = Element<T>;
  const Cut cut = cut_of(problem, kWidth);
  const auto blocks = static_cast<unsigned>((problem.rows + cut.groups - 1) / cut.groups);
  forward_kernel<E, kWidth><<<blocks, kThreads, 0, stream>>>(
      static_cast<const E*>(args.x.data), args.x.stride(0), static_cast<const E*>(args.w.data),
      static_cast<E*>(args.y.data), args.y.stride(0), problem.rows, problem.dim, cut.lanes);
  device::check_launch("forward_kernel of weighted_sum");
}

template <typename T, int kWidth>
void launch_backward(const Problem& problem, const BackwardArgs& args, float* partial, cudaStream_t stream) {
  using E = Element<T>;
  const Cut cut = cut_of(problem, kWidth);
  const dim3 grid(static_cast<unsigned>(cut.tiles), static_cast<unsigned>(cut.chunks));
  backward_kernel<E, kWidth><<<grid, kThreads, 0, stream>>>(
      static_cast<const E*>(args.x.data), args.x.stride(0), static_cast<const E*>(args.w.data),
      static_cast<const E*>(args.dy.data), args.dy.stride(0), static_cast<E*>(args.dx.data), args.dx.stride(0), partial,
      problem.rows, problem.dim, cut.lanes, cut.rows_of_chunk);
  device::check_launch("backward_kernel of weighted_sum");
  const auto blocks = static_cast<unsigned>((problem.dim + kColumnsOfSum - 1) / kColumnsOfSum);
  sum_kernel<E><<<blocks, dim3(kColumnsOfSum, kSlicesOfSum), 0, stream>>>(partial, cut.chunks, problem.dim,
                                                                          static_cast<E*>(args.dw.data));
  device::check_launch("sum_kernel of weighted_sum");
}

}  // namespace

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream) {
  const cudaStream_t queue = device::cuda_stream(stream);
  with_storage(problem.dtype, [&]<typename T>() {
    constexpr int kWide = kWidest<T>;
    if (takes_packs(args.x, kWide) && takes_packs(args.w, kWide)) {
      launch_forward<T, kWide>(problem, args, queue);
    } else {
      launch_forward<T, 1>(problem, args, queue);
    }
  });
}

// Enough for either vector width, whichever gives more chunks.
std::size_t cuda_partial_bytes(const Problem& problem) {
  const int widest = kVectorBytes / static_cast<int>(size_of(problem.dtype));
  const std::int64_t chunks = std::max(cut_of(problem, 1).chunks, cut_of(problem, widest).chunks);
  return static_cast<std::size_t>(chunks * problem.dim) * sizeof(float);
}

void cuda_backward(const Problem& problem, const BackwardArgs& args, float* partial, device::Stream stream) {
  const cudaStream_t queue = device::cuda_stream(stream);
  with_storage(problem.dtype, [&]<typename T>() {
    constexpr int kWide = kWidest<T>;
    if (takes_packs(args.x, kWide) && takes_packs(args.dx, kWide) && takes_packs(args.w, kWide)) {
      launch_backward<T, kWide>(problem, args, partial, queue);
    } else {
      launch_backward<T, 1>(problem, args, partial, queue);
    }
  });
}

}  // namespace syslab::weighted_sum
