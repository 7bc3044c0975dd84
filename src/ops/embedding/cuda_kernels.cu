// The embedding on a GPU. Forward, a warp copies a row. Backward, three kernels without float atomics:
//
//   list_kernel     lists the tokens by id, in the order in which they come. A block owns a tile of ids: it reads all
//                   tokens once to count its own (and those of smaller ids, which gives where its list begins), and
//                   once more to store them, 1,024 at a time: they are gathered in order by ballots, and one warp ranks
//                   32 of them at a time by comparing them with each other.
//   sum_kernel      a warp sums up to 512 columns of a row of the table. Of an id with more than kRun tokens it sums no
//                   row: the list is cut into pieces of kRun tokens, and a warp a piece leaves a partial sum. A piece
//                   has parts of at most two such ids, one that ends in it and one that begins.
//   combine_kernel  a block adds up the partial sums of each id that was cut, eight warps a share of them each, in
//                   order.
//
// So no sum takes more than kRun loads in sequence, then a share of the pieces: if all 32,768 tokens are the same, that
// is 2,048 partial sums. The order of every sum depends only on the ids.
//
// Napkin, 2048 tokens, 10,000 ids, D 1024, H100: the table's gradient is 41 MB of stores, 14 µs; 4 MB of dx (bf16) and
// 16 kB of ids 132 times over from the L2 cache are 2 µs; three launches, overlapped, 3 µs.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code). Barriers are of the block
// unless marked as of a warp, and have only the jobs named.
//
//   list_kernel
//   (1) landed   The counts `next` are zero for all threads, which then add to any of them.
//   (2) landed   block_sum(): the warps' numbers are there for all. All counts of the tile are there too, which
//                begins_from_counts() reads next.
//   (3) left     block_sum(): all threads have read `parts`, which begins_from_counts() overwrites.
//   (4) landed   begins_from_counts(): the totals of the warps are there for all.
//   (5) left     All threads have read `parts`, which the next turn, or the first round of 1,024, overwrites.
//       landed   After the last turn: `next` holds where each id's tokens begin, for the warp that stores them.
//   (6) a round of 1,024 tokens
//       landed   The warps' numbers of tokens are there for all. The barrier also tells all threads whether there
//                is any token: if not, all skip the round, and nobody reads `parts`.
//       left     The first warp has stored the tokens of the round before: `locals` and `tokens` are overwritten next.
//                In the first round: all threads have copied `next` to the list, before the first warp raises it.
//   (7) landed   `locals` and `tokens` are whole for the first warp, which stores the tokens.
//       left     All threads have read `parts`, which they overwrite in the next round while the first warp still
//                works.
//   (8) put_down(), warp
//       left     All lanes have read `next` of their ids, before the first lane of each id raises it.
//   (9) landed   The raised `next` is there for all lanes, which read it for the next 32 tokens.
//   combine_kernel
//   (10) landed  The long runs of all pieces, of which each warp has looked up one.
//   (11) landed  The shares of all warps are there for the first, which adds them in order.
//   (12) left    The first warp has read the shares, which the next run overwrites.
//   kernels      Each begins with wait_for_kernels_before: lists and partial sums of earlier kernels have landed, and
//                earlier kernels have left those of the last call, which are overwritten.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/integers.hpp"
#include "device/cuda/overlap.cuh"
#include "device/cuda/ptx.cuh"
#include "ops/embedding/cuda_kernels.hpp"
#include "ops/pack_elements.cuh"
#include "ops/storage.hpp"

