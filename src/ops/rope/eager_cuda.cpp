// `eager_cuda`: the list of operations in eager.hpp, on a GPU.
#include "ops/framework/eager_rung.hpp"
#include "ops/framework/scratch.hpp"
#include "ops/rope/eager.hpp"
#include "ops/rope/rungs.hpp"

namespace syslab::rope {
namespace {

using framework::apply;
using framework::Binary;
using framework::combine;
using framework::Scratch;
using framework::Unary;

bool half(DType dtype) { return size_of(dtype) == 2; }

Shape whole(const Problem& p) { return {p.batch, p.heads, p.seq, p.head_dim}; }
Shape halved(const Problem& p) { return {p.batch, p.heads, p.seq, p.head_dim / 2}; }

// The elements that belong to the first (0) or the second (1) of each pair.
template <typename View>
View part(const View& x, Layout layout, std::int64_t which) {
  const std::int64_t last = layout == Layout::interleaved ? 2 : 1;
  const std::int64_t offset = which * (layout == Layout::interleaved ? 1 : x.size(3) / 2);
  return View(framework::behind(x, offset), x.dtype, Shape{x.size(0), x.size(1), x.size(2), x.size(3) / 2},
              {x.stride(0), x.stride(1), x.stride(2), last});
}

// First and second elements side by side: a framework copies each to its place.
void stack(const TensorView& first, const TensorView& second, const TensorView& pairs, device::Stream stream) {
  apply(Unary::copy, first, part(pairs, Layout::interleaved, 0), stream);
  apply(Unary::copy, second, part(pairs, Layout::interleaved, 1), stream);
}

ConstTensorView table(const Problem& p, const ConstTensorView& of_position) {
  return {of_position.data, of_position.dtype, halved(p), {0, 0, of_position.stride(0), 1}};
}

struct Temporaries {
  TensorView a, b, c, d, wide;  // of half a head, and a whole one where y is cast
  TensorView narrow_a, narrow_b, narrow_c, narrow_d;

  Temporaries(const Problem& p, Scratch& scratch)
      : a(scratch.tensor(DType::f32, halved(p))),
        b(scratch.tensor(DType::f32, halved(p))),
        c(scratch.tensor(DType::f32, halved(p))),
        d(scratch.tensor(DType::f32, halved(p))) {
    if (half(p.y_dtype)) wide = scratch.tensor(DType::f32, whole(p));
    if (!half(p.x_dtype)) return;
    for (TensorView* narrow : {&narrow_a, &narrow_b, &narrow_c, &narrow_d}) {
      *narrow = scratch.tensor(p.x_dtype, halved(p));
    }
  }
};

}  // namespace

std::size_t eager_workspace_bytes(const Problem& p, Pass) { return framework::scratch_bytes<Temporaries>(p); }

void eager_forward(const Problem& p, const Args& args, ops::Workspace workspace, device::Stream stream) {
  const framework::Lent<Temporaries> t(p, workspace, stream);
  const ConstTensorView cos = table(p, args.cos), sin = table(p, args.sin);
  const ConstTensorView first = part(args.x, Layout::interleaved, 0), second = part(args.x, Layout::interleaved, 1);
  combine(Binary::multiply, cos, first, t->a, stream);
  combine(Binary::multiply, sin, second, t->b, stream);
  combine(Binary::subtract, t->a, t->b, t->c, stream);
  combine(Binary::multiply, sin, first, t->a, stream);
  combine(Binary::multiply, cos, second, t->b, stream);
  combine(Binary::add, t->a, t->b, t->d, stream);
  const TensorView y = half(p.y_dtype) ? t->wide : args.y;
  if (p.layout == Layout::halves) {
    framework::join(t->c, t->d, part(y, p.layout, 0), part(y, p.layout, 1), stream);
  } else {
    stack(t->c, t->d, y, stream);
  }
  if (half(p.y_dtype)) apply(Unary::copy, y, args.y, stream);
}

void eager_backward(const Problem& p, const Args& args, ops::Workspace workspace, device::Stream stream) {
  const framework::Lent<Temporaries> t(p, workspace, stream);
  const ConstTensorView cos = table(p, args.cos), sin = table(p, args.sin);
  ConstTensorView dy = args.x;
  if (half(p.y_dtype)) {
    apply(Unary::copy, dy, t->wide, stream);
    dy = t->wide;
  }
  const ConstTensorView first = part(dy, p.layout, 0), second = part(dy, p.layout, 1);
  combine(Binary::multiply, first, cos, t->a, stream);  // of x₁
  apply(Unary::negate, first, t->b, stream);
  combine(Binary::multiply, t->b, sin, t->b, stream);    // of x₂
  combine(Binary::multiply, second, sin, t->c, stream);  // of x₁
  combine(Binary::multiply, second, cos, t->d, stream);  // of x₂
  TensorView a = t->a, b = t->b, c = t->c, d = t->d;
  if (half(p.x_dtype)) {
    apply(Unary::copy, t->a, t->narrow_a, stream);
    apply(Unary::copy, t->b, t->narrow_b, stream);
    apply(Unary::copy, t->c, t->narrow_c, stream);
    apply(Unary::copy, t->d, t->narrow_d, stream);
    a = t->narrow_a, b = t->narrow_b, c = t->narrow_c, d = t->narrow_d;
  }
  combine(Binary::add, a, c, a, stream);
  combine(Binary::add, b, d, b, stream);
  stack(a, b, args.y, stream);
}

std::int64_t eager_kernels(const Problem& p, Pass pass) {
  const int cast_of_y = half(p.y_dtype) ? 1 : 0;
  if (pass == Pass::forward) return (p.layout == Layout::halves ? 7 : 8) + cast_of_y;
  return 9 + cast_of_y + (half(p.x_dtype) ? 4 : 0);
}

Rung eager_cuda_rung() {
  return framework::eager_rung<Rung>("every product goes through memory", eager_workspace_bytes, [](auto& rung) {
    rung.forward = eager_forward;
    rung.backward = eager_backward;
  });
}

}  // namespace syslab::rope
