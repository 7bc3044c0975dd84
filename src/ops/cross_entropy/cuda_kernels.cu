// The cross-entropy on a GPU: a block a row, and every logit comes from memory once.
//
// A thread takes its part of the row four vectors of 16 bytes at a time (single elements where rows are not aligned to
// 16 bytes), the four loads in flight together, and keeps the largest logit and the sum of exponentials relative to it;
// when a larger logit comes, the sum so far is rescaled (the online softmax of Milakov & Gimelshein, 2018). The
// threads' pairs are merged by shuffles in a warp and through shared memory between warps, in one order: one barrier a
// row.
//
//   forward           reads the row.
//   backward          reads the row and lse, writes the gradient: nothing to merge.
//   forward_backward  keeps the row in registers (4 or 8 vectors a thread, up to 1024 threads: 65,536 classes in half
//                     precision, 32,768 in fp32) and writes the gradient from there. A longer row is read twice, the
//                     second time mostly from the L2 cache: 132 rows of 152k classes are 40 MB.
//
// The mean of the rows' losses is a kernel of one block, launched while the rows' kernel still runs.
//
// An element costs one exponential forward, one backward; the special-function units of an H100 make 132·16 a clock,
// 3.5e12 a second: 20.5e6 logits take 6 µs a pass, against the 14 µs that their 41 MB take in bf16.
//
// Napkin, 2048 × 10,000 in bf16, H100 (2.5–3.0 TB/s at such sizes): forward 41 MB, 14–16 µs; backward and
// forward_backward 82 MB, 28–32 µs; the mean adds 1–2 µs.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   (1) merged(), block
//       landed   The warps' parts are there for all threads.
//       left     The first thread has read the target's logit, which another thread may overwrite with its gradient.
//                All other logits are read and overwritten by the same thread. Nothing overwrites the warps' parts: a
//                kernel merges once. A second call would need a barrier before it stores its parts.
//   (2) mean_kernel, block
//       landed   The warps' sums are there for the first thread.
//       left     Nothing is overwritten any more.
//   kernels      Each begins with wait_for_kernels_before: logits, and for the mean the rows' losses, have landed;
//                earlier kernels have left what is overwritten.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/cross_entropy/cuda_kernels.hpp"
#include "ops/pack_elements.cuh"
#include "ops/storage.hpp"

namespace syslab::cross_entropy {
namespace {

using ops::Element;
using ops::load_pack;
using ops::Pack;
using ops::store_pack;

constexpr int kUnroll = 4;
constexpr int kMostThreads = 640;         // of a block that holds four vectors a thread or streams
constexpr int kMostThreadsOfLong = 1024;  // of one that holds eight
constexpr int kMeanThreads = 1024;
constexpr float kLog2E = 1.44269504088896340736F;

// e^x. The product with log₂e is not folded into the difference before it, which needs the precision.
__device__ __forceinline__ float exponential(float x) { return ptx::exp2_approx(x * kLog2E); }

// A row as `head` single elements, whole vectors from 16 bytes on, and single elements again: fewer than two vectors'
// worth of them, so that a warp has a thread for each. 32 bits within a row (kMostClasses); rows are found with 64.
struct Row {
  int classes, head, packs;
};

template <int kWidth, typename T>
__device__ __forceinline__ Row row_from(const T* row, int classes) {
  if constexpr (kWidth == 1) return {classes, 0, classes};
  const int beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T)) % kWidth;
  const int head = min((kWidth - beyond) % kWidth, classes);
  return {classes, head, (classes - head) / kWidth};
}

// The largest of some logits and Σ exp(z − largest); (−∞, 0) for no logits.
struct Part {
  float largest = -INFINITY, sum = 0;
};

// Subtracted from logits of at most `largest`. Never −∞, since −∞ − (−∞) is NaN.
__device__ __forceinline__ float base_of(float largest) { return largest == -INFINITY ? 0.0F : largest; }

