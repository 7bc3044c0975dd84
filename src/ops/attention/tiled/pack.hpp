// Packs rows of tensors into the order and type that the inner loops read (formats: tiled/kernels.hpp), and manages the
// packed memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/integers.hpp"
#include "core/tensor.hpp"
#include "device/buffer.hpp"
#include "ops/attention/rows.hpp"
#include "ops/attention/tiled/kernels.hpp"
#include "ops/rung.hpp"

namespace syslab::attention {

// Rows [first, first + count) of one (batch, head).
template <typename T>
struct Rows {
  const T* begin;
  std::int64_t stride, count, depth;
  const T* operator[](std::int64_t i) const { return begin + i * stride; }
};

template <typename T>
Rows<T> rows_of(const ConstTensorView& view, std::int64_t batch, std::int64_t head, std::int64_t first,
                std::int64_t count) {
  return {row_of<T>(view, batch, head, first), view.stride(2), count, view.size(3)};
}

// At most kTile rows as one turned tile; columns beyond the last row, up to a whole strip, are 0. (Scores there are
// masked anyway; this only avoids reading uninitialised memory.)
template <typename T>
void pack_turned(const Rows<T>& rows, std::int64_t strip, float* to) {
  for (std::int64_t column = 0; column < rows.count; column += strip, to += strip * rows.depth) {
    const std::int64_t filled = std::min(rows.count - column, strip);
    if (filled < strip) std::fill_n(to, strip * rows.depth, 0.0F);
    for (std::int64_t j = 0; j < filled; ++j) {
      const T* row = rows[column + j];
      for (std::int64_t d = 0; d < rows.depth; ++d) to[d * strip + j] = to_float(row[d]);
    }
  }
}

template <typename T>
void pack_straight(const Rows<T>& rows, std::int64_t width, float* to) {
  for (std::int64_t i = 0; i < rows.count; ++i, to += width) {
    const T* row = rows[i];
    for (std::int64_t d = 0; d < rows.depth; ++d) to[d] = to_float(row[d]);
    std::fill(to + rows.depth, to + width, 0.0F);
  }
}

// At most `height` rows, times `factor`, as one panel; rows beyond the last are 0.
template <typename T>
void pack_panel(const Rows<T>& rows, std::int64_t height, float factor, float* to) {
  if (rows.count < height) std::fill_n(to, height * rows.depth, 0.0F);
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const T* row = rows[i];
    for (std::int64_t d = 0; d < rows.depth; ++d) to[d * height + i] = factor * to_float(row[d]);
  }
}

// A tensor packed head by head, tile by tile; only the last tile of a head is shorter, by whole strips.
struct Packed {
  float* begin = nullptr;
  std::int64_t rows_per_head = 0;  // in memory: the sequence length rounded up
  std::int64_t floats_per_row = 0;

  std::int64_t floats(std::int64_t heads) const { return heads * rows_per_head * floats_per_row; }
  float* tile(std::int64_t head, std::int64_t first_row) const {
    return begin + (head * rows_per_head + first_row) * floats_per_row;
  }
};

// Counts, then allocates, arrays of floats on cache-line boundaries. Run once without memory to get the size.
class Arena {
 public:
  explicit Arena(float* base = nullptr) : base_(base) {}
  float* take(std::int64_t floats) {
    float* begin = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(floats, kLine);
    return begin;
  }
  Packed take_packed(std::int64_t heads, std::int64_t rows_per_head, std::int64_t floats_per_row) {
    Packed packed{nullptr, rows_per_head, floats_per_row};
    packed.begin = take(packed.floats(heads));
    return packed;
  }
  std::int64_t used() const { return used_; }
  void rewind(std::int64_t used) { used_ = used; }

  // Bytes to request so that `floats` fit from the first line boundary on.
  static std::size_t bytes_for(std::int64_t floats) { return static_cast<std::size_t>(floats + kLine) * sizeof(float); }

 private:
  static constexpr std::int64_t kLine = 16;
  float* base_;
  std::int64_t used_ = 0;
};

// The caller's workspace if large enough, otherwise memory allocated until the call ends.
class WorkMemory {
 public:
  WorkMemory(ops::Workspace workspace, std::size_t bytes)
      : own_(workspace.bytes < bytes ? bytes : 0, "flash_tiled workspace") {
    void* data = own_.data() != nullptr ? own_.data() : workspace.data;
    std::size_t space = bytes;
    base_ = static_cast<float*>(std::align(64, sizeof(float), data, space));
  }
  float* base() const { return base_; }

 private:
  device::Buffer own_;
  float* base_;
};

}  // namespace syslab::attention
