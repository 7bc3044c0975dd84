// The kernel of the oracle that computes results: sums over the reduction, with all numbers that their bounds need.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code). All barriers are of the
// block, and have only the jobs named.
//
//   (1) before tiles of operands are loaded
//       left     All threads have finished the products of the tiles before, and the sums of the step before, which
//                read `other` (one of these tiles) and the factors. The tiles are overwritten next, the factors before
//                (4).
//   (2) before the products
//       landed   The tiles are whole: each thread has stored a part of them, and reads parts of others.
//   (3) head_dim > kDepth, before `other` gets the columns of the result
//       left     For dq and dk: all threads have finished the last products, which read the tile of `other`. For out
//                and dv the products do not read that tile, and (1) would be enough.
//   (4) before the sums
//       landed   Factors, errors and probabilities of all threads; if (3) was passed, also `other`.
//       left     Nothing: what the sums read is next overwritten after (1).
//   Ordinary launches order the kernels: `rows`, which earlier kernels have stored, has landed.
#pragma once

#include <utility>

#include "ops/attention/error_bound.hpp"
#include "ops/attention/oracle/rows.cuh"

namespace syslab::attention::oracle {
namespace {

enum class Result { out, dq, dk, dv };

constexpr bool of_queries(Result result) { return result == Result::out || result == Result::dq; }
constexpr bool wants_ds(Result result) { return result == Result::dq || result == Result::dk; }

template <Result kResult>
struct SumsShared {
  Tile<kOwned, kDepth> a;
  Tile<wants_ds(kResult) ? kOwned : 1, kDepth> a2;
  Tile<kSteps, kDepth> b, b2;
  Tile<kSteps, kOwned> factor, error;  // rows of a position side by side
  Tile<kResult == Result::dq ? kSteps : 1, kOwned> probability;
};

// (a + b)² ≤ (1 + ε)·a² + (1 + 1/ε)·b²: the square of an error and of what is lost to underflow, without a root.
constexpr double kEpsilon = 0x1p-20;
__device__ double with_underflow(double square, double flushed) {
  return (1 + kEpsilon) * square + (1 + 1 / kEpsilon) * flushed * flushed;
}

// The sums of one element. The largest prefix as the upper word of its double.
struct Element {
  double value = 0, squares = 0, third = 0;
  int prefix = 0;

