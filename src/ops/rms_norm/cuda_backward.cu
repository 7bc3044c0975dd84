// The normalisation on a GPU, backward: dx a row at a time, dw without atomics, in one of two ways.
//
// Few rows (dy and h are 8 MB or less): one kernel, with blocks of two roles.
//   rows      a row group (cuda_rows.cuh) loads whole rows of dy, h and dh, computes the row's sum and writes dx
//   columns   a block reads dy and h of 32 bytes' worth of columns down all rows, mostly from L2, since the other role
//             reads them too; it writes their dw: a sum in fixed order, no parts in memory, no second kernel
//   A second kernel would wait for the first to end and the next for it: about 3 µs, as long as the work itself.
//   But blocks of columns stay until the last row is read, and take space from blocks of rows: at 2,560 bf16 columns
//   they are 160 of the 264 blocks that run at once (112 registers a thread), and 2,048 rows of these take 19.3 µs on
//   an H200 where a copy takes 12.0. That cost grows with the bytes, the 3 µs of a second kernel do not; near 8 MB they
//   are equal.
//
// Many rows: two kernels.
//   block     512 threads and a chunk of rows, about one block a multiprocessor: each stores a row of parts of dw
//   a lane    keeps its columns' part of dw in registers down all its rows; the next row is copied to
//             the lane's own slots of shared memory by cp.async, while this row's sum is computed
//   w         is read again for every row, from L1, to save registers
//   dw        the groups' parts are added in shared memory, in order; the second kernel adds up the blocks' rows, in
//             order, all loads of a thread under way together. Its blocks are resident before the first kernel ends
//
// How rows and columns are cut depends on the shape alone, so the bits are the same every time and on every GPU.
//
// Napkin, rows 2,048, dim 768, bf16: dy, h, dh and dx are 12.6 MB, 4.2 µs at 3.0 TB/s; the columns' role reads 6.3 MB
// again, from L2.
//
// Rows too long for the registers (8,192 columns of fp32), and those not aligned to 16 bytes, are read twice by a
// block, an element a lane; its parts of dw are in its row of global memory, which stays in L1 and L2.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//
//   cp.async   One group a row. A thread copies and reads only its own slots, so its own wait is enough: no barrier. It
//              has loaded a row into registers before it queues the copy of the next one to the same slots.
//   (1) group_sum(), the threads of one row group: named barriers 1 … 8 (512 threads, groups of 64 or more), so that
//       groups with more rows do not hold up others
//       landed   The sums of the group's warps are there for all its lanes.
//       left     The half of `parts` that the next call overwrites. Calls take the two halves in turn, so that half was
//                read in the call before this one, and each lane came to this barrier after that. With one half a
//                second barrier a row would be needed.
//   (2) backward_kernel, after the last row, block
//       landed   Nothing.
//       left     All threads have read their slots, and no copies are under way (each was waited for by the thread that
//                queued it). The parts of dw are stored over the slots of other threads.
//   (3) after the parts were stored, block
//       landed   The parts of all groups are there: a thread adds up four columns. Nothing is overwritten any more.
//   (4) column_sums(), block
//       landed   The sums of all warps are there for the threads that add up a column. Nothing is overwritten any more.
//   (5) sum_kernel, block
//       landed   The sums of all slices are there. Nothing is overwritten any more.
//   kernels      wait_for_kernels_before: the inputs, and for sum_kernel the blocks' rows, have landed; sum_kernel of
//                an earlier call has read those rows before they are overwritten. dx may be dh's memory: each element
//                is read and then written by the same thread, and the columns' role does not read dh.
#include "ops/rms_norm/cuda_rows.cuh"

