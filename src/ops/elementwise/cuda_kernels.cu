// Element-wise operators on a GPU: packs of four elements, four a thread in flight: fp32 moves in vectors of 16 bytes
// and half precision in vectors of 8, so that the lanes of a warp always write adjacent vectors (with eight elements a
// pack, fp32 would be written in two goes of every other 16 bytes: measured 0.76 of a copy). A matrix with rows that
// follow one another is taken as one row; otherwise blocks stride over the rows. Rows that do not begin at 16 bytes are
// taken an element at a time.
//
// Napkin: the bytes read and written at the speed of a copy. 2048 × 768 from bf16 to fp32 are 9.4 MB, which an H100's
// L2 cache holds: 3–4 µs.
//
// What waits for what. Threads share nothing, so there is no barrier. wait_for_kernels_before: the inputs have landed,
// and earlier kernels have left what is overwritten.
#include <algorithm>
#include <cstdint>

#include "core/split_float.hpp"
#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/elementwise/cuda_kernels.hpp"
#include "ops/pack_elements.cuh"
#include "ops/storage.hpp"

namespace syslab::elementwise {
namespace {

using ops::Element;
using ops::load_pack;

constexpr int kThreads = 256, kUnroll = 4, kWidth = 4;
constexpr std::int64_t kMostRowsOfBlocks = 32768;

// --- what is done: values(row, at, out) gives kCount elements from column `at` on ---

template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;

  __device__ T* at(std::int64_t row, std::int64_t column) const { return data + row * stride + column; }
};

template <typename X>
struct Cast {
  Matrix<const X> x;

  template <int kCount>
  __device__ __forceinline__ void values(std::int64_t row, std::int64_t at, float (&out)[kCount]) const {
    const auto pack = load_pack<kCount>(x.at(row, at));
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = ops::element(pack, i);
  }
};

template <typename A, typename B>
struct Add {
  Matrix<const A> a;
  Matrix<const B> b;

  template <int kCount>
  __device__ __forceinline__ void values(std::int64_t row, std::int64_t at, float (&out)[kCount]) const {
    const auto left = load_pack<kCount>(a.at(row, at));
    const auto right = load_pack<kCount>(b.at(row, at));
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = ops::element(left, i) + ops::element(right, i);
  }
};

struct Fill {
  float value;

  template <int kCount>
  __device__ __forceinline__ void values(std::int64_t, std::int64_t, float (&out)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = value;
  }
};

template <int kCount, typename Work, typename Y>
__global__ void __launch_bounds__(kThreads) kernel(Work work, Matrix<Y> y, Problem problem) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t packs = problem.dim / kCount;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  for (std::int64_t row = blockIdx.y; row < problem.rows; row += gridDim.y) {
    float values[kUnroll][kCount];
#pragma unroll
    for (int n = 0; n < kUnroll; ++n) {
      const std::int64_t at = first + n * kThreads;
      if (at < packs) work.values(row, at * kCount, values[n]);
    }
#pragma unroll
    for (int n = 0; n < kUnroll; ++n) {
      const std::int64_t at = first + n * kThreads;
      if (at < packs) ops::store_pack(y.at(row, at * kCount), ops::to_pack<Y>(values[n]));
    }
    const std::int64_t tail = packs * kCount + threadIdx.x;  // fewer than a block has threads
    if (kCount > 1 && blockIdx.x == 0 && tail < problem.dim) {
      float value[1];
      work.values(row, tail, value);
      ops::store_pack(y.at(row, tail), ops::to_pack<Y>(value));
    }
  }
}

// --- halves of floats: an element a thread, since weights are split once and joined where they are few ---

__global__ void __launch_bounds__(kThreads)
    split_kernel(Matrix<const float> x, Matrix<std::uint16_t> high, Matrix<std::uint16_t> low, Problem problem) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= problem.dim) return;
  for (std::int64_t row = blockIdx.y; row < problem.rows; row += gridDim.y) {
    const SplitFloat halves = split_bits(__float_as_uint(*x.at(row, at)));
    *high.at(row, at) = halves.high;
    *low.at(row, at) = halves.low;
  }
}

__global__ void __launch_bounds__(kThreads) join_kernel(const std::uint16_t* high, const std::uint16_t* low,
                                                        const std::int64_t* offsets, Matrix<float> y, Problem problem) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= problem.dim) return;
  for (std::int64_t row = blockIdx.y; row < problem.rows; row += gridDim.y) {
    const std::int64_t from = offsets[row] + at;
    *y.at(row, at) = __uint_as_float(joined_bits({high[from], low[from]}));
  }
}

