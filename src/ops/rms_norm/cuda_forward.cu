// The normalisation on a GPU, forward: a row is read once, kept in registers while its squares are summed, and written.
//
//   lanes of a row   32 to 512 (cuda_rows.cuh). Many rows: few lanes with up to ten vectors each; a warp holds 2,560
//                    columns of bf16 and needs no barrier. Few rows: all would run at once, and read, wait and write
//                    in step. More lanes a row divide them into waves, so that one wave reads while another writes
//   block            128 threads or one row group
//   added up         squares in fp32 a lane, a butterfly over the warp, the warps' sums in shared memory in order
//   w                with rows of fp32 it is loaded together with the row, which hides its latency from L2; with bf16,
//                    where a vector of the row needs twice as many registers for w, only after the sum
//
// Napkin, rows 2,048, dim 768, bf16, with the residual addition: x, delta, h and y are 12.6 MB, 4.2 µs at 3.0 TB/s.
//
// Rows too long for the registers (20,480 columns of fp32), and those not aligned to 16 bytes, are read twice by a
// block, an element a lane.
//
// What waits for what (landed, left: device/cuda/ptx.cuh)
//
//   (1) group_sum(), block, where a row has more than one warp
//       landed   The warps' sums are there for all lanes of their row. Lanes without a row come too: the barrier counts
//                every thread of the block.
//       left     Nothing: a kernel sums once. A second call would need a barrier before it stores its sums.
//   Rows need no barrier: a thread reads again only what it has written itself.
//   kernels      wait_for_kernels_before: x and delta have landed, and kernels before no longer read h and y.
#include "ops/rms_norm/cuda_rows.cuh"

namespace syslab::rms_norm {
namespace {

constexpr int kThreads = 128, kMostThreads = 512, kThreadsOfLoop = 512;
// Vectors of a lane (above: lanes of a row).
constexpr int kMostVectors = 10;
constexpr std::int64_t kFewRows = 8192;
template <typename X>
constexpr int kVectorsOfFew = sizeof(X) == 2 ? 2 : 4;

template <typename X, typename Y>
struct Params {
  Rows<const X> x;
  Rows<const Y> delta;  // null: nothing is added
  const float* w;
  Rows<X> h;
  Rows<Y> y;
  float* rstd;
  std::int64_t rows;
  int dim, lanes;
  float eps;
};

// The sum over a row group; all its lanes get it. Every thread of the block must call it.
__device__ __forceinline__ float group_sum(float value, int lanes) {
  __shared__ float parts[kMostThreads / 32];
  value = ops::warp_sum(value);
  if (lanes == 32) return value;
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = lanes / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) parts[warp] = value;
  __syncthreads();  // (1)
  float sum = 0;
  for (int i = 0; i < warps; ++i) sum += parts[first + i];
  return sum;
}

template <typename X, typename Y, int kVectors>
__global__ void __launch_bounds__(kMostThreads) forward_kernel(const Params<X, Y> p) {
  constexpr int kWidth = kWidest<X>;
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const int lane = static_cast<int>(threadIdx.x) & (p.lanes - 1);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (static_cast<int>(blockDim.x) / p.lanes) +
                           static_cast<int>(threadIdx.x) / p.lanes;
  const bool mine = row < p.rows;
  const auto column = [&](int n) { return (lane + n * p.lanes) * kWidth; };

  Pack<X, kWidth> h[kVectors];
  Pack<Y, kWidth> delta[kVectors];
  const bool add = p.delta.data != nullptr;
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (mine && column(n) < p.dim) h[n] = load_pack<kWidth>(p.x.at(row) + column(n));
  }
  if (add) {
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      if (mine && column(n) < p.dim) delta[n] = load_pack<kWidth>(p.delta.at(row) + column(n));
    }
  }

  constexpr bool kEarly = sizeof(X) == 4 && kVectors <= 4;
  Pack<float, kWidth> w[kEarly ? kVectors : 1];
  if constexpr (kEarly) {
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      if (column(n) < p.dim) w[n] = load_pack<kWidth>(p.w + column(n));
    }
  }

  float squares = 0;
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (!mine || column(n) >= p.dim) continue;
    if (add) {
      ops::forget_conversions(h[n]);
      ops::forget_conversions(delta[n]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        h[n].at[i] = static_cast<X>(static_cast<float>(h[n].at[i]) + static_cast<float>(delta[n].at[i]));
      }
      store_pack(p.h.at(row) + column(n), h[n]);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += static_cast<float>(h[n].at[i]) * static_cast<float>(h[n].at[i]);
  }
  squares = group_sum(squares, p.lanes);
  if (!mine) return;
  const float rstd = rsqrtf(squares / static_cast<float>(p.dim) + p.eps);
  if (lane == 0) p.rstd[row] = rstd;
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    if (column(n) >= p.dim) continue;
    ops::forget_conversions(h[n]);
    if constexpr (!kEarly) w[0] = load_pack<kWidth>(p.w + column(n));
    const Pack<float, kWidth>& of_column = w[kEarly ? n : 0];
    Pack<Y, kWidth> y;
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      y.at[i] = static_cast<Y>(of_column.at[i] * (static_cast<float>(h[n].at[i]) * rstd));
    store_pack(p.y.at(row) + column(n), y);
  }
}