namespace syslab::rms_norm {
namespace {

constexpr int kThreads = 512;
// Of a thread, so that a multiprocessor with a block has room for one of the second kernel. Rows of fp32 need more
// registers and leave none.
template <typename Y>
constexpr int kMostRegisters = sizeof(Y) == 4 ? 120 : 112;
constexpr std::int64_t kBlocks = 132;  // at most: an H100's multiprocessors; other GPUs take what comes
// Vectors of a lane: as many as fit 128 registers together with their sums.
template <typename X>
constexpr int kMostVectors = sizeof(X) == 2 ? 3 : 4;
constexpr int kLanesOfSum = 8, kSlicesOfSum = 32;
constexpr int kPartsOfSlice = static_cast<int>((kBlocks + kSlicesOfSum - 1) / kSlicesOfSum);
constexpr int kThreadsOfBoth = 256, kVectorsOfBoth = 4, kLanesOfColumns = 2;
constexpr std::int64_t kMostBytesOfBoth = 8'000'000;  // of dy and h

template <typename X, typename Y>
struct Params {
  Rows<const Y> dy;
  Rows<const X> h;
  const float* w;
  const float* rstd;
  Rows<const X> dh;  // null: nothing arrives
  Rows<X> dx;
  float* partial;  // (blocks, dim)
  std::int64_t rows;
  int rows_of_block, dim, lanes;
};

struct Cut {
  std::int64_t rows_of_block, blocks;
};

Cut cut_of(const Problem& p) {
  const std::int64_t rows_of_block = (p.rows + kBlocks - 1) / kBlocks;
  return {rows_of_block, (p.rows + rows_of_block - 1) / rows_of_block};
}

// The sum over a row group of whole warps; all its lanes get it. Groups do not wait for each other. Consecutive calls
// take different halves of `parts`, so that one barrier each is enough: (1).
__device__ __forceinline__ float group_sum(float value, int lanes, int half) {
  __shared__ float parts[2][kThreads / 32];
  value = ops::warp_sum(value);
  if (lanes == 32) return value;
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = lanes / 32, group = warp / warps;
  if (threadIdx.x % 32 == 0) parts[half][warp] = value;
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(lanes) : "memory");  // (1)
  float sum = 0;
  for (int i = 0; i < warps; ++i) sum += parts[half][group * warps + i];
  return sum;
}

// A thread's own bytes of one row, copied by cp.async. No other thread reads them, so they need no barrier.
template <typename X, typename Y, int kVectors>
struct Slots {
  static constexpr int kWidth = kWidest<X>;
  Pack<X, kWidth> h[kVectors][kThreads], dh[kVectors][kThreads];
  Pack<Y, kWidth> dy[kVectors][kThreads];
};

template <typename T, int kWidth>
__device__ __forceinline__ void fetch_pack(Pack<T, kWidth>& to, const T* from) {
  if constexpr (sizeof(to) == ops::kVectorBytes) {
    ptx::copy_async_16(ptx::shared_address(&to), from);
  } else {
    static_assert(sizeof(to) == 8);
    ptx::copy_async_8(ptx::shared_address(&to), from);
  }
}

template <typename X, typename Y, int kVectors, int kRegisters>
__global__ void __maxnreg__(kRegisters) backward_kernel(const Params<X, Y> p) {
  constexpr int kWidth = kWidest<X>;
  extern __shared__ float4 shared[];
  auto& slots = *reinterpret_cast<Slots<X, Y, kVectors>*>(shared);
  float* const gathered = reinterpret_cast<float*>(shared);  // (groups, dim), when all rows are done
  ptx::let_next_kernel_come();
  ptx::wait_for_kernels_before();
  const int thread = static_cast<int>(threadIdx.x), lane = thread & (p.lanes - 1), group = thread / p.lanes;
  const int groups = kThreads / p.lanes;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.rows_of_block;
  const int rows = static_cast<int>(min(static_cast<std::int64_t>(p.rows_of_block), p.rows - first));
  const auto column = [&](int n) { return (lane + n * p.lanes) * kWidth; };
  const float share = 1.0F / static_cast<float>(p.dim);

  const auto fetch = [&](int i) {
    if (i >= rows) return;
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      if (column(n) >= p.dim) continue;
      fetch_pack(slots.dy[n][thread], p.dy.at(first + i) + column(n));
      fetch_pack(slots.h[n][thread], p.h.at(first + i) + column(n));
      if (p.dh.data != nullptr) fetch_pack(slots.dh[n][thread], p.dh.at(first + i) + column(n));
    }
    ptx::commit_copies();
  };
  fetch(group);
  float next_rstd = group < rows ? p.rstd[first + group] : 0;