__device__ __forceinline__ void rescale(Part& part, float largest) {
  part.sum *= exponential(part.largest - base_of(largest));
  part.largest = largest;
}

template <typename T, int kWidth>
__device__ __forceinline__ float largest_of(const Pack<T, kWidth>& pack, float largest) {
  if constexpr (ops::kInWords<T, kWidth>) {
    // Two at a time. A NaN never becomes the largest, here and in fmaxf, but it reaches the sum.
    using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
    const auto* pairs = reinterpret_cast<const Pair*>(&pack);
    Pair most = pairs[0];
#pragma unroll
    for (int i = 1; i < kWidth / 2; ++i) most = __hmax2(most, pairs[i]);
    return fmaxf(largest, fmaxf(static_cast<float>(most.x), static_cast<float>(most.y)));
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) largest = fmaxf(largest, ops::element(pack, i));
    return largest;
  }
}

template <typename T, int kWidth>
__device__ __forceinline__ float sum_of(const Pack<T, kWidth>& pack, float base) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sum += exponential(ops::element(pack, i) - base);
  return sum;
}

template <int kCount, typename T, int kWidth>
__device__ __forceinline__ void load_packs(Pack<T, kWidth> (&packs)[kCount], const T* row, int first, int end) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const int at = first + n * static_cast<int>(blockDim.x);
    if (at < end) packs[n] = load_pack<kWidth>(row + at * kWidth);
  }
}

template <int kCount, typename T, int kWidth>
__device__ __forceinline__ void add_packs(Part& part, const Pack<T, kWidth> (&packs)[kCount], int first, int end) {
  float largest = part.largest;
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    if (first + n * static_cast<int>(blockDim.x) < end) largest = largest_of(packs[n], largest);
  }
  rescale(part, largest);
  const float base = base_of(largest);
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    if (first + n * static_cast<int>(blockDim.x) < end) part.sum += sum_of(packs[n], base);
  }
}

// The index of this thread's single element, before or after the vectors; −1 if it has none.
__device__ __forceinline__ int single_of(const Row& shape, int width) {
  const int thread = static_cast<int>(threadIdx.x), at = thread < shape.head ? thread : shape.packs * width + thread;
  return at < shape.classes ? at : -1;
}

template <int kWidth, typename T>
__device__ __forceinline__ void add_single(Part& part, const T* row, const Row& shape) {
  const int at = kWidth > 1 ? single_of(shape, kWidth) : -1;
  if (at < 0) return;
  const auto z = static_cast<float>(row[at]);
  rescale(part, fmaxf(part.largest, z));
  part.sum += exponential(z - base_of(part.largest));
}

// Σ in a warp; all lanes get it.
__device__ __forceinline__ Part merged_in_warp(Part part) {
  float largest = part.largest;
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, apart));
  rescale(part, largest);
  part.sum = ops::warp_sum(part.sum);
  return part;
}