namespace syslab::embedding {
namespace {

using ops::Element;
using ops::load_pack;
using ops::Pack;

constexpr int kThreads = 256, kWarps = kThreads / 32;  // of forward, sum and combine
constexpr int kUnroll = 4;                             // packs that a lane of forward reads at a time
constexpr int kListThreads = 1024;
constexpr int kGroups = 4;
constexpr int kAhead = 4;                     // tokens that a thread of the list reads at a time
constexpr int kTiles = 132, kMostIds = 2048;  // of a tile
constexpr int kRun = 16;
constexpr int kWidth = 4;          // of a pack: sums are stored 16 bytes a lane, side by side
constexpr int kColumns = 512;      // of a warp that sums rows of the table
constexpr int kCombined = 32 * 4;  // columns of a block that adds partial sums
constexpr int kPiecesOfABlock = kWarps;

// --- forward ---

template <typename Table, typename X, int kCount>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const std::int64_t* ids, const Table* table, std::int64_t table_stride, X* x, std::int64_t x_stride,
                  Problem problem) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  if (row >= problem.rows) return;
  const std::int64_t id = ids[row];
  X* to = x + row * x_stride;
  if (id < 0 || id >= problem.vocab) {
    for (std::int64_t d = lane; d < problem.dim; d += 32) to[d] = static_cast<X>(NAN);
    return;
  }
  const Table* from = table + id * table_stride;
  const std::int64_t packs = problem.dim / kCount;
  // All loads of a turn are under way before its first store: the compiler must assume that x may be the table.
  for (std::int64_t first = lane; first < packs; first += 32 * kUnroll) {
    Pack<Table, kCount> loaded[kUnroll];
#pragma unroll
    for (int n = 0; n < kUnroll; ++n) {
      if (first + n * 32 < packs) loaded[n] = load_pack<kCount>(from + (first + n * 32) * kCount);
    }
#pragma unroll
    for (int n = 0; n < kUnroll; ++n) {
      if (first + n * 32 >= packs) break;
      float values[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = ops::element(loaded[n], i);
      ops::store_pack(to + (first + n * 32) * kCount, ops::to_pack<X>(values));
    }
  }
  for (std::int64_t d = packs * kCount + lane; d < problem.dim; d += 32) {
    to[d] = static_cast<X>(static_cast<float>(from[d]));
  }
}

// --- backward: the list ---

// Tokens of id v: order[begin[v]] … order[begin[v + 1] − 1].
struct Lists {
  int* begin;  // (vocab + 1)
  int* order;  // (rows)
};

__device__ __forceinline__ unsigned lanes_below() { return (1U << (threadIdx.x % 32)) - 1; }

// The ids of this thread's tokens from, from + kListThreads, … within the tile; −1 of others. `below` counts ids before
// the tile.
__device__ __forceinline__ void local_ids(const std::int64_t* ids, int from, int rows, int first, int end, int& below,
                                          int (&local)[kAhead]) {
#pragma unroll
  for (int n = 0; n < kAhead; ++n) {
    const int token = from + n * kListThreads + static_cast<int>(threadIdx.x);
    const std::int64_t id = token < rows ? ids[token] : -1;
    if (id >= 0 && id < first) ++below;
    local[n] = id >= first && id < end ? static_cast<int>(id) - first : -1;
  }
}

// Over the block; all threads get it. `parts` holds a number for each warp.
__device__ __forceinline__ int block_sum(int value, int* parts) {
  value = __reduce_add_sync(~0U, value);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();  // (2)
  value = __reduce_add_sync(~0U, parts[threadIdx.x % 32]);
  __syncthreads();  // (3)
  return value;
}

// Counts become where each id's tokens begin, from `start` on; returns where the last ends.
__device__ __forceinline__ int begins_from_counts(int* counts, int start, int* parts) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int from = 0; from < kMostIds; from += kListThreads) {
    const int count = counts[from + static_cast<int>(threadIdx.x)];
    int through = count;  // up to this lane, in its warp
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      const int other = __shfl_up_sync(~0U, through, apart);
      if (lane >= apart) through += other;
    }
    if (lane == 31) parts[warp] = through;
    __syncthreads();  // (4)
    const int of_warp = parts[lane], before = __reduce_add_sync(~0U, lane < warp ? of_warp : 0);
    counts[from + static_cast<int>(threadIdx.x)] = start + before + through - count;
    start += __reduce_add_sync(~0U, of_warp);
    __syncthreads();  // (5)
  }
  return start;
}