// A block takes a row and reads it twice. Each thread reads again only what it wrote itself.
template <typename X, typename Y>
__global__ void __launch_bounds__(kThreadsOfLoop) forward_loop_kernel(const Params<X, Y> p) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t row = blockIdx.x;
  const bool add = p.delta.data != nullptr;
  const X* x = p.x.at(row);
  float squares = 0;
  for (int d = static_cast<int>(threadIdx.x); d < p.dim; d += kThreadsOfLoop) {
    X value = x[d];
    if (add) {
      value = static_cast<X>(static_cast<float>(value) + static_cast<float>(p.delta.at(row)[d]));
      p.h.at(row)[d] = value;
    }
    squares += static_cast<float>(value) * static_cast<float>(value);
  }
  squares = group_sum(squares, kThreadsOfLoop);
  const float rstd = rsqrtf(squares / static_cast<float>(p.dim) + p.eps);
  if (threadIdx.x == 0) p.rstd[row] = rstd;
  const X* h = add ? p.h.at(row) : x;
  for (int d = static_cast<int>(threadIdx.x); d < p.dim; d += kThreadsOfLoop) {
    p.y.at(row)[d] = static_cast<Y>(p.w[d] * (static_cast<float>(h[d]) * rstd));
  }
}

template <typename X, typename Y, int kVectors>
void launch(Params<X, Y> params, device::Stream stream) {
  static device::OverlappedKernel kernel(forward_kernel<X, Y, kVectors>, 0, "rms_norm forward");
  const int threads = params.lanes > kThreads ? params.lanes : kThreads, groups = threads / params.lanes;
  kernel.launch(static_cast<unsigned>((params.rows + groups - 1) / groups), threads, stream, params);
}

}  // namespace

void cuda_forward(const Problem& p, const ForwardArgs& a, device::Stream stream) {
  if (p.add && a.delta.dtype != p.y_dtype) {
    throw Error(ErrorKind::usage, "delta of an rms_norm on a GPU has y's dtype; found another: cast it");
  }
  with_dtypes(p, [&]<typename X, typename Y>() {
    constexpr int kWidth = kWidest<X>;
    const bool waves = p.rows < kFewRows && p.dim > 4 * 32 * kWidth && p.dim <= kVectorsOfFew<X> * 256 * kWidth;
    const int most = waves ? kVectorsOfFew<X> : kMostVectors;
    Params<X, Y> params{rows_of<const X>(a.x),
                        p.add ? rows_of<const Y>(a.delta) : Rows<const Y>{},
                        static_cast<const float*>(a.w.data),
                        p.add ? rows_of<X>(a.h) : Rows<X>{},
                        rows_of<Y>(a.y),
                        static_cast<float*>(a.rstd.data),
                        p.rows,
                        static_cast<int>(p.dim),
                        lanes_of(p.dim, kWidth, most),
                        static_cast<float>(p.eps)};
    const auto packs = [&](const auto& view) { return ops::takes_packs(view, kWidth); };
    const bool registers = packs(a.x) && packs(a.w) && packs(a.y) && (!p.add || (packs(a.delta) && packs(a.h))) &&
                           params.lanes <= kMostThreads;
    if (!registers) {
      static device::OverlappedKernel loop(forward_loop_kernel<X, Y>, 0, "rms_norm forward in two passes");
      loop.launch(static_cast<unsigned>(p.rows), kThreadsOfLoop, stream, params);
    } else if (p.dim <= 2 * kWidth * params.lanes) {
      launch<X, Y, 2>(params, stream);
    } else if (p.dim <= 4 * kWidth * params.lanes) {
      launch<X, Y, 4>(params, stream);
    } else if (p.dim <= 7 * kWidth * params.lanes) {
      launch<X, Y, 7>(params, stream);
    } else {
      launch<X, Y, kMostVectors>(params, stream);
    }
  });
}

}  // namespace syslab::rms_norm
