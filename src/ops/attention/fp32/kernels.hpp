// Between the host side of the fp32 rungs and their kernels, which nvcc compiles. Its functions are constexpr so that
// both may call them.
//
// Planes. A pre-pass turns each of Q, K, V and dO into tiles of kTileRows rows, padded with zero rows and columns, in
// the form that shared memory will have (fp32/arithmetic.cuh), each tile with a power of two of its own. So the
// main kernels copy without a condition, whatever the strides, alignment and head_dim of the tensors were. It reads and
// writes each tensor once, and is to the main kernel as 1 to S/40 or so.
//
// Work. A block owns a tile of rows on one side (queries; for dK and dV, keys) and goes over tiles of the other. Where
// there are too few tiles for the GPU, or causal ones too unequal, the range is cut into chunks that are blocks of
// their own; they leave partial results, which a last kernel joins in order. Nothing depends on who is first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::attention::fp32 {

inline constexpr int kTileRows = 64;     // rows that share a scale
inline constexpr int kRowPadding = 128;  // planes end at a multiple of this: the most rows a block owns
inline constexpr int kTop = 15;          // planes and probabilities are scaled to at most 2^kTop
inline constexpr float kTopFactor = 0x1p15F;
inline constexpr int kThreads = 128;  // of the main kernels
inline constexpr int kWarps = kThreads / 32;

// Of one tile: |x| < 2^exponent, and the Euclidean norm of each row < 2^norm. Its plane holds x·2^(kTop − exponent).
struct TileScale {
  int exponent;
  int norm;
};

struct Planes {
  char* data;
  TileScale* scales;
};

// Rows of a (batch, heads, rows, head_dim) tensor; strides in elements. Without head_dim: lse.
template <typename T>
struct Rows {
  T* data;
  std::int64_t batch_stride, head_stride, row_stride;

  constexpr T* at(int batch, int head, std::int64_t row) const {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

// How a block's range of tiles is cut: chunk c takes tiles [c·tiles, (c + 1)·tiles) of it.
struct Split {
  int tiles = 1;
  int chunks = 1;  // the most that a range is cut into
};

struct Shape {
  int batch, heads_q, heads_kv, group;  // group: query heads to a key/value head
  int seq_q, seq_k, head_dim;
  int padded_q, padded_k;   // rows of a head in the planes
  int causal, offset;       // query i sees keys j ≤ i + offset
  float scale, scale_log2;  // |scale| and |scale|·log2(e); the sign is in Q's planes
  float signed_scale;

  // Keys that query `row` sees: [0, limit).
  constexpr int limit(int row) const {
    if (!causal) return seq_k;
    const std::int64_t seen = static_cast<std::int64_t>(row) + 1 + offset;
    return static_cast<int>(seen < 0 ? 0 : seen > seq_k ? seq_k : seen);
  }
};

struct Range {
  int begin, end;  // tiles of kTileRows
};

// Key tiles that queries [first, first + rows) see.
constexpr Range keys_of(const Shape& shape, int first, int rows) {
  const int last = (first + rows < shape.seq_q ? first + rows : shape.seq_q) - 1;
  return {0, (shape.limit(last) + kTileRows - 1) / kTileRows};
}
// Query tiles that see any of the keys from `first` on.
constexpr Range queries_of(const Shape& shape, int first) {
  const int tiles = (shape.seq_q + kTileRows - 1) / kTileRows;
  const int row = shape.causal && first > shape.offset ? first - shape.offset : 0;
  return {row / kTileRows < tiles ? row / kTileRows : tiles, tiles};
}

struct ForwardParams {
  Shape shape;
  Planes q, k, v;
  Rows<float> out, lse;
  bool pairs;  // rows of `out` may be written two floats at a time
  Split split;
  float* partial;      // (head, chunk, padded_q, columns), normalised, where split
  float* partial_lse;  // (head, chunk, padded_q), base 2
};

struct BackwardParams {
  Shape shape;
  Planes q, k, v, dout;
  const float* shift;  // (head, padded_q): s − L·log2(e), s of 0 … kTop by row; −∞ where a row sees nothing
  const float* rest;   // (head, padded_q): 2^(kTop − s)
  const float* delta;  // (head, padded_q): Σ dO·O
  const int* delta_scale;     // (head, padded_q / kTileRows): |delta| < 2^x
  Rows<float> first, second;  // dK, dV; or dQ
  bool pairs_first, pairs_second;
  Split split;
  float* partial;  // dK, dV: (2, head, chunk, padded_k, columns); dQ: (head, chunk,
                   // padded_q, columns)
};

// The two arithmetics of fp32/arithmetic.cuh.
struct Half3;
struct Tf32;

// Each queues one kernel. `columns` is that of the planes: 16, 32, 64 or 128. Error(device) when the launch failed.
template <class Arithmetic>
void launch_forward(int columns, const ForwardParams& params, std::int64_t blocks, device::Stream stream);
template <class Arithmetic>
void launch_key_gradients(int columns, const BackwardParams& params, std::int64_t blocks, device::Stream stream);
template <class Arithmetic>
void launch_query_gradients(int columns, const BackwardParams& params, std::int64_t blocks, device::Stream stream);

// --- the small kernels around them, all bound by memory ---

// One tensor, to be made into planes.
struct PlaneJob {
  Rows<const float> from;
  Planes to;
  int heads, rows, padded_rows;  // of a batch entry; of a head
  int first_block;               // of this job, in the grid
  float sign;
  bool vectors;  // rows may be read kVector floats at a time
};
struct PlaneJobs {
  PlaneJob job[4];
  int count, head_dim;
};

// Floats that it reads and writes at a time.
constexpr int plane_vector(int columns) { return columns == 128 ? 4 : 2; }
// Queues all jobs as one kernel of `blocks` blocks, one a tile.
template <class Arithmetic>
void make_planes(const PlaneJobs& jobs, int columns, std::int64_t blocks, device::Stream stream);

// Of each row s − L·log2(e), 2^(kTop − s) and Σ_d dO·O, and of each tile the exponent of the largest of the last.
struct StatisticsParams {
  Shape shape;
  Rows<const float> out, dout, lse;
  float* shift;
  float* rest;
  float* delta;
  int* delta_scale;
};

void make_statistics(const StatisticsParams& params, device::Stream stream);

// Of each row: L = log Σ_c exp(L_c), O = Σ_c exp(L_c − L)·O_c.
struct JoinParams {
  Shape shape;
  int heads, heads_of_batch, rows, padded_rows, columns;
  int block_rows;  // of what made the parts
  Split split;
  const float* partial;
  const float* partial_lse;
  Rows<float> out, lse;
};

void join_forward(const JoinParams& params, device::Stream stream);

// Gradients from split ranges: their sum, in order.
struct GradientJoinParams {
  Shape shape;
  Rows<float> first, second;  // dK and dV, or dQ
  bool keys;                  // dK and dV
  int heads, heads_of_batch, rows, padded_rows, columns, block_rows;
  Split split;
  const float* partial;
};

void join_gradients(const GradientJoinParams& params, device::Stream stream);

}  // namespace syslab::attention::fp32
