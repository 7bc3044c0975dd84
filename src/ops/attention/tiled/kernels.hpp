// The inner loops of flash_tiled as a table of functions, one table per instruction set, chosen at run time.
//
// All work on a *panel*: `rows` rows of scores against one tile of kTile columns. Buffers are floats; a panel of scores
// is row-major with a row stride of kTile. "Turned" (transposed) operands are packed so that the inner loop reads them
// in order:
//
//   turned tile    [kTile / strip][depth][strip]   columns of Kᵀ (or Vᵀ, Qᵀ, dOᵀ), zero beyond the last
//   panel          [depth][rows]                   rows of Q (or dO, K, V), zero beyond the last
//   straight rows  [row][width]                    rows of V (or K, dO, Q), zero from head_dim to `width`
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace syslab::attention {

inline constexpr std::int64_t kTile = 128;     // columns of a tile of scores; a multiple of every strip
inline constexpr std::int64_t kMaxRows = 12;   // largest FlashKernels::rows
inline constexpr std::int64_t kMaxLanes = 16;  // largest FlashKernels::lanes

// The columns of a tile visible to a row of scores: [first, last).
struct Visible {
  std::int64_t first[kMaxRows];
  std::int64_t last[kMaxRows];
};

struct FlashKernels {
  std::string_view name;  // "avx512"
  std::int64_t rows;      // of a panel
  std::int64_t lanes;     // floats of a vector
  std::int64_t strip;     // columns of a micro-tile: two vectors

  // scores[r][c] = Σ_d panel[d][r]·turned[c][d] for columns [begin, end) widened to whole strips.
  void (*scores)(const float* panel, const float* turned, std::int64_t depth, std::int64_t begin, std::int64_t end,
                 float* scores);
  // sums[r][·] = rescale[r]·sums[r][·] + Σ_c weights[r][c]·straight[c][·], c in [begin, end); `rescale` null: 1.
  void (*accumulate)(const float* weights, std::int64_t begin, std::int64_t end, const float* straight,
                     std::int64_t width, const float* rescale, float* sums);
  // One step of the online softmax in base 2: scores become exp2(s − m'), 0 outside `visible`, over columns [0, end);
  // m (rows) takes the new maxima, l (rows·lanes) partial sums of each row, rescale (rows) exp2(m − m').
  void (*softmax)(float* scores, const Visible& visible, std::int64_t end, float* m, float* l, float* rescale);
  // P = exp2(s − lse) and dS = P·(dP − dot) in place over columns [begin, end) widened to vectors, 0 outside `visible`;
  // lse (base 2) and dot belong to rows, or to columns.
  void (*gradient_by_row)(float* scores, float* dp, const float* lse, const float* dot, const Visible& visible,
                          std::int64_t begin, std::int64_t end);
  void (*gradient_by_column)(float* scores, float* dp, const float* lse, const float* dot, const Visible& visible,
                             std::int64_t begin, std::int64_t end);
  // values[i] = 2^values[i], count a multiple of lanes: relative error at most 4·2⁻²⁴ (tested), exactly 1 at 0, 0 below
  // −126, +∞ from 128.
  void (*exp2)(float* values, std::int64_t count);
};

// The tables that this processor supports, slowest first; never empty.
std::span<const FlashKernels* const> flash_kernels();

}  // namespace syslab::attention