// Σ in the block; all threads get it.
__device__ __forceinline__ Part merged(Part part) {
  __shared__ Part parts[32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  part = merged_in_warp(part);
  if (lane == 0) parts[warp] = part;
  __syncthreads();  // (1)
  Part other;
  if (lane < static_cast<int>(blockDim.x) / 32) other = parts[lane];
  return merged_in_warp(other);
}

template <int kWidth, typename T>
__device__ __forceinline__ Part part_of_row(const T* row, const Row& shape) {
  Part part;
  Pack<T, kWidth> packs[kUnroll];
  for (int at = static_cast<int>(threadIdx.x); at < shape.packs; at += kUnroll * static_cast<int>(blockDim.x)) {
    load_packs(packs, row + shape.head, at, shape.packs);
    add_packs(part, packs, at, shape.packs);
  }
  add_single<kWidth>(part, row, shape);
  return part;
}

struct Columns {
  float *row_loss, *lse;
};

// The block's target; −1 if it is not a class.
__device__ __forceinline__ int target_of(const std::int64_t* targets, int classes) {
  const std::int64_t target = targets[blockIdx.x];
  return target >= 0 && target < classes ? static_cast<int>(target) : -1;
}

// The target's logit; NaN if the target is not a class. Must be read before barrier (1): after it the gradient may
// overwrite the logits.
template <typename T>
__device__ __forceinline__ float logit_at(const T* row, int target) {
  return target >= 0 ? static_cast<float>(row[target]) : NAN;
}

// By one thread. log S − (z_target − largest): values of similar size are subtracted first.
__device__ __forceinline__ void store_loss(const Columns& columns, const Part& part, float at_target) {
  const float log_sum = logf(part.sum), base = base_of(part.largest);
  columns.lse[blockIdx.x] = base + log_sum;
  columns.row_loss[blockIdx.x] = log_sum - (at_target - base);
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kMostThreads, kWidth > 1 ? 3 : 2)
    forward_kernel(const T* logits, std::int64_t stride, const std::int64_t* targets, int classes, Columns columns) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const T* row = logits + blockIdx.x * stride;
  const Row shape = row_from<kWidth>(row, classes);
  const float at_target = threadIdx.x == 0 ? logit_at(row, target_of(targets, classes)) : 0;
  const Part part = merged(part_of_row<kWidth>(row, shape));
  if (threadIdx.x == 0) store_loss(columns, part, at_target);
}

// (exp(z − base)·factor − [the target])·share, where factor·share is given as `scaled`.
struct Slope {
  float base, factor, share, scaled;
};

template <int kWidth, typename T>
__device__ __forceinline__ Pack<T, kWidth> gradient_of(const Pack<T, kWidth>& logits, int first, const Slope& slope,
                                                       int target) {
  float gradient[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) gradient[i] = exponential(ops::element(logits, i) - slope.base) * slope.scaled;
  if (target >= first && target < first + kWidth) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (first + i == target) {
        const float p = exponential(ops::element(logits, i) - slope.base) * slope.factor;
        gradient[i] = (p - 1.0F) * slope.share;
      }
    }
  }
  return ops::to_pack<T>(gradient);
}

template <int kCount, typename T, int kWidth>
__device__ __forceinline__ void store_gradients(const Pack<T, kWidth> (&packs)[kCount], T* gradient, int first,
                                                const Row& shape, const Slope& slope, int target) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const int at = first + n * static_cast<int>(blockDim.x);
    if (at >= shape.packs) break;
    const int column = shape.head + at * kWidth;
    store_pack(gradient + column, gradient_of<kWidth>(packs[n], column, slope, target));
  }
}

template <int kWidth, typename T>
__device__ __forceinline__ void store_single(const T* row, T* gradient, const Row& shape, const Slope& slope,
                                             int target) {
  const int at = kWidth > 1 ? single_of(shape, kWidth) : -1;
  if (at >= 0) store_pack(gradient + at, gradient_of<1>(load_pack<1>(row + at), at, slope, target));
}

// The gradient of a row that is read again. Each element is read and then written by the same thread, so the gradient
// may overwrite the logits.
template <int kWidth, typename T>
__device__ __forceinline__ void store_row(const T* row, T* gradient, const Row& shape, const Slope& slope, int target) {
  Pack<T, kWidth> packs[kUnroll];
  for (int at = static_cast<int>(threadIdx.x); at < shape.packs; at += kUnroll * static_cast<int>(blockDim.x)) {
    load_packs(packs, row + shape.head, at, shape.packs);
    store_gradients(packs, gradient, at, shape, slope, target);
  }
  store_single<kWidth>(row, gradient, shape, slope, target);
}