  Pack<float, kWidth> sums[kVectors] = {};
  int half = 0;
  for (int i = group; i < rows; i += groups, half ^= 1) {
    Pack<Y, kWidth> dy[kVectors];
    Pack<X, kWidth> h[kVectors], dh[kVectors];
    const float rstd = next_rstd;
    ptx::wait_copies<0>();
    float products = 0;
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      if (column(n) >= p.dim) continue;
      dy[n] = slots.dy[n][thread];
      h[n] = slots.h[n][thread];
      if (p.dh.data != nullptr) dh[n] = slots.dh[n][thread];
      const Pack<float, kWidth> w = load_pack<kWidth>(p.w + column(n));
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        products += w.at[e] * static_cast<float>(dy[n].at[e]) * static_cast<float>(h[n].at[e]);
      }
    }
    // Start the copy of the next row before waiting for this row's sum.
    fetch(i + groups);
    if (i + groups < rows) next_rstd = p.rstd[first + i + groups];
    const float c = group_sum(products, p.lanes, half) * rstd * share;
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      if (column(n) >= p.dim) continue;
      const Pack<float, kWidth> w = load_pack<kWidth>(p.w + column(n));
      ops::forget_conversions(dy[n]);
      ops::forget_conversions(h[n]);
      ops::forget_conversions(dh[n]);
      Pack<X, kWidth> dx;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        const float g = static_cast<float>(dy[n].at[e]), normed = static_cast<float>(h[n].at[e]) * rstd;
        sums[n].at[e] += g * normed;
        const float of_norm = rstd * (w.at[e] * g - normed * c);
        dx.at[e] = static_cast<X>(p.dh.data != nullptr ? static_cast<float>(dh[n].at[e]) + of_norm : of_norm);
      }
      store_pack(p.dx.at(first + i) + column(n), dx);
    }
  }

  __syncthreads();  // (2)
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (column(n) < p.dim) store_pack(gathered + group * p.dim + column(n), sums[n]);
  }
  __syncthreads();  // (3)
  for (int d = static_cast<int>(threadIdx.x) * 4; d < p.dim; d += kThreads * 4) {
    float4 sum = *reinterpret_cast<const float4*>(gathered + d);
    for (int g = 1; g < groups; ++g) {
      const float4 part = *reinterpret_cast<const float4*>(gathered + g * p.dim + d);
      sum = {sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w};
    }
    *reinterpret_cast<float4*>(p.partial + static_cast<std::int64_t>(blockIdx.x) * p.dim + d) = sum;
  }
}

// A block takes a row at a time and reads it twice. Each thread adds to its own columns of the block's parts.
template <typename X, typename Y>
__global__ void __launch_bounds__(kThreads) backward_loop_kernel(const Params<X, Y> p) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.rows_of_block;
  const std::int64_t end = min(first + p.rows_of_block, p.rows);
  float* const sums = p.partial + static_cast<std::int64_t>(blockIdx.x) * p.dim;
  for (std::int64_t row = first; row < end; ++row) {
    const Y* dy = p.dy.at(row);
    const X* h = p.h.at(row);
    const float rstd = p.rstd[row];
    float products = 0;
    for (int d = static_cast<int>(threadIdx.x); d < p.dim; d += kThreads) {
      products += p.w[d] * static_cast<float>(dy[d]) * static_cast<float>(h[d]);
    }
    const float c =
        group_sum(products, kThreads, static_cast<int>((row - first) & 1)) * rstd / static_cast<float>(p.dim);
    for (int d = static_cast<int>(threadIdx.x); d < p.dim; d += kThreads) {
      const float g = static_cast<float>(dy[d]), normed = static_cast<float>(h[d]) * rstd;
      sums[d] = (row == first ? 0 : sums[d]) + g * normed;
      const float of_norm = rstd * (p.w[d] * g - normed * c);
      p.dx.at(row)[d] = static_cast<X>(p.dh.data != nullptr ? static_cast<float>(p.dh.at(row)[d]) + of_norm : of_norm);
    }
  }
}

