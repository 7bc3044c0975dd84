// The interface between the host code of the fp32 rungs and their kernels, compiled by nvcc. Functions are constexpr so
// that both can call them.
//
// Planes. A pre-pass turns each of Q, K, V and dO into tiles of kTileRows rows, padded with zero rows and columns, in
// their shared-memory layout (fp32/arithmetic.cuh), each tile scaled by its own power of two. So the main kernels copy
// unconditionally, whatever the tensors' strides, alignment and head_dim. The pre-pass reads and writes each tensor
// once; its time relates to the main kernel's about as 1 to S/40.
//
// Work. A block owns a tile of rows on one side (queries; for dK and dV, keys) and iterates over tiles of the other. If
// there are too few tiles for the GPU, or causal ranges are too unequal, ranges are split into chunks, one block each;
// a last kernel joins their partial results in a fixed order. Nothing depends on which block finishes first.
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
inline constexpr int kThreads = 128;  // per block of the main kernels
inline constexpr int kWarps = kThreads / 32;

// For one tile: |x| < 2^exponent, and the Euclidean norm of each row < 2^norm. Its plane holds x·2^(kTop − exponent).
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

// How a block's range of tiles is split: chunk c takes tiles [c·tiles, (c + 1)·tiles) of it.
struct Split {
  int tiles = 1;
  int chunks = 1;  // the most per range
};

struct Shape {
  int batch, heads_q, heads_kv, group;  // group: query heads per key/value head
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
  float* partial;      // (head, chunk, padded_q, columns), normalised; if split
  float* partial_lse;  // (head, chunk, padded_q), base 2
};

struct BackwardParams {
  Shape shape;
  Planes q, k, v, dout;
  const float* shift;      // (head, padded_q): s − L·log2(e), s in 0 … kTop per row; −∞ if a row sees no key
  const float* rest;       // (head, padded_q): 2^(kTop − s)
  const float* delta;      // (head, padded_q): Σ dO·O
  const int* delta_scale;  // (head, padded_q / kTileRows): |delta| < 2^x
  Rows<float> first, second;  // dK, dV; or dQ
  bool pairs_first, pairs_second;
  Split split;
  float* partial;  // dK, dV: (2, head, chunk, padded_k, columns); dQ: (head, chunk,
                   // padded_q, columns)
};

// The two kinds of arithmetic in fp32/arithmetic.cuh.
struct Half3;
struct Tf32;

// Each queues one kernel. `columns` of the planes: 16, 32, 64 or 128. Error(device) if the launch failed.
template <class Arithmetic>
void launch_forward(int columns, const ForwardParams& params, std::int64_t blocks, device::Stream stream);
template <class Arithmetic>
void launch_key_gradients(int columns, const BackwardParams& params, std::int64_t blocks, device::Stream stream);
template <class Arithmetic>
void launch_query_gradients(int columns, const BackwardParams& params, std::int64_t blocks, device::Stream stream);

// --- the small kernels around them, all memory-bound ---

// One tensor to convert into planes.
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
  bool norms;  // of the tiles' rows too: the backward pass alone asks for them
};

// Floats read and written at a time.
constexpr int plane_vector(int columns) { return columns == 128 ? 4 : 2; }
// Queues all jobs as one kernel of `blocks` blocks, one per tile.
template <class Arithmetic>
void make_planes(const PlaneJobs& jobs, int columns, std::int64_t blocks, device::Stream stream);

// For each row s − L·log2(e), 2^(kTop − s) and Σ_d dO·O, and for each tile the exponent of the largest Σ_d dO·O.
struct StatisticsParams {
  Shape shape;
  Rows<const float> out, dout, lse;
  float* shift;
  float* rest;
  float* delta;
  int* delta_scale;
};

void make_statistics(const StatisticsParams& params, device::Stream stream);

// For each row: L = log Σ_c exp(L_c), O = Σ_c exp(L_c − L)·O_c.
struct JoinParams {
  Shape shape;
  int heads, heads_of_batch, rows, padded_rows, columns;
  int block_rows;  // rows of the blocks that wrote the parts
  Split split;
  const float* partial;
  const float* partial_lse;
  Rows<float> out, lse;
};

void join_forward(const JoinParams& params, device::Stream stream);

// Sums gradients from split ranges, in order.
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
