// `eager_cuda`: the list of operations in eager.hpp, on a GPU.
#include <algorithm>

#include "ops/adamw/eager.hpp"
#include "ops/adamw/rungs.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/framework/scratch.hpp"

namespace syslab::adamw {
namespace {

using framework::apply;
using framework::Binary;
using framework::combine;
using framework::Extra;
using framework::number_at;
using framework::Scratch;
using framework::Unary;
using framework::Unless;
using framework::WithNumber;

struct Temporaries {
  TensorView g, a, b;

  Temporaries(const Problem& p, Scratch& scratch)
      : g(scratch.tensor(DType::f32, {std::min(p.elements, kEagerPiece)})), a(g), b(g) {
    a = scratch.tensor(DType::f32, g.shape);
    b = scratch.tensor(DType::f32, g.shape);
  }
};
using Lent = framework::Lent<Temporaries>;

template <typename View>
View piece_of(const View& view, std::int64_t first, std::int64_t count) {
  if (view.data == nullptr) return view;
  return View(framework::behind(view, first), view.dtype, Shape{count});
}

// p ← p − decay · p.
void decay(const float* number, const TensorView& p, const TensorView& scratch, Unless skip, device::Stream stream) {
  skip.number = number;
  skip.equals = 0;
  combine(Binary::multiply, number_at(number, p.elements()), p, scratch, stream, skip);
  combine(Binary::subtract, p, scratch, p, stream, skip);
}

void step_piece(const Args& args, const TensorView& g, const TensorView& a, const TensorView& b,
                device::Stream stream) {
  const StepNumbers<float>& n = args.scalars->in_f32;  // device memory: only addresses are taken
  const Unless skip{.not_zero = &args.scalars->skip, .any = args.non_finite};
  const auto number = [&g](const float* at) { return number_at(at, g.elements()); };
  {
    const Extra elsewhere;
    combine(Binary::multiply, args.g, number(&n.grad_scale), g, stream);
    if (args.clip != nullptr) combine(Binary::multiply, g, number(args.clip), g, stream);
    decay(&n.decay_before, args.p, a, skip, stream);
  }
  combine(Binary::multiply, number(&n.beta1), args.m, a, stream);
  combine(Binary::multiply, number(&n.rest1), g, b, stream);
  combine(Binary::add, a, b, args.m, stream, skip);

  combine(Binary::multiply, number(&n.beta2), args.v, a, stream);
  apply(WithNumber::power, g, 2, b, stream);
  combine(Binary::multiply, number(&n.rest2), b, b, stream);
  combine(Binary::add, a, b, args.v, stream, skip);

  combine(Binary::multiply, number(&n.step), args.m, a, stream);
  apply(Unary::root, args.v, b, stream);
  {
    const Extra of_one_mode;
    combine(Binary::multiply, b, number(&n.root_factor), b, stream, {.number = &n.root_factor, .equals = 1});
  }
  combine(Binary::add, b, number(&n.eps), b, stream);
  combine(Binary::divide, a, b, a, stream);
  combine(Binary::subtract, args.p, a, args.p, stream, skip);
  decay(&n.decay_after, args.p, a, skip, stream);
  if (args.copy.data == nullptr) return;
  const Extra elsewhere;
  apply(Unary::copy, args.p, args.copy, stream, skip);
}

}  // namespace

void eager_step(const Problem& p, const Args& args, device::Stream stream) {
  if (args.old_p.data != nullptr) {
    throw Error(ErrorKind::usage,
                "eager_cuda steps in place, as the hand-out's optimizer does: copy the old state first");
  }
  const Lent t(p, {}, stream);
  for (std::int64_t first = 0; first < p.elements; first += kEagerPiece) {
    const std::int64_t count = std::min(kEagerPiece, p.elements - first);
    Args part = args;
    for (TensorView* view : {&part.p, &part.m, &part.v, &part.copy}) *view = piece_of(*view, first, count);
    part.g = piece_of(args.g, first, count);
    step_piece(part, piece_of(t->g, 0, count), piece_of(t->a, 0, count), piece_of(t->b, 0, count), stream);
  }
}

std::int64_t eager_kernels(const Problem& p) { return (p.elements + kEagerPiece - 1) / kEagerPiece * 14; }

Rung eager_cuda_rung() {
  Rung rung;
  rung.name = "eager_cuda";
  rung.teaches =
      "fourteen kernels, as the hand-out's optimizer launches them: 33 numbers moved an element instead of 7";
  rung.dtypes = {DType::f32};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = 80;
  rung.op_by_op = true;
  rung.supports = supports_whole_weights(rung);
  if constexpr (ops::kBuiltWithCuda) {
    rung.step = eager_step;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::adamw
