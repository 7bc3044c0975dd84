// `tiled`: the hand-out's kernel on the threads of the host.
//
// Rows are cut into tiles of 16, one a task. A task walks D in tiles of next_pow2(D)/16 columns and copies each (16 ×
// columns) tile of x into a small fp32 buffer, zero beyond the edges, so that no inner loop knows about edges.
// Forward keeps kLanes partial sums a row (the vector unit's lanes), added up at the end. Backward needs dw summed over
// all rows without atomics: each row tile writes its part to its own row of a (row tiles × D) buffer, and the columns
// of that are summed in tile order. Every sum has one fixed order, so results do not depend on the number of threads.
#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "device/buffer.hpp"
#include "device/parallel.hpp"
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {
namespace {

constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kLanes = 8;
// The hand-out's tile is next_pow2(D)/16 columns: 0 for D < 16, and more than a core's first cache for D > 4096. The
// sums stay the same whatever the width; we take no fewer than 64 (or what whole lanes hold D), for below that loops
// are too short to be worth beginning, and no more than 16 KiB a tile.
constexpr std::int64_t kMinTileColumns = 64, kMaxTileColumns = 256;
constexpr std::int64_t kColumnsPerTask = 512;  // of the column sum of partial dw
// Half a millisecond of one core, in either pass: a loop on threads ends only when the last thread has woken.
constexpr std::int64_t kElementsOfAThread = std::int64_t{1} << 20;

std::int64_t tile_columns(std::int64_t dim) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(dim)));
  const std::int64_t least = std::min(kMinTileColumns, (dim + kLanes - 1) / kLanes * kLanes);
  return std::clamp(power / 16, least, kMaxTileColumns);
}

std::int64_t row_tiles(const Problem& problem) { return (problem.rows + kTileRows - 1) / kTileRows; }

// Runs body(index) for every index, on threads if the problem is worth it.
template <typename Body>
void for_each_task(const Problem& problem, std::int64_t count, const Body& body) {
  const std::int64_t threads = problem.rows * problem.dim / kElementsOfAThread;
  device::parallel_for(
      count, [&](std::int64_t index, int) { body(index); },
      static_cast<int>(std::clamp<std::int64_t>(threads, 1, device::thread_count())));
}

using RowOfTile = std::array<float, kMaxTileColumns>;

// Copies columns [from, from + count) of one row to fp32 and fills the rest of the tile's `width` with zeros.
template <typename T>
void load(const T* row, std::int64_t from, std::int64_t count, std::int64_t width, RowOfTile& out) {
  if constexpr (std::is_same_v<T, float>) {
    std::copy_n(row + from, count, out.begin());
  } else {
    for (std::int64_t c = 0; c < count; ++c) out[static_cast<std::size_t>(c)] = to_float(row[from + c]);
  }
  std::fill(out.begin() + count, out.begin() + width, 0.0F);
}

template <typename T>
void store(const RowOfTile& row, std::int64_t count, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    std::copy_n(row.begin(), count, to);
  } else {
    for (std::int64_t c = 0; c < count; ++c) to[c] = from_float<T>(row[static_cast<std::size_t>(c)]);
  }
}