// By one warp: puts down `count` queued tokens in order, 32 at a time. Which lanes have the same id is found out for
// four groups of 32 at once, since only `next` makes a group wait for the one before.
__device__ __forceinline__ void put_down(const int* locals, const int* tokens, int count, int* next, int* order) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int from = lane; from - lane < count; from += 32 * kGroups) {
    int local[kGroups];
    unsigned peers[kGroups];
#pragma unroll
    for (int n = 0; n < kGroups; ++n) local[n] = from + n * 32 < count ? locals[from + n * 32] : -1;
#pragma unroll
    for (int n = 0; n < kGroups; ++n) peers[n] = __match_any_sync(~0U, local[n]);
#pragma unroll
    for (int n = 0; n < kGroups; ++n) {
      if (from - lane + n * 32 >= count) break;
      const bool have = local[n] >= 0;
      const int at = have ? next[local[n]] : 0;
      __syncwarp();  // (8)
      if (have && (peers[n] & lanes_below()) == 0) next[local[n]] = at + __popc(peers[n]);
      if (have) order[at + __popc(peers[n] & lanes_below())] = tokens[from + n * 32];
      __syncwarp();  // (9)
    }
  }
}

__global__ void __launch_bounds__(kListThreads)
    list_kernel(const std::int64_t* ids, int rows, int vocab, int ids_of_tile, Lists lists) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  __shared__ int next[kMostIds], locals[kListThreads], tokens[kListThreads], parts[kListThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int first = static_cast<int>(blockIdx.x) * ids_of_tile, end = min(first + ids_of_tile, vocab);
  for (int at = thread; at < kMostIds; at += kListThreads) next[at] = 0;
  __syncthreads();  // (1)

  int below = 0, local[kAhead];
  for (int from = 0; from < rows; from += kAhead * kListThreads) {
    local_ids(ids, from, rows, first, end, below, local);
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      if (!__any_sync(~0U, local[n] >= 0)) continue;
      const unsigned peers = __match_any_sync(~0U, local[n]);
      if (local[n] >= 0 && (peers & lanes_below()) == 0) atomicAdd(&next[local[n]], __popc(peers));
    }
  }
  const int start = block_sum(below, parts);
  const int stop = begins_from_counts(next, start, parts);
  for (int at = thread; at < end - first; at += kListThreads) lists.begin[first + at] = next[at];
  if (end == vocab && thread == 0) lists.begin[vocab] = stop;

  for (int from = 0; from < rows; from += kAhead * kListThreads) {
    local_ids(ids, from, rows, first, end, below, local);
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      const unsigned mine = __ballot_sync(~0U, local[n] >= 0);
      if (thread % 32 == 0) parts[warp] = __popc(mine);
      if (!__syncthreads_or(local[n] >= 0)) continue;  // (6)
      const int of_warp = parts[thread % 32];
      const int before = __reduce_add_sync(~0U, thread % 32 < warp ? of_warp : 0);
      const int count = __reduce_add_sync(~0U, of_warp);
      if (local[n] >= 0) {
        const int at = before + __popc(mine & lanes_below());
        locals[at] = local[n];
        tokens[at] = from + n * kListThreads + thread;
      }
      __syncthreads();  // (7)
      // Meanwhile the other warps go on to the next (6) and overwrite nothing that this warp reads.
      if (warp == 0) put_down(locals, tokens, count, next, lists.order);
    }
  }
}

// --- backward: sums ---

struct Cut {
  int slabs;            // of kColumns, in a row
  std::int64_t pieces;  // of kRun tokens
  std::int64_t stride;  // of a partial sum, in floats
};

