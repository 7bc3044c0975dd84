// The rotation on a GPU, at the speed of memory: each element is read once and written once, in place if asked.
//
// A thread owns the same 4 pairs (2 of fp32) of up to four heads at one position: it reads cos and sin of these pairs
// once, which would otherwise be twice the bytes of the heads themselves, and loads all its heads before it rotates
// the first.
//
//   interleaved side    a vector of 16 bytes
//   side in halves      a vector of 8 bytes of either half
//
// so that neighbouring lanes touch neighbouring bytes in every access: wider vectors would leave gaps between lanes
// and write half sectors of L2.
//
// What waits for what (landed, left: device/cuda/ptx.cuh)
//   (1) block, only from one layout to the other
//       landed   Nothing: threads share no memory of the block.
//       left     All threads have read their elements: in place, a thread writes where another reads. This is also why
//                a head never spans blocks: no barrier reaches another block.
//   Within one layout a thread writes only what it has read itself, and needs no barrier.
//   kernels      wait_for_kernels_before: the heads have landed, and earlier kernels have left y.
//
//   block   lanes of a head (head_dim/8) × slots of heads (each takes every slots-th head) × positions ≈ 256 threads
//
// Napkin, queries and keys of batch 4, context 512, 12 heads of 64, bf16: 6.3 MB read and as much written, 4.2 µs at
// 3.0 TB/s; the tables, 131 KB, stay in L2.
//
// Where an address or a size is no multiple of 16 bytes, a thread owns single pairs.
#include <algorithm>

#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/rope/cuda_kernels.hpp"
#include "ops/vectors.cuh"

namespace syslab::rope {
namespace {

using ops::load_pack;
using ops::Pack;
using ops::store_pack;

constexpr int kThreads = 256;  // about as many a block; a head of 1,024 elements in single pairs takes 512
constexpr int kMostThreads = 512;
constexpr int kHeads = 4;  // of a thread

template <typename T>
struct Heads {
  T* data;
  std::int64_t of_batch, of_head, of_position;  // strides in elements
};

struct Shape4 {
  unsigned positions, seq, heads;  // positions: of all batches
  unsigned head_dim, lanes, slots, positions_of_block;
};

// `kPairs` pairs from pair `k` on, as they are stored. They are converted only when rotated, to halve the registers.
template <typename T, Layout kLayout, int kPairs>
struct Stored;

template <typename T, int kPairs>
struct Stored<T, Layout::interleaved, kPairs> {
  Pack<T, 2 * kPairs> pairs;

  __device__ void load(const T* head, unsigned k, unsigned) { pairs = load_pack<2 * kPairs>(head + 2 * k); }
  __device__ void store(T* head, unsigned k, unsigned) const { store_pack(head + 2 * k, pairs); }
  __device__ T& first(int i) { return pairs.at[2 * i]; }
  __device__ T& second(int i) { return pairs.at[2 * i + 1]; }
};

// A single pair, wherever it lies: its two elements need not be aligned as one.
template <typename T>
struct Stored<T, Layout::interleaved, 1> {
  T one, two;

  __device__ void load(const T* head, unsigned k, unsigned) {
    one = head[2 * k];
    two = head[2 * k + 1];
  }
  __device__ void store(T* head, unsigned k, unsigned) const {
    head[2 * k] = one;
    head[2 * k + 1] = two;
  }
  __device__ T& first(int) { return one; }
  __device__ T& second(int) { return two; }
};

template <typename T, int kPairs>
struct Stored<T, Layout::halves, kPairs> {
  Pack<T, kPairs> one, two;

  __device__ void load(const T* head, unsigned k, unsigned head_dim) {
    one = load_pack<kPairs>(head + k);
    two = load_pack<kPairs>(head + head_dim / 2 + k);
  }
  __device__ void store(T* head, unsigned k, unsigned head_dim) const {
    store_pack(head + k, one);
    store_pack(head + head_dim / 2 + k, two);
  }
  __device__ T& first(int i) { return one.at[i]; }
  __device__ T& second(int i) { return two.at[i]; }
};

template <typename X, typename Y, Layout kFrom, Layout kTo, int kPairs>
__global__ void __launch_bounds__(kMostThreads)
    turn_kernel(Heads<const X> x, Heads<Y> y, const float* cos, const float* sin, float sense, Shape4 shape) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const unsigned lane = threadIdx.x % shape.lanes, row = threadIdx.x / shape.lanes;
  const unsigned slot = row % shape.slots, position = blockIdx.x * shape.positions_of_block + row / shape.slots;
  const unsigned k = lane * kPairs, first_head = blockIdx.y * shape.slots * kHeads + slot;
  const bool mine = row / shape.slots < shape.positions_of_block && position < shape.positions;
  const unsigned batch = position / shape.seq, t = position % shape.seq;

