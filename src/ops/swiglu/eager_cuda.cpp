// `eager_cuda`: the list of operations in eager.hpp, on a GPU.
#include "ops/framework/eager_rung.hpp"
#include "ops/framework/scratch.hpp"
#include "ops/swiglu/eager.hpp"
#include "ops/swiglu/rungs.hpp"

namespace syslab::swiglu {
namespace {

using framework::apply;
using framework::Binary;
using framework::combine;
using framework::Extra;
using framework::Scratch;
using framework::Unary;

struct ForwardTemporaries {
  TensorView sigmoid, silu;

  ForwardTemporaries(const Problem& p, Scratch& scratch)
      : sigmoid(scratch.tensor(p.dtype, {p.rows, p.dim})), silu(scratch.tensor(p.dtype, {p.rows, p.dim})) {}
};

struct BackwardTemporaries {
  TensorView sigmoid, silu, a, b;

  BackwardTemporaries(const Problem& p, Scratch& scratch)
      : sigmoid(scratch.tensor(p.dtype, {p.rows, p.dim})),
        silu(scratch.tensor(p.dtype, {p.rows, p.dim})),
        a(scratch.tensor(p.dtype, {p.rows, p.dim})),
        b(scratch.tensor(p.dtype, {p.rows, p.dim})) {}
};

}  // namespace

std::size_t eager_workspace_bytes(const Problem& p, Pass pass) {
  return pass == Pass::forward ? framework::scratch_bytes<ForwardTemporaries>(p)
                               : framework::scratch_bytes<BackwardTemporaries>(p);
}

void eager_forward(const Problem& p, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const framework::Lent<ForwardTemporaries> t(p, workspace, stream);
  apply(Unary::sigmoid, args.gate, t->sigmoid, stream);
  combine(Binary::multiply, args.gate, t->sigmoid, t->silu, stream);
  combine(Binary::multiply, t->silu, args.up, args.out, stream);
}

void eager_backward(const Problem& p, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream) {
  const framework::Lent<BackwardTemporaries> t(p, workspace, stream);
  const bool again = args.out.data != nullptr;
  {
    const Extra kept_by_a_framework;
    apply(Unary::sigmoid, args.gate, t->sigmoid, stream);
    combine(Binary::multiply, args.gate, t->sigmoid, t->silu, stream);
    if (again) combine(Binary::multiply, t->silu, args.up, t->b, stream);
  }
  combine(Binary::multiply, args.dout, args.up, t->a, stream);
  combine(Binary::multiply, args.dout, t->silu, args.dup, stream);  // may overwrite `up`
  if (again) {
    const Extra asked_by_us;
    apply(Unary::copy, t->b, args.out, stream);  // may overwrite `dout`
  }
  combine(Binary::multiply, t->a, t->sigmoid, t->b, stream);
  combine(Binary::multiply, t->a, args.gate, t->a, stream);
  combine(Binary::sigmoid_gradient, t->a, t->sigmoid, t->a, stream);
  combine(Binary::add, t->b, t->a, args.dgate, stream);
}

std::int64_t eager_kernels(Pass pass) { return pass == Pass::forward ? 3 : 6; }

Rung eager_cuda_rung() {
  return framework::eager_rung<Rung>("every result is rounded and goes through memory", eager_workspace_bytes,
                                     [](auto& rung) {
                                       rung.forward = eager_forward;
                                       rung.backward = eager_backward;
                                     });
}

}  // namespace syslab::swiglu
