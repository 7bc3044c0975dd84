// `tiled`: the shape of every fast matrix product, in plain C++ for the smallest instruction set.
//
//   B ──pack once──▶ strips of 8 columns, [strip][k][8] fp32            all threads; the workspace, B in fp32
//     A ──pack──▶ panels of 4 rows, [panel][k][4] fp32                  a task: 32 rows of C
//       for each strip (k·32 bytes: L1 or L2), for each panel: 4 × 8 sums over k in registers (8 of SSE2's 16);
//       32 multiply-adds for 12 floats read
//
// The inner loop reads only packed data, so it does not depend on strides, dtypes or edges; edges are zeros when packed
// and skipped when stored. k is not divided: one strip and one task's panels (k·160 bytes) stay in L2 up to about k =
// 4096.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "core/integers.hpp"
#include "device/buffer.hpp"
#include "device/parallel.hpp"
#include "ops/gemm/rungs.hpp"

namespace syslab::gemm {
namespace {

constexpr std::int64_t kStrip = 8, kPanel = 4, kTaskRows = 32;

template <typename T>
void pack_strip(const Problem& p, const ConstTensorView& b, std::int64_t strip, float* to) {
  const std::int64_t first = strip * kStrip, count = std::min(kStrip, p.n - first);
  for (std::int64_t k = 0; k < p.k; ++k, to += kStrip) {
    const T* row = b.as<T>() + k * b.stride(0) + first;
    for (std::int64_t j = 0; j < count; ++j) to[j] = to_float(row[j]);
    std::fill(to + count, to + kStrip, 0.0F);
  }
}

template <typename T>
void pack_panel(const Problem& p, const ConstTensorView& a, std::int64_t first, float* to) {
  const std::int64_t count = std::min(kPanel, p.m - first);
  for (std::int64_t i = 0; i < kPanel; ++i) {
    const T* row = a.as<T>() + (first + std::min(i, count - 1)) * a.stride(0);
    for (std::int64_t k = 0; k < p.k; ++k) to[k * kPanel + i] = i < count ? to_float(row[k]) : 0.0F;
  }
}

using Vector [[gnu::vector_size(kStrip * sizeof(float))]] = float;  // as many registers as the machine needs for it
using Sums = std::array<Vector, kPanel>;

Sums multiply(const float* panel, const float* strip, std::int64_t depth) {
  Vector sum0{}, sum1{}, sum2{}, sum3{};  // by name: an array of them would live in memory
  for (std::int64_t k = 0; k < depth; ++k, panel += kPanel, strip += kStrip) {
    Vector columns;
    std::memcpy(&columns, strip, sizeof(columns));
    sum0 += panel[0] * columns;
    sum1 += panel[1] * columns;
    sum2 += panel[2] * columns;
    sum3 += panel[3] * columns;
  }
  return {sum0, sum1, sum2, sum3};
}

template <typename T>
void store(const Sums& sums, const Problem& p, const TensorView& c, std::int64_t row, std::int64_t column) {
  for (std::int64_t i = 0; i < std::min(kPanel, p.m - row); ++i) {
    T* to = c.as<T>() + (row + i) * c.stride(0) + column;
    for (std::int64_t j = 0; j < std::min(kStrip, p.n - column); ++j) {
      to[j] = from_float<T>(sums[static_cast<std::size_t>(i)][j]);
    }
  }
}

// Panels of one task for each thread, after the strips of B.
std::int64_t strip_floats(const Problem& p) { return round_up(p.n, kStrip) * p.k; }
std::int64_t panel_floats(const Problem& p) { return kTaskRows * p.k; }

std::size_t workspace_bytes(const Problem& p) {
  return static_cast<std::size_t>(strip_floats(p) + device::thread_count() * panel_floats(p)) * sizeof(float);
}

template <typename T>
void run_in(const Problem& p, const Args& args, float* memory) {
  float *strips = memory, *panels = memory + strip_floats(p);
  const std::int64_t strip_count = round_up(p.n, kStrip) / kStrip, tasks = round_up(p.m, kTaskRows) / kTaskRows;
  // Half a millisecond of work for each thread: with less, the work is done before another thread has woken.
  const int threads = static_cast<int>(std::clamp(flops(p) / 0x1p22, 1.0, 1024.0));
  device::parallel_for(
      strip_count, [&](std::int64_t s, int) { pack_strip<T>(p, args.b, s, strips + s * kStrip * p.k); }, threads);
  device::parallel_for(
      tasks,
      [&](std::int64_t task, int thread) {
        float* own = panels + thread * panel_floats(p);
        const std::int64_t first = task * kTaskRows, end = std::min(first + kTaskRows, p.m);
        for (std::int64_t row = first; row < end; row += kPanel) {
          pack_panel<T>(p, args.a, row, own + (row - first) * p.k);
        }
        for (std::int64_t s = 0; s < strip_count; ++s) {
          for (std::int64_t row = first; row < end; row += kPanel) {
            store<T>(multiply(own + (row - first) * p.k, strips + s * kStrip * p.k, p.k), p, args.c, row, s * kStrip);
          }
        }
      },
      threads);
}

}  // namespace

Rung tiled_rung() {
  Rung rung;
  rung.name = "tiled";
  rung.teaches = "packed strips and panels, 4 × 8 sums at a time, on threads: the shape of a BLAS without its assembly";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = workspace_bytes;
  rung.run = [](const Problem& problem, const Args& args, ops::Workspace workspace, device::Stream) {
    device::Buffer own;
    if (const std::size_t needed = workspace_bytes(problem); workspace.bytes < needed) {
      own = device::Buffer(needed, "gemm panels");
      workspace = {own.data(), own.bytes()};
    }
    with_storage(problem.dtype, [&]<typename T>() { run_in<T>(problem, args, static_cast<float*>(workspace.data)); });
  };
  return rung;
}

}  // namespace syslab::gemm