// --- few rows: one kernel ---

// The columns' role: dw of 32 bytes' worth of columns from all rows, in an order that the shape alone decides.
template <typename X, typename Y>
__device__ __forceinline__ void column_sums(const Params<X, Y>& p, float* dw, bool accumulate) {
  constexpr int kWidth = kWidest<X>, kLanes = kLanesOfColumns, kColumns = kLanes * kWidth;
  constexpr int kSlots = kThreadsOfBoth / kLanes, kWarps = kThreadsOfBoth / 32;
  __shared__ float parts[kWarps][kColumns];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes;
  const int column = (static_cast<int>(blockIdx.x) * kLanes + lane) * kWidth, rows = static_cast<int>(p.rows);
  Pack<float, kWidth> sum{};
  if (column < p.dim) {
#pragma unroll 8
    for (int row = thread / kLanes; row < rows; row += kSlots) {
      const Pack<Y, kWidth> dy = load_pack<kWidth>(p.dy.at(row) + column);
      const Pack<X, kWidth> h = load_pack<kWidth>(p.h.at(row) + column);
      const float rstd = p.rstd[row];
#pragma unroll
      for (int e = 0; e < kWidth; ++e) sum.at[e] += static_cast<float>(dy.at[e]) * (static_cast<float>(h.at[e]) * rstd);
    }
  }
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
#pragma unroll
    for (int apart = 16; apart >= kLanes; apart /= 2) sum.at[e] += __shfl_xor_sync(~0U, sum.at[e], apart);
  }
  if (thread % 32 < kLanes) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) parts[thread / 32][lane * kWidth + e] = sum.at[e];
  }
  __syncthreads();  // (4)
  const int to = static_cast<int>(blockIdx.x) * kColumns + thread;
  if (thread >= kColumns || to >= p.dim) return;
  float total = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) total += parts[warp][thread];
  dw[to] = accumulate ? dw[to] + total : total;
}

template <typename X, typename Y, int kVectors>
__global__ void __launch_bounds__(kThreadsOfBoth, 2)
    both_roles_kernel(const Params<X, Y> p, float* dw, bool accumulate, int column_blocks) {
  constexpr int kWidth = kWidest<X>;
  ptx::let_next_kernel_come();
  ptx::wait_for_kernels_before();
  if (static_cast<int>(blockIdx.x) < column_blocks) return column_sums(p, dw, accumulate);
  const int thread = static_cast<int>(threadIdx.x), lane = thread & (p.lanes - 1);
  const std::int64_t row =
      static_cast<std::int64_t>(static_cast<int>(blockIdx.x) - column_blocks) * (kThreadsOfBoth / p.lanes) +
      thread / p.lanes;
  if (row >= p.rows) return;  // as do all lanes of its group
  const auto column = [&](int n) { return (lane + n * p.lanes) * kWidth; };

  Pack<Y, kWidth> dy[kVectors];
  Pack<X, kWidth> h[kVectors], dh[kVectors];
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (column(n) >= p.dim) continue;
    dy[n] = load_pack<kWidth>(p.dy.at(row) + column(n));
    h[n] = load_pack<kWidth>(p.h.at(row) + column(n));
    if (p.dh.data != nullptr) dh[n] = load_pack<kWidth>(p.dh.at(row) + column(n));
  }
  const float rstd = p.rstd[row];
  float products = 0;
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (column(n) >= p.dim) continue;
    const Pack<float, kWidth> w = load_pack<kWidth>(p.w + column(n));
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      products += w.at[e] * static_cast<float>(dy[n].at[e]) * static_cast<float>(h[n].at[e]);
    }
  }
  const float c = group_sum(products, p.lanes, 0) * rstd / static_cast<float>(p.dim);
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (column(n) >= p.dim) continue;
    const Pack<float, kWidth> w = load_pack<kWidth>(p.w + column(n));
    ops::forget_conversions(dy[n]);
    ops::forget_conversions(h[n]);
    ops::forget_conversions(dh[n]);
    Pack<X, kWidth> dx;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const float of_norm =
          rstd * (w.at[e] * static_cast<float>(dy[n].at[e]) - static_cast<float>(h[n].at[e]) * rstd * c);
      dx.at[e] = static_cast<X>(p.dh.data != nullptr ? static_cast<float>(dh[n].at[e]) + of_norm : of_norm);
    }
    store_pack(p.dx.at(row) + column(n), dx);
  }
}