// scale / rows; NaN if the target is not a class, which makes the whole row NaN.
__device__ __forceinline__ float share_of(const float* scale, float rows, int target) {
  if (target < 0) return NAN;
  return (scale == nullptr ? 1.0F : *scale) / rows;
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kMostThreads, 2)
    backward_kernel(const T* logits, std::int64_t stride, const std::int64_t* targets, const float* lse,
                    const float* scale, int classes, float rows, T* gradients, std::int64_t gradient_stride) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const int target = target_of(targets, classes);
  const float share = share_of(scale, rows, target);
  const Slope slope{lse[blockIdx.x], 1.0F, share, share};
  const T* row = logits + blockIdx.x * stride;
  const Row shape = row_from<kWidth>(row, classes);
  store_row<kWidth>(row, gradients + blockIdx.x * gradient_stride, shape, slope, target);
}

// kHeld vectors a thread hold the row; 0 means that it is read again.
template <typename T, int kWidth, int kHeld>
__global__ void __launch_bounds__(kHeld > kUnroll ? kMostThreadsOfLong : kMostThreads, kHeld > kUnroll ? 1 : 2)
    forward_backward_kernel(const T* logits, std::int64_t stride, const std::int64_t* targets, const float* scale,
                            int classes, float rows, Columns columns, T* gradients, std::int64_t gradient_stride) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const T* row = logits + blockIdx.x * stride;
  T* gradient = gradients + blockIdx.x * gradient_stride;
  const int target = target_of(targets, classes);
  const float share = share_of(scale, rows, target), at_target = threadIdx.x == 0 ? logit_at(row, target) : 0;
  const Row shape = row_from<kWidth>(row, classes);
  [[maybe_unused]] Pack<T, kWidth> packs[std::max(kHeld, 1)];
  Part part;
  if constexpr (kHeld > 0) {
    load_packs(packs, row + shape.head, threadIdx.x, shape.packs);
    add_packs(part, packs, threadIdx.x, shape.packs);
    add_single<kWidth>(part, row, shape);
  } else {
    part = part_of_row<kWidth>(row, shape);
  }
  part = merged(part);
  const float factor = 1.0F / part.sum;
  const Slope slope{base_of(part.largest), factor, share, factor * share};
  if (threadIdx.x == 0) store_loss(columns, part, at_target);
  if constexpr (kHeld > 0) {
    store_gradients(packs, gradient, threadIdx.x, shape, slope, target);
    store_single<kWidth>(row, gradient, shape, slope, target);
  } else {
    store_row<kWidth>(row, gradient, shape, slope, target);
  }
}

// By one block, in double; the order depends only on the number of rows.
__global__ void __launch_bounds__(kMeanThreads) mean_kernel(const float* row_loss, std::int64_t rows, float* loss) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  __shared__ double parts[kMeanThreads / 32];
  double sum = 0;
#pragma unroll 4
  for (std::int64_t row = threadIdx.x; row < rows; row += kMeanThreads) sum += static_cast<double>(row_loss[row]);
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0U, sum, apart);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();  // (2)
  if (threadIdx.x != 0) return;
  double total = 0;
  for (const double part : parts) total += part;
  *loss = static_cast<float>(total / static_cast<double>(rows));
}

// --- launching ---

// Threads that cover the row in the fewest steps of `held` vectors a thread.
int threads_of(std::int64_t packs, int held, int most) {
  const std::int64_t steps = std::max<std::int64_t>((packs + most * held - 1) / (most * held), 1);
  const std::int64_t threads = (packs + steps * held - 1) / (steps * held);
  return static_cast<int>(std::clamp<std::int64_t>((threads + 31) / 32 * 32, 32, most));
}

