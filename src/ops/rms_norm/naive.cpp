// `naive`: row by row in fp32, on threads. A row is read twice, to sum and to write; dw is summed over the rows of a
// chunk, then over the chunks in order.
#include <cmath>

#include "device/buffer.hpp"
#include "ops/host_rows.hpp"
#include "ops/rms_norm/rungs.hpp"

namespace syslab::rms_norm {
namespace {

using ops::kStretch;
using ops::read_floats;
using ops::Stretch;
using ops::write_floats;

// One sum for each lane of a vector unit: a single running sum would wait for its own last addition every time.
constexpr std::int64_t kLanes = 16;

class LaneSum {
 public:
  void add_products(const float* a, const float* b, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        lanes_[static_cast<std::size_t>(lane)] += a[i + lane] * b[i + lane];
      }
    }
    for (std::int64_t lane = 0; i < count; ++i, ++lane) lanes_[static_cast<std::size_t>(lane)] += a[i] * b[i];
  }
  float total() const {
    float sum = 0;
    for (const float lane : lanes_) sum += lane;
    return sum;
  }

 private:
  std::array<float, kLanes> lanes_{};
};

// h = x + delta, rounded and stored.
void add_row(const Problem& p, const ForwardArgs& args, std::int64_t row) {
  ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
    Stretch a, b, sum;
    const float* x = read_floats(args.x, row, from, count, a);
    const float* delta = read_floats(args.delta, row, from, count, b);
    for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] = x[i] + delta[i];
    write_floats(args.h, row, from, count, sum.data());
  });
}

void forward_row(const Problem& p, const ForwardArgs& args, std::int64_t row) {
  if (p.add) add_row(p, args, row);
  const ConstTensorView h = p.add ? ConstTensorView(args.h) : args.x;
  const float* w = args.w.as<float>();
  LaneSum squares;
  ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
    Stretch scratch;
    const float* values = read_floats(h, row, from, count, scratch);
    squares.add_products(values, values, count);
  });
  const float rstd = 1 / std::sqrt(squares.total() / static_cast<float>(p.dim) + static_cast<float>(p.eps));
  args.rstd.as<float>()[row] = rstd;
  ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
    Stretch scratch, y;
    const float* values = read_floats(h, row, from, count, scratch);
    for (std::int64_t i = 0; i < count; ++i) y[static_cast<std::size_t>(i)] = w[from + i] * (values[i] * rstd);
    write_floats(args.y, row, from, count, y.data());
  });
}

void backward_row(const Problem& p, const BackwardArgs& args, std::int64_t row, float* dw) {
  const float* w = args.w.as<float>();
  const float rstd = args.rstd.as<float>()[row];
  LaneSum products;
  ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
    Stretch a, b, g;
    const float* dy = read_floats(args.dy, row, from, count, a);
    const float* h = read_floats(args.h, row, from, count, b);
    for (std::int64_t i = 0; i < count; ++i) g[static_cast<std::size_t>(i)] = w[from + i] * dy[i];
    products.add_products(g.data(), h, count);
  });
  const float c = products.total() * rstd / static_cast<float>(p.dim);
  ops::for_each_stretch(p.dim, [&](std::int64_t from, std::int64_t count) {
    Stretch a, b, e, dx;
    const float* dy = read_floats(args.dy, row, from, count, a);
    const float* h = read_floats(args.h, row, from, count, b);
    for (std::int64_t i = 0; i < count; ++i) {
      const float normed = h[i] * rstd;
      dw[from + i] += dy[i] * normed;
      dx[static_cast<std::size_t>(i)] = rstd * (w[from + i] * dy[i] - normed * c);
    }
    if (args.dh.data != nullptr) {
      const float* dh = read_floats(args.dh, row, from, count, e);
      for (std::int64_t i = 0; i < count; ++i) dx[static_cast<std::size_t>(i)] += dh[i];
    }
    write_floats(args.dx, row, from, count, dx.data());
  });
}

void naive_forward(const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream) {
  const ops::RowChunks chunks = ops::chunks_of(p.rows, p.dim);
  ops::for_each_chunk(chunks, p.dim, [&](std::int64_t chunk) {
    for (std::int64_t row = chunks.first(chunk); row < chunks.end(chunk); ++row) forward_row(p, args, row);
  });
}

std::size_t naive_workspace_bytes(const Problem& p, Pass pass) {
  if (pass == Pass::forward) return 0;
  return static_cast<std::size_t>(ops::chunks_of(p.rows, p.dim).count * p.dim) * sizeof(float);
}

void naive_backward(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream) {
  device::Buffer own;
  if (const std::size_t needed = naive_workspace_bytes(p, Pass::backward); workspace.bytes < needed) {
    own = device::Buffer(needed, "dw_partials");
    workspace = {own.data(), own.bytes()};
  }
  float* const partial = static_cast<float*>(workspace.data);
  const ops::RowChunks chunks = ops::chunks_of(p.rows, p.dim);
  ops::for_each_chunk(chunks, p.dim, [&](std::int64_t chunk) {
    float* const dw = partial + chunk * p.dim;
    std::fill_n(dw, p.dim, 0.0F);
    for (std::int64_t row = chunks.first(chunk); row < chunks.end(chunk); ++row) backward_row(p, args, row, dw);
  });
  for (std::int64_t chunk = 1; chunk < chunks.count; ++chunk) {
    const float* part = partial + chunk * p.dim;
    for (std::int64_t d = 0; d < p.dim; ++d) partial[d] += part[d];
  }
  float* dw = args.dw.as<float>();
  for (std::int64_t d = 0; d < p.dim; ++d) dw[d] = args.accumulate ? dw[d] + partial[d] : partial[d];
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "a row at a time in fp32, read twice: once to sum, once to write";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = naive_workspace_bytes;
  rung.forward = naive_forward;
  rung.backward = naive_backward;
  return rung;
}

}  // namespace syslab::rms_norm
