#include "ops/weighted_sum/operation.hpp"

#include <utility>

#include "ops/kept_workspace.hpp"
#include "ops/naive_yardstick.hpp"
#include "ops/weighted_sum/oracle.hpp"

namespace syslab::weighted_sum {
namespace {

Expected taken(Expected expected) { return {std::move(expected.value), std::move(expected.tolerance)}; }

Operation forward(const Problem& p, const Rung& rung) {
  Operation made;
  made.inputs = {{"x", p.dtype, {p.rows, p.dim}}, {"w", p.dtype, {p.dim}}};
  made.outputs = {{"y", p.dtype, {p.rows}}};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::forward));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.forward(p, {in[0], in[1], out[0]}, workspace.lend(stream), stream);
  };
  made.expect = [p](const Inputs& in) { return std::vector{taken(forward_oracle(p, in[0], in[1]))}; };
  made.flops = forward_flops(p);
  made.bytes = forward_bytes(p);
  return made;
}

Operation backward(const Problem& p, const Rung& rung) {
  const Shape matrix{p.rows, p.dim};
  Operation made;
  made.inputs = {{"x", p.dtype, matrix}, {"w", p.dtype, {p.dim}}, {"dy", p.dtype, {p.rows}}};
  made.outputs = {{"dx", p.dtype, matrix}, {"dw", p.dtype, {p.dim}}};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::backward));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.backward(p, {in[0], in[1], in[2], out[0], out[1]}, workspace.lend(stream), stream);
  };
  made.expect = [p](const Inputs& in) {
    BackwardOracle oracle = backward_oracle(p, in[0], in[1], in[2]);
    return std::vector{taken(std::move(oracle.dx)), taken(std::move(oracle.dw))};
  };
  made.flops = backward_flops(p);
  made.bytes = backward_bytes(p);
  return made;
}

Operation operation_of(const Problem& p, Pass pass, const Rung& rung) {
  return pass == Pass::forward ? forward(p, rung) : backward(p, rung);
}

}  // namespace

Operation operation(const Problem& p, Pass pass, const Rung& rung) {
  Operation made = operation_of(p, pass, rung);
  made.device = rung.device;
  if (ops::held_against_naive(rung, p.dtype)) made.naive = operation_of(p, pass, find_rung("naive")).call;
  return made;
}

}  // namespace syslab::weighted_sum