  __device__ double largest_prefix() const { return __hiloint2double(prefix + 1, 0); }
};

struct SumsArguments {
  Given p;
  Chosen chosen;
  const HeadStats *k_stats, *v_stats;
  const QueryRow* rows;
  double *value, *tolerance;
};

template <Result kResult>
__device__ void finish(const SumsArguments& arguments, const Place& at, std::int64_t row, int column,
                       const Element& sums, double other_squares) {
  const Sizes& sizes = arguments.p.sizes;
  const ErrorModel& model = arguments.p.model;
  const std::int64_t group = sizes.heads_q / sizes.heads_kv;
  std::int64_t element = 0;
  double value = sums.value, tolerance = 0;
  if constexpr (of_queries(kResult)) {
    const std::int64_t flat = (at.batch * sizes.heads_q + at.head) * sizes.seq_q + row;
    const std::int64_t kv = at.batch * sizes.heads_kv + at.head / group;
    const QueryRow& known = arguments.rows[flat];
    const auto visible = static_cast<double>(sizes.visible_keys(row));
    element = flat * sizes.head_dim + column;
    if constexpr (kResult == Result::out) {
      const HeadStats& v = arguments.v_stats[kv];
      const RowError error{visible, known.score_sigma, known.score_bound, known.squares, known.lse_bound};
      if (visible > 0) {  // else exactly zero
        tolerance =
            out_bound(model, error,
                      {value, sums.third, sums.squares, sums.largest_prefix(), v.squares[column], v.largest[column]});
      }
    } else {
      value *= sizes.scale;
      const double coherent = fabs(sizes.scale * sums.third) * known.dot_bound + kappa(known.lse_bound) * fabs(value);
      tolerance = gradient_bound(
          model, sizes.scale,
          {value, sums.squares, sums.largest_prefix(), arguments.k_stats[kv].squares[column], visible, coherent});
    }
  } else {
    const double scale = kResult == Result::dk ? sizes.scale : 1.0;
    element = ((at.batch * sizes.heads_kv + at.head) * sizes.seq_k + row) * sizes.head_dim + column;
    value *= scale;
    tolerance = gradient_bound(
        model, scale,
        {value, sums.squares, sums.largest_prefix(), other_squares, static_cast<double>(group * sizes.seq_q), 0});
  }
  arguments.value[element] = value;
  arguments.tolerance[element] = tolerance;
}

static_assert(kRows == 2 && kColumns % 2 == 0, "a thread's rows and columns are pairs");

template <Result kResult>
__global__ void __launch_bounds__(kThreads, 2) sums_kernel(SumsArguments arguments) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<SumsShared<kResult>*>(memory);
  const Given& p = arguments.p;
  const Sizes& sizes = p.sizes;
  // A warp is 8 × 4 threads, so that its threads read few words of a tile at a time, or as many as there are banks.
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int x = lane % 8 + warp % 2 * 8, y = lane / 8 + warp / 2 * 4;
  const std::int64_t group = sizes.heads_q / sizes.heads_kv;
  const Place at = arguments.chosen.place();
  const int first_column = static_cast<int>(blockIdx.y) * kDepth;
  const Operand& a = of_queries(kResult) ? p.q : p.k;
  const Operand& b = of_queries(kResult) ? p.k : p.q;
  const Operand& a2 = of_queries(kResult) ? p.dout : p.v;
  const Operand& b2 = of_queries(kResult) ? p.v : p.dout;
  // The operand that factors are multiplied by: K or Q for dS, V or dO for P.
  Tile<kSteps, kDepth>& other = wants_ds(kResult) ? shared.b : shared.b2;
  Element sums[kRows][kColumns];
  double other_squares[kColumns] = {};  // Σ x² of what the reduction went through, for casts that underflow
  const std::int64_t least = of_queries(kResult) ? 0 : sizes.first_query(at.row);

