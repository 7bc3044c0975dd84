// The kernels of the oracle that compute what bounds need to know about rows and columns.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code). All barriers are of the
// block, and have only the jobs named.
//
//   columns_kernel
//   (1) landed   Norms and squares of all warps are there: a thread adds up one column of squares. The norms are read
//                at the end.
//   (2) left     All threads have read the squares; the largest values are stored over them.
//   (3) landed   The largest values of all warps are there. Nothing is overwritten any more.
//   rows_kernel
//   (4) before tiles are loaded
//       left     All threads have finished the products of the tiles before, which are overwritten. (Before the first
//                tiles it has no job.)
//   (5) before the products
//       landed   Both tiles are whole: each thread has stored a part of them, and reads parts of others.
//   gradient_kernel: warps share nothing, and the lanes of a warp add up by shuffles.
//   Ordinary launches order the kernels.
#pragma once

#include <math_constants.h>

#include "ops/attention/error_bound.hpp"
#include "ops/attention/oracle/tile.cuh"

namespace syslab::attention::oracle {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;

__device__ double sum_of_warp(double value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// --- columns --------------------------------------------------------------------------------------------------------

struct HeadStats {
  double norm;  // of the longest row
  double squares[kMaxDim], largest[kMaxDim];
};

__global__ void __launch_bounds__(kThreads) columns_kernel(Operand from, std::int64_t heads, HeadStats* to) {
  constexpr int kWarps = kThreads / kWarp, kOfLane = kMaxDim / kWarp;
  __shared__ double shared[kWarps][kMaxDim];
  __shared__ double norms[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t batch = blockIdx.x / heads, head = blockIdx.x % heads;
  double squares[kOfLane] = {}, largest[kOfLane] = {}, norm = 0;
  for (std::int64_t row = warp; row < from.rows; row += kWarps) {
    double of_row = 0;
#pragma unroll
    for (int n = 0; n < kOfLane; ++n) {
      const int column = lane + kWarp * n;
      const double value = column < from.columns ? from.at(batch, head, row, column) : 0.0;
      of_row += value * value;
      squares[n] += value * value;
      largest[n] = fmax(largest[n], fabs(value));
    }
    norm = fmax(norm, sum_of_warp(of_row));
  }
  HeadStats& result = to[blockIdx.x];
  if (lane == 0) norms[warp] = norm;
  for (int n = 0; n < kOfLane; ++n) shared[warp][lane + kWarp * n] = squares[n];
  __syncthreads();  // (1)
  double sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared[w][threadIdx.x];
  result.squares[threadIdx.x] = sum;
  __syncthreads();  // (2)
  for (int n = 0; n < kOfLane; ++n) shared[warp][lane + kWarp * n] = largest[n];
  __syncthreads();  // (3)
  double most = 0;
  for (int w = 0; w < kWarps; ++w) most = fmax(most, shared[w][threadIdx.x]);
  result.largest[threadIdx.x] = most;
  if (threadIdx.x == 0) {
    double longest = 0;
    for (const double one : norms) longest = fmax(longest, one);
    result.norm = sqrt(longest);
  }
}
static_assert(kThreads == kMaxDim, "a thread a column");

// --- rows -----------------------------------------------------------------------------------------------------------

// Numbers of a query row. The last six are for the backward pass: squares of relative errors of P, of P times X² and of
// P alone, as dq and dk need them.
struct QueryRow {
  double lse, lse_bound, score_sigma, score_bound, squares;
  double row_dot, dot_bound, dq_by_x, dq_rest, dk_by_x, dk_rest, dv_error;
};

// The arguments of every kernel.
struct Given {
  Sizes sizes;
  ErrorModel model;
  Operand q, k, v, dout;
};

// Tiles of rows are counted through all heads; `chosen` lists those that are wanted, null: all.
struct Chosen {
  const std::int64_t* list = nullptr;
  std::int64_t of_a_head = 1, heads = 1;

  __device__ Place place() const {
    const std::int64_t tile = list == nullptr ? static_cast<std::int64_t>(blockIdx.x) : list[blockIdx.x];
    const std::int64_t head = tile / of_a_head;
    return {head / heads, head % heads, tile % of_a_head * kOwned};
  }
};

// Sums of exponentials and of their squares, relative to the largest score so far.
struct Online {
  double largest, sum, squares;

  __device__ void add(double score) {
    if (score > largest) {
      const double shrink = exp(largest - score);
      *this = {score, sum * shrink + 1, squares * shrink * shrink + 1};
    } else {
      const double term = exp(score - largest);
      sum += term;
      squares += term * term;
    }
  }
  __device__ void add(const Online& other) {
    if (other.sum == 0) return;
    const double most = fmax(largest, other.largest), mine = exp(largest - most), others = exp(other.largest - most);
    *this = {most, sum * mine + other.sum * others, squares * mine * mine + other.squares * others * others};
  }
};

struct RowsShared {
  Tile<kOwned, kDepth> a;
  Tile<kSteps, kDepth> b;
};

__global__ void __launch_bounds__(kThreads, 2)
    rows_kernel(Given p, Chosen chosen, const HeadStats* k_stats, QueryRow* rows, double* value, double* tolerance) {
  extern __shared__ __align__(16) unsigned char memory[];
  RowsShared& shared = *reinterpret_cast<RowsShared*>(memory);
  const Sizes& sizes = p.sizes;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const Place at = chosen.place();
  const std::int64_t kv_head = at.head / (sizes.heads_q / sizes.heads_kv);
  const std::int64_t last = min(at.row + kOwned, sizes.seq_q) - 1, keys = sizes.visible_keys(last);
  const double nothing = -CUDART_INF;
  Online online[kRows];
  std::int64_t visible[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    online[r] = {nothing, 0, 0};
    visible[r] = sizes.visible_keys(min(at.row + kRows * y + r, last));
  }
  for (std::int64_t first = 0; first < keys; first += kSteps) {
    double products[kRows][kPairs] = {};
    for (int column = 0; column < sizes.head_dim; column += kDepth) {
      __syncthreads();  // (4)
      if (first == 0 || sizes.head_dim > kDepth) load(p.q, at.batch, at.head, at.row, column, shared.a);
      load(p.k, at.batch, kv_head, first, column, shared.b);
      __syncthreads();  // (5)
      accumulate(shared.a, shared.b, min(kDepth, sizes.head_dim - column), x, y, products);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int s = 0; s < kPairs; ++s) {
        if (first + x + kSide * s < visible[r]) online[r].add(sizes.scale * products[r][s]);
      }
    }
  }
  const HeadStats& keys_of_head = k_stats[at.batch * sizes.heads_kv + kv_head];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t i = at.row + kRows * y + r;
    double norm = 0;
    for (int d = x; i <= last && d < sizes.head_dim; d += kSide) {
      const double one = p.q.at(at.batch, at.head, i, d);
      norm += one * one;
    }
    for (int distance = kSide / 2; distance > 0; distance /= 2) {
      const Online other{__shfl_xor_sync(kAllLanes, online[r].largest, distance),
                         __shfl_xor_sync(kAllLanes, online[r].sum, distance),
                         __shfl_xor_sync(kAllLanes, online[r].squares, distance)};
      online[r].add(other);
      norm += __shfl_xor_sync(kAllLanes, norm, distance);
    }
    if (x != 0 || i > last) continue;
    const Online& all = online[r];
    const double lse = visible[r] == 0 ? nothing : all.largest + log(all.sum);
    const double squares = visible[r] == 0 ? 0 : all.squares / (all.sum * all.sum);
    const RowError error = row_error(p.model, sizes.head_dim, sizes.scale, sqrt(norm), keys_of_head.norm,
                                     static_cast<double>(visible[r]), squares, lse, all.largest);
    const std::int64_t flat = (at.batch * sizes.heads_q + at.head) * sizes.seq_q + i;
    QueryRow& row = rows[flat];
    row.lse = value[flat] = lse;
    row.lse_bound = tolerance[flat] = error.lse_bound;
    row.score_sigma = error.score_sigma;
    row.score_bound = error.score_bound;
    row.squares = squares;
  }
}

// --- gradient -------------------------------------------------------------------------------------------------------

// Like backward_row() of the CPU's oracle; a warp takes a row of the chosen tiles.
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(Given p, Chosen chosen, const HeadStats* v_stats, const double* out, const double* out_tolerance,
                    QueryRow* rows) {
  const Sizes& sizes = p.sizes;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const Place at = chosen.place();
  for (std::int64_t i = at.row + warp; i < min(at.row + kOwned, sizes.seq_q); i += kThreads / kWarp) {
    const std::int64_t flat = (at.batch * sizes.heads_q + at.head) * sizes.seq_q + i;
    double dot = 0, input = 0, out_squares = 0, dout_squares = 0;
    for (int d = lane; d < sizes.head_dim; d += kWarp) {
      const double o = out[flat * sizes.head_dim + d], gradient = p.dout.at(at.batch, at.head, i, d);
      const double wrong = out_tolerance[flat * sizes.head_dim + d] * gradient;
      dot += o * gradient;
      input += wrong * wrong;
      out_squares += o * o;
      dout_squares += gradient * gradient;
    }
    dot = sum_of_warp(dot);
    input = sum_of_warp(input);
    out_squares = sum_of_warp(out_squares);
    dout_squares = sum_of_warp(dout_squares);
    if (lane != 0) continue;
    QueryRow& row = rows[flat];
    const double growth = row.score_bound > 0 ? kappa(row.score_bound) / row.score_bound : 1;
    const double score = hypot(growth * row.score_sigma, kFunctionUlps * p.model.unit);
    const double factor = hypot(score, growth * row.lse_bound / kLambda);
    const double rounding = p.model.unit * sqrt(static_cast<double>(sizes.head_dim)) * sqrt(dout_squares);
    const double factors = sqrt(2.0) * p.model.factor_unit * sqrt(dout_squares);
    const double product =
        (rounding + factors) * v_stats[at.batch * sizes.heads_kv + at.head / (sizes.heads_q / sizes.heads_kv)].norm;
    const double cast = p.model.cast_unit * p.model.cast_unit;
    row.row_dot = dot;
    row.dot_bound = kLambda * (rounding * sqrt(out_squares) + sqrt(input));
    const double rest = product + row.dot_bound / kLambda;
    row.dq_by_x = score * score + 2 * cast;
    row.dq_rest = product * product;
    row.dk_by_x = factor * factor + 2 * cast;
    row.dk_rest = rest * rest;
    row.dv_error = factor * factor + cast;
  }
}

}  // namespace
}  // namespace syslab::attention::oracle
