// `eager_cuda`: the list of operations in eager.hpp, on a GPU.
#include <cmath>
#include <vector>

#include "ops/framework/eager_rung.hpp"
#include "ops/framework/scratch.hpp"
#include "ops/rms_norm/eager.hpp"
#include "ops/rms_norm/rungs.hpp"

namespace syslab::rms_norm {
namespace {

using framework::across_columns;
using framework::across_rows;
using framework::apply;
using framework::Binary;
using framework::combine;
using framework::Extra;
using framework::Scratch;
using framework::Unary;
using framework::WithNumber;

bool half(DType dtype) { return size_of(dtype) == 2; }

struct ForwardTemporaries {
  TensorView wide, full, of_row;

  ForwardTemporaries(const Problem& p, Scratch& scratch)
      : full(scratch.tensor(DType::f32, {p.rows, p.dim})), of_row(scratch.tensor(DType::f32, {p.rows})) {
    if (half(p.x_dtype)) wide = scratch.tensor(DType::f32, {p.rows, p.dim});
  }
};

struct BackwardTemporaries {
  TensorView wide, dy, a, b, c, row_a, row_b, dw, narrow;

  BackwardTemporaries(const Problem& p, Scratch& scratch)
      : a(scratch.tensor(DType::f32, {p.rows, p.dim})),
        b(scratch.tensor(DType::f32, {p.rows, p.dim})),
        c(scratch.tensor(DType::f32, {p.rows, p.dim})),
        row_a(scratch.tensor(DType::f32, {p.rows})),
        row_b(scratch.tensor(DType::f32, {p.rows})),
        dw(scratch.tensor(DType::f32, {p.dim})) {
    if (half(p.y_dtype)) dy = scratch.tensor(DType::f32, {p.rows, p.dim});
    if (!half(p.x_dtype)) return;
    wide = scratch.tensor(DType::f32, {p.rows, p.dim});
    narrow = scratch.tensor(p.x_dtype, {p.rows, p.dim});
  }
};

}  // namespace

std::size_t eager_workspace_bytes(const Problem& p, Pass pass) {
  return pass == Pass::forward ? framework::scratch_bytes<ForwardTemporaries>(p)
                               : framework::scratch_bytes<BackwardTemporaries>(p);
}

void eager_forward(const Problem& p, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const framework::Lent<ForwardTemporaries> t(p, workspace, stream);
  if (p.add) combine(Binary::add, args.x, args.delta, args.h, stream);
  ConstTensorView h = p.add ? ConstTensorView(args.h) : args.x;
  if (half(p.x_dtype)) {
    apply(Unary::copy, h, t->wide, stream);
    h = t->wide;
  }
  apply(WithNumber::power, h, 2, t->full, stream);
  framework::mean_rows(t->full, t->of_row, stream);
  apply(WithNumber::add, t->of_row, static_cast<float>(p.eps), t->of_row, stream);
  apply(Unary::reciprocal_root, t->of_row, args.rstd, stream);
  combine(Binary::multiply, h, across_columns(args.rstd, p.rows, p.dim), t->full, stream);
  const TensorView y = half(p.y_dtype) ? t->full : args.y;
  combine(Binary::multiply, across_rows(args.w, p.rows, p.dim), t->full, y, stream);
  if (half(p.y_dtype)) apply(Unary::copy, y, args.y, stream);
}

void eager_backward(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const framework::Lent<BackwardTemporaries> t(p, workspace, stream);
  const ConstTensorView rstd = across_columns(args.rstd, p.rows, p.dim);
  ConstTensorView h = args.h, dy = args.dy;
  {
    const Extra kept_by_a_framework;
    if (half(p.x_dtype)) {
      apply(Unary::copy, h, t->wide, stream);
      h = t->wide;
    }
    combine(Binary::multiply, h, rstd, t->a, stream);
  }
  if (half(p.y_dtype)) {
    apply(Unary::copy, dy, t->dy, stream);
    dy = t->dy;
  }
  combine(Binary::multiply, dy, t->a, t->b, stream);
  framework::sum_columns(t->b, args.accumulate ? t->dw : args.dw, stream);
  if (args.accumulate) combine(Binary::add, args.dw, t->dw, args.dw, stream);
  combine(Binary::multiply, dy, across_rows(args.w, p.rows, p.dim), t->b, stream);  // dn

  combine(Binary::multiply, t->b, rstd, t->c, stream);  // dh₁
  combine(Binary::multiply, t->b, h, t->a, stream);
  framework::sum_rows(t->a, t->row_a, stream);
  apply(WithNumber::power, args.rstd, 3, t->row_b, stream);
  apply(WithNumber::multiply, t->row_a, -0.5F, t->row_a, stream);
  combine(Binary::multiply, t->row_a, t->row_b, t->row_a, stream);
  apply(WithNumber::divide, across_columns(t->row_a, p.rows, p.dim), static_cast<float>(p.dim), t->a, stream);
  apply(WithNumber::power, h, 1, t->b, stream);
  apply(WithNumber::multiply, t->b, 2, t->b, stream);
  combine(Binary::multiply, t->a, t->b, t->b, stream);  // dh₂

  const bool arrives = args.dh.data != nullptr;
  TensorView dx = arrives ? half(p.x_dtype) ? t->narrow : t->c : args.dx;
  if (half(p.x_dtype)) {
    combine(Binary::add, t->c, t->b, t->c, stream);
    apply(Unary::copy, t->c, dx, stream);
  } else {
    combine(Binary::add, t->c, t->b, dx, stream);
  }
  if (arrives) combine(Binary::add, args.dh, dx, args.dx, stream);
}

std::int64_t eager_kernels(const Problem& p, Pass pass, bool with_dh, bool accumulate) {
  const int casts = half(p.x_dtype) + half(p.y_dtype);
  if (pass == Pass::forward) return 6 + casts + (p.add ? 1 : 0);
  return 14 + casts + (with_dh ? 1 : 0) + (accumulate ? 1 : 0);
}

void eager_allow(const Problem& p, const ConstTensorView& dh, BackwardOracle& expected) {
  if (!half(p.x_dtype) || dh.data == nullptr) return;
  const std::vector<double> arriving = to_doubles(dh);
  const double unit = unit_roundoff(p.x_dtype), tiny = smallest_normal(p.x_dtype) * unit;
  for (std::size_t i = 0; i < arriving.size(); ++i) {
    double& tolerance = expected.dx.tolerance[i];
    tolerance += unit * (std::abs(expected.dx.value[i] - arriving[i]) + tolerance) + tiny;
  }
}

Rung eager_cuda_rung() {
  return framework::eager_rung<Rung>("every result goes through memory", eager_workspace_bytes, [](auto& rung) {
    rung.forward = eager_forward;
    rung.backward = eager_backward;
  });
}

}  // namespace syslab::rms_norm