  // One step: positions first … first + 31 of the reduction in head `head` of the operands that it runs through.
  const auto step = [&](std::int64_t head, std::int64_t first, bool fresh) {
    const Place there{at.batch, head, first};
    const std::int64_t query_head = of_queries(kResult) ? at.head : head;
    const QueryRow* rows = arguments.rows + (at.batch * sizes.heads_q + query_head) * sizes.seq_q;
    double products[kRows][kPairs] = {}, gradients[kRows][kPairs] = {};
    const bool at_once = sizes.head_dim <= kDepth;
    for (int column = 0; column < sizes.head_dim; column += kDepth) {
      __syncthreads();  // (1)
      if (fresh || !at_once) {
        load(a, at.batch, at.head, at.row, column, shared.a);
        if constexpr (wants_ds(kResult)) load(a2, at.batch, at.head, at.row, column, shared.a2);
      }
      load(b, there.batch, there.head, first, column, shared.b, least);
      if (wants_ds(kResult) || at_once) load(b2, there.batch, there.head, first, column, shared.b2, least);
      __syncthreads();  // (2)
      const int depth = min(kDepth, sizes.head_dim - column);
      accumulate(shared.a, shared.b, depth, x, y, products);
      if constexpr (wants_ds(kResult)) accumulate(shared.a2, shared.b2, depth, x, y, gradients);
    }
    // The columns that this block makes.
    if (!at_once) {
      __syncthreads();  // (3)
      load(wants_ds(kResult) ? b : b2, there.batch, there.head, first, first_column, other, least);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int s = 0; s < kPairs; ++s) {
        const std::int64_t own = at.row + kRows * y + r, reduced = first + x + kSide * s;
        const std::int64_t i = of_queries(kResult) ? own : reduced, j = of_queries(kResult) ? reduced : own;
        double factor = 0, error = 0, probability = 0;
        if (i < sizes.seq_q && j < sizes.visible_keys(i)) {
          const QueryRow& row = rows[i];
          probability = exp(sizes.scale * products[r][s] - row.lse);
          const double square = probability * probability, tiny = p.model.tiny;
          if constexpr (kResult == Result::out) {
            factor = probability;
            error = square;
          } else if constexpr (kResult == Result::dv) {
            factor = probability;
            error = with_underflow(square * row.dv_error, tiny);
          } else {
            const double difference = gradients[r][s] - row.row_dot, subnormal = p.model.cast_tiny * difference;
            const double by_x = kResult == Result::dq ? row.dq_by_x : row.dk_by_x;
            const double rest = kResult == Result::dq ? row.dq_rest : row.dk_rest;
            factor = probability * difference;
            error = with_underflow(square * (by_x * difference * difference + rest) + subnormal * subnormal,
                                   tiny * (fabs(difference) + 1));
          }
        }
        shared.factor.cell[x + kSide * s][kRows * y + r] = factor;
        shared.error.cell[x + kSide * s][kRows * y + r] = error;
        if constexpr (kResult == Result::dq) shared.probability.cell[x + kSide * s][kRows * y + r] = probability;
      }
    }
    __syncthreads();  // (4)
#pragma unroll 1
    for (int s = 0; s < kSteps; ++s) {
      const double2 factors = pair_at(&shared.factor.cell[s][kRows * y]),
                    errors = pair_at(&shared.error.cell[s][kRows * y]);
      const double factor[] = {factors.x, factors.y}, error[] = {errors.x, errors.y};
      double probability[kRows] = {};
      if constexpr (kResult == Result::dq) {
        const double2 both = pair_at(&shared.probability.cell[s][kRows * y]);
        probability[0] = both.x;
        probability[1] = both.y;
      }
      double others[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; c += 2) {
        const double2 both = pair_at(&other.cell[s][2 * x + kSide * c]);
        others[c] = both.x;
        others[c + 1] = both.y;
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const double one = others[c], square = one * one;
        if constexpr (!of_queries(kResult)) other_squares[c] += square;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          Element& sum = sums[r][c];
          sum.value += factor[r] * one;
          sum.squares += error[r] * square;
          if constexpr (kResult == Result::out) sum.third += factor[r] * fabs(one);
          if constexpr (kResult == Result::dq) sum.third += probability[r] * one;
          sum.prefix = max(sum.prefix, __double2hiint(sum.value) & 0x7fffffff);
        }
      }
    }
  };

  bool fresh = true;
  if constexpr (of_queries(kResult)) {
    const std::int64_t keys = sizes.visible_keys(min(at.row + kOwned, sizes.seq_q) - 1);
    for (std::int64_t first = 0; first < keys; first += kSteps)
      step(at.head / group, first, std::exchange(fresh, false));
  } else {
    const std::int64_t begin = least / kSteps * kSteps;
    for (std::int64_t head = at.head * group; head < (at.head + 1) * group; ++head) {
      for (std::int64_t first = begin; first < sizes.seq_q; first += kSteps)
        step(head, first, std::exchange(fresh, false));
    }
  }
  const std::int64_t rows = of_queries(kResult) ? sizes.seq_q : sizes.seq_k;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {  // unrolled, or the sums would live in memory
    const std::int64_t row = at.row + kRows * y + r;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int column = first_column + 2 * x + kSide * (c / 2 * 2) + c % 2;
      if (row < rows && column < sizes.head_dim)
        finish<kResult>(arguments, at, row, column, sums[r][c], other_squares[c]);
    }
  }
}

}  // namespace
}  // namespace syslab::attention::oracle
