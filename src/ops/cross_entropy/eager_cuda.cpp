// `eager_cuda`: the list of operations in eager.hpp, on a GPU.
#include "ops/cross_entropy/eager.hpp"
#include "ops/cross_entropy/rungs.hpp"
#include "ops/framework/eager_rung.hpp"
#include "ops/framework/scratch.hpp"

namespace syslab::cross_entropy {
namespace {

using framework::across_columns;
using framework::apply;
using framework::Binary;
using framework::combine;
using framework::Extra;
using framework::Scratch;
using framework::Unary;
using framework::WithNumber;

bool half(DType dtype) { return size_of(dtype) == 2; }

// Memory of both passes. `exp`, `sum` and `where` go from one to the other.
struct Temporaries {
  TensorView exp, sum;      // fp32
  std::int64_t* where;      // of the largest logit
  TensorView largest;       // logits' dtype
  TensorView one, other;    // fp32, (rows, classes)
  TensorView narrow, next;  // logits' dtype, (rows, classes); `one` and `other` where that is fp32
  TensorView row_a, row_b;  // fp32

  Temporaries(const Problem& p, Scratch& scratch) {
    const Shape matrix{p.rows, p.classes}, column{p.rows};
    exp = scratch.tensor(DType::f32, matrix);
    sum = scratch.tensor(DType::f32, column);
    where = scratch.indices(p.rows);
    largest = scratch.tensor(p.dtype, column);
    one = scratch.tensor(DType::f32, matrix);
    other = scratch.tensor(DType::f32, matrix);
    narrow = half(p.dtype) ? scratch.tensor(p.dtype, matrix) : one;
    next = half(p.dtype) ? scratch.tensor(p.dtype, matrix) : other;
    row_a = scratch.tensor(DType::f32, column);
    row_b = scratch.tensor(DType::f32, column);
  }
};
using Lent = framework::Lent<Temporaries>;

// Computes up to Σ exp, which a framework keeps. Leaves s in `narrow`.
void shifted_sum(const Problem& p, const ConstTensorView& logits, const Lent& t, device::Stream stream) {
  framework::largest_of_rows(logits, t->largest, t->where, stream);
  combine(Binary::subtract, logits, across_columns(t->largest, p.rows, p.classes), t->narrow, stream);
  if (half(p.dtype)) apply(Unary::copy, t->narrow, t->exp, stream);
  apply(Unary::exponential, half(p.dtype) ? t->exp : t->narrow, t->exp, stream);
  framework::sum_rows(t->exp, t->sum, stream);
}

void eager_cuda_forward(const Problem& p, const ForwardArgs& args, const Lent& t, device::Stream stream) {
  shifted_sum(p, args.logits, t, stream);
  const TensorView log_sum = t->row_a;
  apply(Unary::logarithm, t->sum, log_sum, stream);
  combine(Binary::subtract, t->narrow, across_columns(log_sum, p.rows, p.classes), t->other, stream);
  framework::gather(t->other, args.targets, t->row_b, stream);
  apply(Unary::negate, t->row_b, args.row_loss, stream);
  const ConstTensorView all(args.row_loss.data, args.row_loss.dtype, Shape{1, p.rows});
  framework::mean_rows(all, args.loss, stream);
  const Extra asked_by_us;
  combine(Binary::add, t->largest, log_sum, args.lse, stream);
}

// Continues from the results of shifted_sum().
void eager_cuda_backward(const Problem& p, const std::int64_t* targets, const ConstTensorView& scale,
                         const TensorView& dlogits, const Lent& t, device::Stream stream) {
  const auto rows = static_cast<float>(p.rows);
  if (scale.data == nullptr) {
    framework::fill(1 / rows, t->row_a, stream);
  } else {
    const ConstTensorView everywhere(scale.data, scale.dtype, Shape{p.rows}, {0});
    apply(WithNumber::divide, everywhere, rows, t->row_a, stream);
  }
  apply(Unary::negate, t->row_a, t->row_a, stream);
  framework::fill(0, t->one, stream);
  framework::scatter(t->row_a, targets, t->one, stream);  // of s, through s − log

  apply(Unary::negate, t->one, t->other, stream);
  framework::sum_rows(t->other, t->row_a, stream);                                                   // of log
  combine(Binary::divide, t->row_a, t->sum, t->row_a, stream);                                       // of sum
  combine(Binary::multiply, across_columns(t->row_a, p.rows, p.classes), t->exp, t->other, stream);  // of s, by exp
  if (half(p.dtype)) {
    apply(Unary::copy, t->other, t->next, stream);
    apply(Unary::copy, t->one, t->narrow, stream);
  }
  combine(Binary::add, t->narrow, t->next, t->narrow, stream);

  apply(Unary::negate, t->narrow, t->next, stream);
  framework::sum_rows(t->next, t->largest, stream);
  framework::fill(0, t->next, stream);
  framework::scatter(t->largest, t->where, t->next, stream);
  combine(Binary::add, t->narrow, t->next, dlogits, stream);
}

}  // namespace

std::size_t eager_workspace_bytes(const Problem& p, Pass) { return framework::scratch_bytes<Temporaries>(p); }

void eager_forward(const Problem& p, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  eager_cuda_forward(p, args, Lent(p, workspace, stream), stream);
}

void eager_backward(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const Lent t(p, workspace, stream);
  {
    const Extra kept_by_a_framework;
    shifted_sum(p, args.logits, t, stream);
  }
  eager_cuda_backward(p, args.targets, args.scale, args.dlogits, t, stream);
}

void eager_forward_backward(const Problem& p, const ForwardBackwardArgs& args, ops::Workspace workspace,
                            device::Stream stream) {
  const Lent t(p, workspace, stream);
  eager_cuda_forward(p, {args.logits, args.targets, args.row_loss, args.lse, args.loss}, t, stream);
  eager_cuda_backward(p, args.targets, args.scale, args.dlogits, t, stream);
}

std::int64_t eager_kernels(const Problem& p, Pass pass) {
  const int forward = half(p.dtype) ? 10 : 9, backward = half(p.dtype) ? 16 : 14;
  return pass == Pass::forward ? forward : pass == Pass::backward ? backward : forward + backward;
}

Rung eager_cuda_rung() {
  return framework::eager_rung<Rung>("log-softmax, gather and mean, and each turned round", eager_workspace_bytes,
                                     [](auto& rung) {
                                       rung.forward = eager_forward;
                                       rung.backward = eager_backward;
                                       rung.forward_backward = eager_forward_backward;
                                     });
}

}  // namespace syslab::cross_entropy