template <typename X, typename Y, int kVectors>
void launch_both(const Params<X, Y>& params, float* dw, bool accumulate, device::Stream stream) {
  static device::OverlappedKernel kernel(both_roles_kernel<X, Y, kVectors>, 0, "rms_norm backward of few rows");
  constexpr int kColumns = kLanesOfColumns * kWidest<X>;
  const int column_blocks = (params.dim + kColumns - 1) / kColumns, groups = kThreadsOfBoth / params.lanes;
  kernel.launch(static_cast<unsigned>(column_blocks + (params.rows + groups - 1) / groups), kThreadsOfBoth, stream,
                params, dw, accumulate, column_blocks);
}

// --- many rows: two kernels ---

// Of 32 registers a thread, what a block of the first kernel leaves of 65,536.
constexpr int kBlocksOfSum = 8;

// dw[d] (+)= Σ over blocks: slice s of a block adds the rows s, s + kSlicesOfSum, … of the parts; then the slices in
// order. kWidth columns a lane.
template <int kWidth>
__global__ void __launch_bounds__(kLanesOfSum* kSlicesOfSum, kBlocksOfSum)
    sum_kernel(const float* partial, int blocks, int dim, float* dw, bool accumulate) {
  __shared__ float parts[kSlicesOfSum][kLanesOfSum * kWidth];
  ptx::let_next_kernel_come();
  ptx::wait_for_kernels_before();
  const int lane = static_cast<int>(threadIdx.x) % kLanesOfSum, slice = static_cast<int>(threadIdx.x) / kLanesOfSum;
  const int column = (static_cast<int>(blockIdx.x) * kLanesOfSum + lane) * kWidth;
  Pack<float, kWidth> of_block[kPartsOfSlice] = {}, sum{};
#pragma unroll
  for (int n = 0; n < kPartsOfSlice; ++n) {
    const int block = slice + n * kSlicesOfSum;
    if (column < dim && block < blocks) {
      of_block[n] = load_pack<kWidth>(partial + static_cast<std::int64_t>(block) * dim + column);
    }
  }
#pragma unroll
  for (int n = 0; n < kPartsOfSlice; ++n) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum.at[i] += of_block[n].at[i];
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) parts[slice][lane * kWidth + i] = sum.at[i];
  __syncthreads();  // (5)
  const int mine = static_cast<int>(threadIdx.x), to = static_cast<int>(blockIdx.x) * kLanesOfSum * kWidth + mine;
  if (mine >= kLanesOfSum * kWidth || to >= dim) return;
  float total = 0;
#pragma unroll
  for (int s = 0; s < kSlicesOfSum; ++s) total += parts[s][mine];
  dw[to] = accumulate ? dw[to] + total : total;
}

template <int kWidth>
void launch_sum(const float* partial, int blocks, int dim, float* dw, bool accumulate, device::Stream stream) {
  static device::OverlappedKernel kernel(sum_kernel<kWidth>, 0, "rms_norm sum of dw");
  constexpr int kColumns = kLanesOfSum * kWidth;
  kernel.launch(static_cast<unsigned>((dim + kColumns - 1) / kColumns), kLanesOfSum * kSlicesOfSum, stream, partial,
                blocks, dim, dw, accumulate);
}