// Rows of both have the same offset from a multiple of 16 bytes, so both have the same vectors.
bool lie_alike(const ConstTensorView& a, const ConstTensorView& b) {
  const auto place = [](const ConstTensorView& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
  const auto apart = static_cast<std::uint64_t>(a.stride(0) - b.stride(0)) * size_of(a.dtype);
  return (place(a) - place(b)) % ops::kVectorBytes == 0 && (a.size(0) == 1 || apart % ops::kVectorBytes == 0);
}

// Calls body.template operator()<element type, vector width>().
template <typename Body>
void with_width(DType dtype, bool in_vectors, Body&& body) {
  ops::with_storage(dtype, [&]<typename T>() {
    if (in_vectors) return body.template operator()<Element<T>, ops::kVectorBytes / static_cast<int>(sizeof(T))>();
    return body.template operator()<Element<T>, 1>();
  });
}

dim3 blocks_of(const Problem& problem) { return dim3(static_cast<unsigned>(problem.rows)); }

template <typename T>
const T* memory(const ConstTensorView& view) {
  return static_cast<const T*>(view.data);
}

void launch_mean(const Problem& problem, const TensorView& row_loss, const TensorView& loss, device::Stream stream) {
  static device::OverlappedKernel launcher(mean_kernel, 0, "mean_kernel of cross_entropy");
  launcher.launch(dim3(1), kMeanThreads, stream, row_loss.as<float>(), problem.rows, loss.as<float>());
}

template <typename T, int kWidth, int kHeld>
void launch_both(const Problem& problem, const ForwardBackwardArgs& args, int threads, device::Stream stream) {
  static device::OverlappedKernel launcher(forward_backward_kernel<T, kWidth, kHeld>, 0,
                                           "forward_backward_kernel of cross_entropy");
  launcher.launch(blocks_of(problem), threads, stream, memory<T>(args.logits), args.logits.stride(0), args.targets,
                  memory<float>(args.scale), static_cast<int>(problem.classes), static_cast<float>(problem.rows),
                  Columns{args.row_loss.as<float>(), args.lse.as<float>()}, static_cast<T*>(args.dlogits.data),
                  args.dlogits.stride(0));
}

}  // namespace

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream) {
  with_width(problem.dtype, true, [&]<typename T, int kWidth>() {
    static device::OverlappedKernel launcher(forward_kernel<T, kWidth>, 0, "forward_kernel of cross_entropy");
    launcher.launch(blocks_of(problem), threads_of(problem.classes / kWidth, kUnroll, kMostThreads), stream,
                    memory<T>(args.logits), args.logits.stride(0), args.targets, static_cast<int>(problem.classes),
                    Columns{args.row_loss.as<float>(), args.lse.as<float>()});
  });
  launch_mean(problem, args.row_loss, args.loss, stream);
}

void cuda_backward(const Problem& problem, const BackwardArgs& args, device::Stream stream) {
  with_width(problem.dtype, lie_alike(args.logits, args.dlogits), [&]<typename T, int kWidth>() {
    static device::OverlappedKernel launcher(backward_kernel<T, kWidth>, 0, "backward_kernel of cross_entropy");
    launcher.launch(blocks_of(problem), threads_of(problem.classes / kWidth, kUnroll, kMostThreads), stream,
                    memory<T>(args.logits), args.logits.stride(0), args.targets, memory<float>(args.lse),
                    memory<float>(args.scale), static_cast<int>(problem.classes), static_cast<float>(problem.rows),
                    static_cast<T*>(args.dlogits.data), args.dlogits.stride(0));
  });
}

void cuda_forward_backward(const Problem& problem, const ForwardBackwardArgs& args, device::Stream stream) {
  with_width(problem.dtype, lie_alike(args.logits, args.dlogits), [&]<typename T, int kWidth>() {
    const std::int64_t packs = problem.classes / kWidth;
    if constexpr (kWidth > 1) {
      if (packs <= kUnroll * kMostThreads) {
        return launch_both<T, kWidth, kUnroll>(problem, args, threads_of(packs, kUnroll, kMostThreads), stream);
      }
      if (packs <= 2 * kUnroll * kMostThreadsOfLong) {
        const int threads = threads_of(packs, 2 * kUnroll, kMostThreadsOfLong);
        return launch_both<T, kWidth, 2 * kUnroll>(problem, args, threads, stream);
      }
    }
    launch_both<T, kWidth, 0>(problem, args, threads_of(packs, kUnroll, kMostThreads), stream);
  });
  launch_mean(problem, args.row_loss, args.loss, stream);
}

}  // namespace syslab::cross_entropy