template <typename T>
void forward_tile(const Problem& problem, const ForwardArgs& args, std::int64_t tile) {
  const T* x = args.x.as<T>();
  const T* w = args.w.as<T>();
  T* y = args.y.as<T>();
  const std::int64_t first = tile * kTileRows, rows = std::min(kTileRows, problem.rows - first);
  const std::int64_t width = tile_columns(problem.dim);
  std::array<std::array<float, kLanes>, kTileRows> sums{};
  RowOfTile weights, row;
  for (std::int64_t from = 0; from < problem.dim; from += width) {
    const std::int64_t count = std::min(width, problem.dim - from);
    load(w, from, count, width, weights);
    for (std::int64_t r = 0; r < rows; ++r) {
      load(x + (first + r) * args.x.stride(0), from, count, width, row);
      auto& lanes = sums[static_cast<std::size_t>(r)];
      for (std::int64_t c = 0; c < width; c += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          const auto at = static_cast<std::size_t>(c + lane);
          lanes[static_cast<std::size_t>(lane)] += weights[at] * row[at];
        }
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (const float lane : sums[static_cast<std::size_t>(r)]) sum += lane;
    y[(first + r) * args.y.stride(0)] = from_float<T>(sum);
  }
}

// Writes dx of one row tile and its part of dw to `partial` (dim floats).
template <typename T>
void backward_tile(const Problem& problem, const BackwardArgs& args, std::int64_t tile, float* partial) {
  const T* x = args.x.as<T>();
  const T* w = args.w.as<T>();
  const T* dy = args.dy.as<T>();
  T* dx = args.dx.as<T>();
  const std::int64_t first = tile * kTileRows, rows = std::min(kTileRows, problem.rows - first);
  const std::int64_t width = tile_columns(problem.dim);
  RowOfTile weights, row, sums;
  for (std::int64_t from = 0; from < problem.dim; from += width) {
    const std::int64_t count = std::min(width, problem.dim - from);
    load(w, from, count, width, weights);
    std::fill_n(sums.begin(), width, 0.0F);
    for (std::int64_t r = first; r < first + rows; ++r) {
      const float g = to_float(dy[r * args.dy.stride(0)]);
      load(x + r * args.x.stride(0), from, count, width, row);
      for (std::int64_t c = 0; c < width; c += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          const auto at = static_cast<std::size_t>(c + lane);
          sums[at] += row[at] * g;
          row[at] = weights[at] * g;
        }
      }
      store(row, count, dx + r * args.dx.stride(0) + from);
    }
    std::copy_n(sums.begin(), count, partial + from);
  }
}

template <typename T>
void sum_columns(const Problem& problem, const float* partial, std::int64_t from, T* dw) {
  std::array<float, kColumnsPerTask> sums{};
  const std::int64_t count = std::min(kColumnsPerTask, problem.dim - from);
  for (std::int64_t tile = 0; tile < row_tiles(problem); ++tile) {
    const float* part = partial + tile * problem.dim + from;
    for (std::int64_t c = 0; c < count; ++c) sums[static_cast<std::size_t>(c)] += part[c];
  }
  for (std::int64_t c = 0; c < count; ++c) dw[from + c] = from_float<T>(sums[static_cast<std::size_t>(c)]);
}

template <typename T>
void backward_in(const Problem& problem, const BackwardArgs& args, float* partial) {
  for_each_task(problem, row_tiles(problem),
                [&](std::int64_t tile) { backward_tile<T>(problem, args, tile, partial + tile * problem.dim); });
  const std::int64_t tasks = (problem.dim + kColumnsPerTask - 1) / kColumnsPerTask;
  for_each_task(problem, tasks,
                [&](std::int64_t task) { sum_columns<T>(problem, partial, task * kColumnsPerTask, args.dw.as<T>()); });
}

std::size_t tiled_workspace_bytes(const Problem& problem, Pass pass) {
  if (pass == Pass::forward) return 0;
  return static_cast<std::size_t>(row_tiles(problem) * problem.dim) * sizeof(float);
}

void tiled_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
  with_storage(problem.dtype, [&]<typename T>() {
    for_each_task(problem, row_tiles(problem), [&](std::int64_t tile) { forward_tile<T>(problem, args, tile); });
  });
}

void tiled_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream) {
  device::Buffer own;
  const std::size_t needed = tiled_workspace_bytes(problem, Pass::backward);
  if (workspace.bytes < needed) {
    own = device::Buffer(needed, "dw_partials");
    workspace = {own.data(), own.bytes()};
  }
  with_storage(problem.dtype,
               [&]<typename T>() { backward_in<T>(problem, args, static_cast<float*>(workspace.data)); });
}

}  // namespace

Rung tiled_rung() {
  Rung rung;
  rung.name = "tiled";
  rung.teaches = "row tiles on threads; partial dw a tile, summed in a fixed order: no atomics, same bits every time";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = tiled_workspace_bytes;
  rung.forward = tiled_forward;
  rung.backward = tiled_backward;
  return rung;
}

}  // namespace syslab::weighted_sum