template <typename X, typename Y, int kVectors>
void launch(const Params<X, Y>& params, std::int64_t blocks, device::Stream stream) {
  constexpr int kShared = static_cast<int>(sizeof(Slots<X, Y, kVectors>));
  static_assert(kShared >= kThreads * kVectors * kWidest<X> * static_cast<int>(sizeof(float)) && kShared <= 98 * 1024);
  static device::OverlappedKernel kernel(backward_kernel<X, Y, kVectors, kMostRegisters<Y>>, kShared,
                                         "rms_norm backward");
  kernel.launch(static_cast<unsigned>(blocks), kThreads, stream, params);
}

}  // namespace

std::size_t cuda_partial_bytes(const Problem& p) {
  return static_cast<std::size_t>(cut_of(p).blocks * p.dim) * sizeof(float);
}

void cuda_backward(const Problem& p, const BackwardArgs& a, float* partial, device::Stream stream) {
  const bool arrives = a.dh.data != nullptr;
  if (arrives && a.dh.dtype != p.x_dtype) {
    throw Error(ErrorKind::usage, "dh of an rms_norm on a GPU has x's dtype; found another: cast it");
  }
  const Cut cut = cut_of(p);
  const int dim = static_cast<int>(p.dim);
  with_dtypes(p, [&]<typename X, typename Y>() {
    constexpr int kWidth = kWidest<X>;
    const Params<X, Y> params{rows_of<const Y>(a.dy),
                              rows_of<const X>(a.h),
                              static_cast<const float*>(a.w.data),
                              static_cast<const float*>(a.rstd.data),
                              arrives ? rows_of<const X>(a.dh) : Rows<const X>{},
                              rows_of<X>(a.dx),
                              partial,
                              p.rows,
                              static_cast<int>(cut.rows_of_block),
                              dim,
                              lanes_of(p.dim, kWidth, kMostVectors<X>)};
    const auto packs = [&](const auto& view) { return ops::takes_packs(view, kWidth); };
    const bool aligned = reinterpret_cast<std::uintptr_t>(partial) % ops::kVectorBytes == 0;
    const bool registers = packs(a.dy) && packs(a.h) && packs(a.w) && (!arrives || packs(a.dh)) && packs(a.dx) &&
                           params.lanes <= kThreads && aligned;
    auto* dw = static_cast<float*>(a.dw.data);
    const bool few = p.rows * p.dim * static_cast<std::int64_t>(sizeof(X) + sizeof(Y)) <= kMostBytesOfBoth;
    if (few && registers) {
      Params<X, Y> of_few = params;
      of_few.lanes = lanes_of(p.dim, kWidth, kVectorsOfBoth);
      if (of_few.lanes <= kThreadsOfBoth) {
        if (p.dim <= 2 * kWidth * of_few.lanes) return launch_both<X, Y, 2>(of_few, dw, a.accumulate, stream);
        return launch_both<X, Y, kVectorsOfBoth>(of_few, dw, a.accumulate, stream);
      }
    }
    if (!registers) {
      static device::OverlappedKernel loop(backward_loop_kernel<X, Y>, 0, "rms_norm backward in two passes");
      loop.launch(static_cast<unsigned>(cut.blocks), kThreads, stream, params);
    } else if (p.dim <= 2 * kWidth * params.lanes) {
      launch<X, Y, 2>(params, cut.blocks, stream);
    } else {
      launch<X, Y, kMostVectors<X>>(params, cut.blocks, stream);
    }
    if (dim % 4 == 0 && aligned) {
      launch_sum<4>(partial, static_cast<int>(cut.blocks), dim, dw, a.accumulate, stream);
    } else {
      launch_sum<1>(partial, static_cast<int>(cut.blocks), dim, dw, a.accumulate, stream);
    }
  });
}

}  // namespace syslab::rms_norm