template <typename X>
struct Sources {
  const std::int64_t* ids;
  Lists lists;
  const X* dx;
  std::int64_t dx_stride;
};

// A warp's columns: lane l has packs l, l + 32, … of kWidth from column `from` on.
template <int kCount>
struct Sums {
  static constexpr int kPacks = kColumns / 32 / kCount;
  float of[kPacks][kCount] = {};

  __device__ __forceinline__ static std::int64_t column(std::int64_t from, int n) {
    return from + (n * 32 + static_cast<int>(threadIdx.x) % 32) * kCount;
  }

  // Rows order[begin] … order[end − 1], in order; at most 32.
  template <typename X>
  __device__ __forceinline__ void add(const Sources<X>& sources, int begin, int end, std::int64_t from,
                                      std::int64_t dim) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int token = begin + lane < end ? sources.lists.order[begin + lane] : 0;
#pragma unroll 4
    for (int at = 0; at < end - begin; ++at) {
      const X* row = sources.dx + static_cast<std::int64_t>(__shfl_sync(~0U, token, at)) * sources.dx_stride;
#pragma unroll
      for (int n = 0; n < kPacks; ++n) {
        if (column(from, n) >= dim) break;
        const auto pack = load_pack<kCount>(row + column(from, n));
#pragma unroll
        for (int i = 0; i < kCount; ++i) of[n][i] += ops::element(pack, i);
      }
    }
  }

  __device__ __forceinline__ void store(float* row, std::int64_t from, std::int64_t dim, bool accumulate) const {
#pragma unroll
    for (int n = 0; n < kPacks; ++n) {
      if (column(from, n) >= dim) break;
      Pack<float, kCount> pack = ops::to_pack<float>(of[n]);
      if (accumulate) {
        const auto before = load_pack<kCount>(row + column(from, n));
#pragma unroll
        for (int i = 0; i < kCount; ++i) pack.at[i] += before.at[i];
      }
      ops::store_pack(row + column(from, n), pack);
    }
  }
};

template <typename X>
__device__ __forceinline__ int id_at(const Sources<X>& sources, int position) {
  return static_cast<int>(sources.ids[sources.lists.order[position]]);
}

// The partial sums of the one or two long runs that a piece holds tokens of.
template <int kCount, typename X>
__device__ __forceinline__ void sum_piece(const Sources<X>& sources, std::int64_t piece, int tokens, std::int64_t from,
                                          std::int64_t dim, float* partial, std::int64_t stride) {
  const int begin = static_cast<int>(piece) * kRun, end = min(begin + kRun, tokens);
  if (begin >= end) return;
  const int first = id_at(sources, begin), last = id_at(sources, end - 1);
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    const int id = which == 0 ? first : last;
    const int run_begin = sources.lists.begin[id], run_end = sources.lists.begin[id + 1];
    if (run_end - run_begin <= kRun || (which == 1 && last == first)) continue;
    Sums<kCount> sums;
    sums.add(sources, max(begin, run_begin), min(end, run_end), from, dim);
    sums.store(partial + (2 * piece + which) * stride, from, dim, false);
  }
}

template <typename X, int kCount>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(Sources<X> sources, Cut cut, int vocab, std::int64_t dim, float* table, std::int64_t table_stride,
               float* partial, bool accumulate) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const std::int64_t unit = warp / cut.slabs, from = warp % cut.slabs * kColumns;
  if (unit < cut.pieces) {
    return sum_piece<kCount>(sources, unit, sources.lists.begin[vocab], from, dim, partial, cut.stride);
  }
  const std::int64_t id = unit - cut.pieces;
  if (id >= vocab) return;
  const int begin = sources.lists.begin[id], end = sources.lists.begin[id + 1];
  if (end - begin > kRun || (accumulate && begin == end)) return;
  Sums<kCount> sums;
  sums.add(sources, begin, end, from, dim);
  sums.store(table + id * table_stride, from, dim, accumulate);
}

