// For `naive` rungs over matrices: rows of any dtype as stretches of floats, and threaded loops over rows.
//
// A stretch is short enough that several copies stay in the L1 cache. Results are computed into scratch memory and
// written afterwards, so that loops never overlap what they read and write (and vectorise) even if an output shares an
// input's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/tensor.hpp"
#include "ops/host_pieces.hpp"

namespace syslab::ops {

inline constexpr std::int64_t kStretch = 512;
using Stretch = std::array<float, kStretch>;

// `count` ≤ kStretch elements from column `from` of a row of f32, f16 or bf16: the matrix's own memory, or `scratch`.
const float* read_floats(const ConstTensorView& matrix, std::int64_t row, std::int64_t from, std::int64_t count,
                         Stretch& scratch);
// Rounded once.
void write_floats(const TensorView& matrix, std::int64_t row, std::int64_t from, std::int64_t count,
                  const float* values);

// body(from, count) for the stretches of `dim` columns.
template <typename Body>
void for_each_stretch(std::int64_t dim, const Body& body) {
  for (std::int64_t from = 0; from < dim; from += kStretch) body(from, std::min(kStretch, dim - from));
}

// Chunks of rows that depend only on the shape, so that sums over rows have the same order for any number of threads.
struct RowChunks {
  std::int64_t rows = 1, rows_of_chunk = 1, count = 1;

  std::int64_t first(std::int64_t chunk) const { return chunk * rows_of_chunk; }
  std::int64_t end(std::int64_t chunk) const { return std::min(first(chunk) + rows_of_chunk, rows); }
};

// At most 64 chunks of at least 8,192 elements (some microseconds of one core).
inline RowChunks chunks_of(std::int64_t rows, std::int64_t dim) {
  constexpr std::int64_t kMostChunks = 64, kLeastElements = 8192;
  const std::int64_t by_work = (kLeastElements + dim - 1) / dim, by_count = (rows + kMostChunks - 1) / kMostChunks;
  RowChunks chunks{.rows = rows, .rows_of_chunk = std::max(by_work, by_count)};
  chunks.count = (rows + chunks.rows_of_chunk - 1) / chunks.rows_of_chunk;
  return chunks;
}

// Runs body(chunk) for every chunk, on threads only if there is enough work: a threaded loop cannot end before its last
// thread has woken.
template <typename Body>
void for_each_chunk(const RowChunks& chunks, std::int64_t dim, const Body& body) {
  constexpr std::int64_t kWork = 8;  // cost of an element relative to one that is only read and written
  for_pieces(chunks.rows, chunks.rows_of_chunk, kWork * dim,
             [&](std::int64_t first, std::int64_t) { body(first / chunks.rows_of_chunk); });
}

}  // namespace syslab::ops
