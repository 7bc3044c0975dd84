#include "ops/swiglu/operation.hpp"

#include <utility>

#include "ops/kept_workspace.hpp"
#include "ops/naive_yardstick.hpp"
#include "ops/swiglu/eager.hpp"

namespace syslab::swiglu {
namespace {

Operation forward_operation(const Problem& p, const Rung& rung) {
  const Shape matrix{p.rows, p.dim};
  Operation made;
  made.inputs = {{"gate", p.dtype, matrix}, {"up", p.dtype, matrix}};
  made.outputs = {{"out", p.dtype, matrix}};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::forward));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.forward(p, {in[0], in[1], out[0]}, workspace.lend(stream), stream);
  };
  made.expect = [p, op_by_op = rung.op_by_op](const Inputs& in) {
    Expected out = forward_oracle(p, in[0], in[1]);
    if (op_by_op) eager_allow(p, in[0], in[1], out);
    return std::vector{std::move(out)};
  };
  made.flops = forward_flops(p);
  made.bytes = forward_bytes(p);
  return made;
}

Operation backward_operation(const Problem& p, const Rung& rung) {
  const Shape matrix{p.rows, p.dim};
  Operation made;
  made.inputs = {{"gate", p.dtype, matrix}, {"up", p.dtype, matrix}, {"dout", p.dtype, matrix}};
  made.outputs = {{"dgate", p.dtype, matrix}, {"dup", p.dtype, matrix}};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::backward));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.backward(p, {in[0], in[1], in[2], out[0], out[1], {}}, workspace.lend(stream), stream);
  };
  made.expect = [p, op_by_op = rung.op_by_op](const Inputs& in) {
    BackwardOracle oracle = backward_oracle(p, in[0], in[1], in[2]);
    if (op_by_op) eager_allow(p, in[0], in[1], in[2], oracle);
    std::vector<Expected> expected;
    expected.push_back(std::move(oracle.dgate));
    expected.push_back(std::move(oracle.dup));
    return expected;
  };
  made.flops = backward_flops(p);
  made.bytes = backward_bytes(p, false);
  return made;
}

Operation operation_of(const Problem& p, Pass pass, const Rung& rung) {
  return pass == Pass::forward ? forward_operation(p, rung) : backward_operation(p, rung);
}

}  // namespace

Operation operation(const Problem& p, Pass pass, const Rung& rung) {
  Operation made = operation_of(p, pass, rung);
  made.device = rung.device;
  if (ops::held_against_naive(rung, p.dtype)) made.naive = operation_of(p, pass, find_rung("naive")).call;
  return made;
}

}  // namespace syslab::swiglu