// --- backward: runs that were cut ---

struct LongRun {
  int id = -1;  // −1: none begins in this piece
  int begin = 0, end = 0;
};

template <typename X>
__device__ __forceinline__ LongRun long_run_of(const Sources<X>& sources, std::int64_t piece, int tokens) {
  const int begin = static_cast<int>(piece) * kRun, end = min(begin + kRun, tokens);
  if (begin >= end) return {};
  // A long run that begins in the piece continues after it, so the piece's last token belongs to it.
  const int id = id_at(sources, end - 1);
  const LongRun run{id, sources.lists.begin[id], sources.lists.begin[id + 1]};
  return run.begin >= begin && run.end - run.begin > kRun ? run : LongRun{};
}

// Four columns a lane of the partial sums [first, end) of a run. The run's first partial sum lies in slot `slot` of its
// piece, the others in slot 0.
__device__ __forceinline__ float4 sum_of_partials(const float* partial, std::int64_t stride, std::int64_t piece,
                                                  int slot, int first, int end) {
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int n = first; n < end; ++n) {
    const auto part = *reinterpret_cast<const float4*>(partial + (2 * (piece + n) + (n == 0 ? slot : 0)) * stride);
    sum.x += part.x;
    sum.y += part.y;
    sum.z += part.z;
    sum.w += part.w;
  }
  return sum;
}

template <typename X>
__global__ void __launch_bounds__(kThreads)
    combine_kernel(Sources<X> sources, Cut cut, int vocab, std::int64_t dim, float* table, std::int64_t table_stride,
                   const float* partial, bool accumulate) {
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_come();
  __shared__ LongRun runs[kPiecesOfABlock];
  __shared__ float4 shares[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_piece = static_cast<std::int64_t>(blockIdx.x) * kPiecesOfABlock;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kCombined + lane * 4;
  if (lane == 0) {
    const std::int64_t piece = first_piece + warp;
    runs[warp] = piece < cut.pieces ? long_run_of(sources, piece, sources.lists.begin[vocab]) : LongRun{};
  }
  __syncthreads();  // (10)
  for (int n = 0; n < kPiecesOfABlock; ++n) {
    const LongRun run = runs[n];
    if (run.id < 0) continue;  // the same for the whole block
    const std::int64_t piece = first_piece + n;
    const int count = static_cast<int>((run.end - 1) / kRun - piece) + 1, share = (count + kWarps - 1) / kWarps;
    const int slot = run.begin == static_cast<int>(piece) * kRun ? 0 : 1;
    float4 sum = make_float4(0, 0, 0, 0);
    if (column < cut.stride) {
      sum = sum_of_partials(partial + column, cut.stride, piece, slot, min(warp * share, count),
                            min((warp + 1) * share, count));
    }
    shares[warp][lane] = sum;
    __syncthreads();  // (11)
    if (warp == 0) {
      for (int other = 1; other < kWarps; ++other) {
        const float4 more = shares[other][lane];
        sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
      }
      const float values[4] = {sum.x, sum.y, sum.z, sum.w};
      float* to = table + run.id * table_stride + column;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (column + i < dim) to[i] = accumulate ? to[i] + values[i] : values[i];
      }
    }
    __syncthreads();  // (12)
  }
}

// --- launching ---

Cut cut_of(const Problem& problem) {
  return {static_cast<int>((problem.dim + kColumns - 1) / kColumns), (problem.rows + kRun - 1) / kRun,
          (problem.dim + 3) / 4 * 4};
}

struct Memory {
  Lists lists;
  float* partial;
};

// The workspace: begin, order, partial sums, each from 16 bytes on.
Memory memory_of(const Problem& problem, void* data) {
  auto* numbers = static_cast<int*>(data);
  int* order = numbers + round_up(problem.vocab + 1, 4);
  return {{numbers, order}, reinterpret_cast<float*>(order + round_up(problem.rows, 4))};
}