// --- launching ---

template <int kCount, typename Work, typename Y>
void launch_packs(const Work& work, const Matrix<Y>& y, const Problem& problem, device::Stream stream) {
  static device::OverlappedKernel launcher(kernel<kCount, Work, Y>, 0, "kernel of elementwise");
  constexpr std::int64_t kOfABlock = std::int64_t{kThreads} * kUnroll * kCount;
  const auto across = static_cast<unsigned>((problem.dim + kOfABlock - 1) / kOfABlock);
  const auto down = static_cast<unsigned>(std::min(problem.rows, kMostRowsOfBlocks));
  launcher.launch(dim3(across, down), kThreads, stream, work, y, problem);
}

template <typename Work, typename Y>
void launch(const Work& work, const Matrix<Y>& y, const Problem& problem, bool aligned, device::Stream stream) {
  if (aligned) return launch_packs<kWidth>(work, y, problem, stream);
  launch_packs<1>(work, y, problem, stream);
}

template <typename T>
Matrix<T> matrix(const TensorView& view) {
  return {static_cast<T*>(view.data), view.stride(0)};
}
template <typename T>
Matrix<const T> matrix(const ConstTensorView& view) {
  return {static_cast<const T*>(view.data), view.stride(0)};
}

// One long row if the rows of every matrix are contiguous.
template <typename... Views>
Problem joined(const Problem& problem, const Views&... views) {
  if (((views.stride(0) == problem.dim) && ...)) return {1, problem.rows * problem.dim};
  return problem;
}

}  // namespace

void cuda_cast(const Problem& asked, const CastArgs& args, device::Stream stream) {
  const Problem problem = joined(asked, args.x, args.y);
  const bool aligned = ops::rows_are_aligned(args.x) && ops::rows_are_aligned(args.y);
  ops::with_storage(args.x.dtype, [&]<typename X>() {
    ops::with_storage(args.y.dtype, [&]<typename Y>() {
      launch(Cast<Element<X>>{matrix<Element<X>>(args.x)}, matrix<Element<Y>>(args.y), problem, aligned, stream);
    });
  });
}

void cuda_add(const Problem& asked, const AddArgs& args, device::Stream stream) {
  const Problem problem = joined(asked, args.a, args.b, args.y);
  const bool aligned = ops::rows_are_aligned(args.a) && ops::rows_are_aligned(args.b) && ops::rows_are_aligned(args.y);
  ops::with_storage(args.a.dtype, [&]<typename A>() {
    ops::with_storage(args.b.dtype, [&]<typename B>() {
      const Add<Element<A>, Element<B>> work{matrix<Element<A>>(args.a), matrix<Element<B>>(args.b)};
      if (args.y.dtype == DType::f32) return launch(work, matrix<float>(args.y), problem, aligned, stream);
      if constexpr (std::is_same_v<A, B>) launch(work, matrix<Element<A>>(args.y), problem, aligned, stream);
    });
  });
}

void cuda_fill(const Problem& asked, const FillArgs& args, device::Stream stream) {
  const Problem problem = joined(asked, args.y);
  ops::with_storage(args.y.dtype, [&]<typename Y>() {
    launch(Fill{static_cast<float>(args.value)}, matrix<Element<Y>>(args.y), problem, ops::rows_are_aligned(args.y),
           stream);
  });
}

namespace {

dim3 grid_of_elements(const Problem& problem) {
  return dim3(static_cast<unsigned>((problem.dim + kThreads - 1) / kThreads),
              static_cast<unsigned>(std::min(problem.rows, kMostRowsOfBlocks)));
}

}  // namespace

void cuda_split(const Problem& asked, const SplitArgs& args, device::Stream stream) {
  static device::OverlappedKernel launcher(split_kernel, 0, "split of elementwise");
  const Problem problem = joined(asked, args.x, args.high, args.low);
  launcher.launch(grid_of_elements(problem), kThreads, stream, matrix<float>(args.x), matrix<std::uint16_t>(args.high),
                  matrix<std::uint16_t>(args.low), problem);
}

void cuda_join(const Problem& problem, const JoinArgs& args, device::Stream stream) {
  static device::OverlappedKernel launcher(join_kernel, 0, "join of elementwise");
  launcher.launch(grid_of_elements(problem), kThreads, stream, static_cast<const std::uint16_t*>(args.high.data),
                  static_cast<const std::uint16_t*>(args.low.data), args.offsets, matrix<float>(args.y), problem);
}

}  // namespace syslab::elementwise