  Stored<X, kFrom, kPairs> heads[kHeads];
  Pack<float, kPairs> c, s;
  if (mine) {
    const X* from = x.data + batch * x.of_batch + t * x.of_position;
#pragma unroll
    for (int n = 0; n < kHeads; ++n) {
      const unsigned head = first_head + n * shape.slots;
      if (head < shape.heads) heads[n].load(from + head * x.of_head, k, shape.head_dim);
    }
    c = load_pack<kPairs>(cos + t * (shape.head_dim / 2) + k);
    s = load_pack<kPairs>(sin + t * (shape.head_dim / 2) + k);
  }
  if constexpr (kFrom != kTo) __syncthreads();  // (1)
  if (!mine) return;
  Y* to = y.data + batch * y.of_batch + t * y.of_position;
#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    const unsigned head = first_head + n * shape.slots;
    if (head >= shape.heads) break;
    Stored<Y, kTo, kPairs> turned;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float x1 = static_cast<float>(heads[n].first(i)), x2 = static_cast<float>(heads[n].second(i));
      const float angle_c = c.at[i], angle_s = sense * s.at[i];
      turned.first(i) = static_cast<Y>(angle_c * x1 - angle_s * x2);
      turned.second(i) = static_cast<Y>(angle_s * x1 + angle_c * x2);
    }
    turned.store(to + head * y.of_head, k, shape.head_dim);
  }
}

// --- launches ---

Shape4 shape_of(const Problem& p, int pairs_of_lane) {
  const auto lanes = static_cast<unsigned>(p.head_dim / 2 / pairs_of_lane), heads = static_cast<unsigned>(p.heads);
  const unsigned rows = std::max(kThreads / lanes, 1U);
  const unsigned slots = std::min((heads + kHeads - 1) / kHeads, rows);
  return {static_cast<unsigned>(p.batch * p.seq),
          static_cast<unsigned>(p.seq),
          heads,
          static_cast<unsigned>(p.head_dim),
          lanes,
          slots,
          rows / slots};
}

template <typename T, typename View>
Heads<T> heads_of(const View& view) {
  return {static_cast<T*>(view.data), view.stride(0), view.stride(1), view.stride(2)};
}

template <typename X, typename Y, Layout kFrom, Layout kTo, int kPairs>
void launch(const Problem& p, const Args& a, float sense, device::Stream stream) {
  static device::OverlappedKernel kernel(turn_kernel<X, Y, kFrom, kTo, kPairs>, 0, "rope");
  const Shape4 shape = shape_of(p, kPairs);
  const dim3 blocks((shape.positions + shape.positions_of_block - 1) / shape.positions_of_block,
                    (shape.heads + shape.slots * kHeads - 1) / (shape.slots * kHeads));
  const auto threads = static_cast<int>((shape.lanes * shape.slots * shape.positions_of_block + 31) / 32 * 32);
  kernel.launch(blocks, threads, stream, heads_of<const X>(a.x), heads_of<Y>(a.y),
                static_cast<const float*>(a.cos.data), static_cast<const float*>(a.sin.data), sense, shape);
}

template <Layout kFrom, Layout kTo>
void turn(const Problem& p, const Args& a, float sense, device::Stream stream) {
  if (p.batch * p.seq > 0x7fffffffLL || p.heads > 0xffffffLL) {
    throw Error(ErrorKind::usage,
                "rope on a GPU takes up to 2^31 positions of 2^24 heads, found " + to_string(p) + ": split the batch");
  }
  const auto with = [&]<typename X, typename Y>() {
    constexpr int kPairs = ops::kVectorBytes / 2 / static_cast<int>(std::max(sizeof(X), sizeof(Y)));
    const bool wide = p.head_dim % (2 * kPairs) == 0 && ops::takes_packs(a.x, 2 * kPairs) &&
                      ops::takes_packs(a.y, 2 * kPairs) && ops::takes_packs(a.cos, kPairs) &&
                      ops::takes_packs(a.sin, kPairs);
    if (wide) return launch<X, Y, kFrom, kTo, kPairs>(p, a, sense, stream);
    launch<X, Y, kFrom, kTo, 1>(p, a, sense, stream);
  };
  const DType x = a.x.dtype, y = a.y.dtype;
  if (x == DType::f32 && y == DType::f32) return with.template operator()<float, float>();
  if (x == DType::bf16 && y == DType::bf16) return with.template operator()<__nv_bfloat16, __nv_bfloat16>();
  if (x == DType::f16 && y == DType::f16) return with.template operator()<__half, __half>();
  if (x == DType::bf16) return with.template operator()<__nv_bfloat16, float>();
  if (x == DType::f16) return with.template operator()<__half, float>();
  if (y == DType::bf16) return with.template operator()<float, __nv_bfloat16>();
  with.template operator()<float, __half>();
}

}  // namespace

void cuda_forward(const Problem& p, const Args& a, device::Stream stream) {
  if (p.layout == Layout::halves) return turn<Layout::interleaved, Layout::halves>(p, a, 1, stream);
  turn<Layout::interleaved, Layout::interleaved>(p, a, 1, stream);
}

void cuda_backward(const Problem& p, const Args& a, device::Stream stream) {
  if (p.layout == Layout::halves) return turn<Layout::halves, Layout::interleaved>(p, a, -1, stream);
  turn<Layout::interleaved, Layout::interleaved>(p, a, -1, stream);
}

}  // namespace syslab::rope