template <typename X, int kCount>
void launch_sums(const Problem& problem, const BackwardArgs& args, const Memory& memory, device::Stream stream) {
  const Cut cut = cut_of(problem);
  const Sources<X> sources{args.ids, memory.lists, static_cast<const X*>(args.dx.data), args.dx.stride(0)};
  const int vocab = static_cast<int>(problem.vocab);
  float* table = args.dtable.as<float>();
  static device::OverlappedKernel sums(sum_kernel<X, kCount>, 0, "sum_kernel of embedding");
  const std::int64_t warps = (cut.pieces + problem.vocab) * cut.slabs;
  sums.launch(dim3(static_cast<unsigned>((warps + kWarps - 1) / kWarps)), kThreads, stream, sources, cut, vocab,
              problem.dim, table, args.dtable.stride(0), memory.partial, args.accumulate);
  static device::OverlappedKernel combine(combine_kernel<X>, 0, "combine_kernel of embedding");
  const dim3 blocks(static_cast<unsigned>((cut.pieces + kPiecesOfABlock - 1) / kPiecesOfABlock),
                    static_cast<unsigned>((problem.dim + kCombined - 1) / kCombined));
  combine.launch(blocks, kThreads, stream, sources, cut, vocab, problem.dim, table, args.dtable.stride(0),
                 memory.partial, args.accumulate);
}

}  // namespace

void cuda_forward(const Problem& problem, const ForwardArgs& args, device::Stream stream) {
  const bool aligned = ops::rows_are_aligned(args.table) && ops::rows_are_aligned(args.x);
  const auto launch = [&]<typename Table, typename X, int kCount>() {
    static device::OverlappedKernel launcher(gather_kernel<Table, X, kCount>, 0, "gather_kernel of embedding");
    const auto blocks = static_cast<unsigned>((problem.rows + kWarps - 1) / kWarps);
    launcher.launch(dim3(blocks), kThreads, stream, args.ids, static_cast<const Table*>(args.table.data),
                    args.table.stride(0), static_cast<X*>(args.x.data), args.x.stride(0), problem);
  };
  ops::with_storage(problem.x_dtype, [&]<typename T>() {
    using X = Element<T>;
    if (problem.table_dtype == problem.x_dtype) {
      return aligned ? launch.template operator()<X, X, kWidth>() : launch.template operator()<X, X, 1>();
    }
    aligned ? launch.template operator()<float, X, kWidth>() : launch.template operator()<float, X, 1>();
  });
}

std::size_t cuda_backward_bytes(const Problem& problem) {
  const Cut cut = cut_of(problem);
  const std::int64_t numbers = round_up(problem.vocab + 1, 4) + round_up(problem.rows, 4) + 2 * cut.pieces * cut.stride;
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

void cuda_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const Memory memory = memory_of(problem, workspace.data);
  const std::int64_t ids_of_tile = std::clamp<std::int64_t>((problem.vocab + kTiles - 1) / kTiles, 1, kMostIds);
  static device::OverlappedKernel lists(list_kernel, 0, "list_kernel of embedding");
  lists.launch(dim3(static_cast<unsigned>((problem.vocab + ids_of_tile - 1) / ids_of_tile)), kListThreads, stream,
               args.ids, static_cast<int>(problem.rows), static_cast<int>(problem.vocab), static_cast<int>(ids_of_tile),
               memory.lists);
  ops::with_storage(problem.x_dtype, [&]<typename T>() {
    using X = Element<T>;
    const bool aligned = ops::rows_are_aligned(args.dx) && ops::rows_are_aligned(args.dtable);
    if (aligned && problem.dim % kWidth == 0) return launch_sums<X, kWidth>(problem, args, memory, stream);
    launch_sums<X, 1>(problem, args, memory, stream);
  });
}

}  // namespace syslab::embedding
