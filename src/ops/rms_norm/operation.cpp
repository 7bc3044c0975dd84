#include "ops/rms_norm/operation.hpp"

#include <utility>

#include "device/buffer.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/naive_yardstick.hpp"
#include "ops/rms_norm/eager.hpp"

namespace syslab::rms_norm {
namespace {

Operation forward_operation(const Problem& p, const Rung& rung) {
  const Shape matrix{p.rows, p.dim};
  Operation made;
  made.inputs = {{"x", p.x_dtype, matrix}};
  if (p.add) made.inputs.push_back({"delta", p.y_dtype, matrix});
  made.inputs.push_back({"w", p.w_dtype, {p.dim}});
  if (p.add) made.outputs.push_back({"h", p.x_dtype, matrix});
  made.outputs.push_back({"y", p.y_dtype, matrix});
  made.outputs.push_back({"rstd", p.statistics(), {p.rows}});
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::forward));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    const ForwardArgs args = p.add ? ForwardArgs{in[0], in[1], in[2], out[0], out[1], out[2]}
                                   : ForwardArgs{in[0], {}, in[1], {}, out[0], out[1]};
    rung.forward(p, args, workspace.lend(stream), stream);
  };
  made.expect = [p](const Inputs& in) {
    ForwardOracle oracle = p.add ? forward_oracle(p, in[0], in[1], in[2]) : forward_oracle(p, in[0], {}, in[1]);
    std::vector<Expected> expected;
    if (p.add) expected.push_back(std::move(oracle.h));
    expected.push_back(std::move(oracle.y));
    expected.push_back(std::move(oracle.rstd));
    return expected;
  };
  made.flops = forward_flops(p);
  made.bytes = forward_bytes(p);
  return made;
}

Operation backward_operation(const Problem& p, const Rung& rung) {
  const Shape matrix{p.rows, p.dim};
  Operation made;
  made.inputs = {{"dy", p.y_dtype, matrix},
                 {"h", p.x_dtype, matrix},
                 {"w", p.w_dtype, {p.dim}},
                 {"rstd", p.statistics(), {p.rows}}};
  if (p.add) made.inputs.push_back({"dh", p.x_dtype, matrix});
  made.outputs = {{"dx", p.x_dtype, matrix}, {"dw", p.statistics(), {p.dim}}};
  made.prepared = {"rstd"};
  made.prepare = [p, rung](std::vector<TensorView>& in, device::Stream stream) {
    Problem plain = p;
    plain.add = false;
    const device::Buffer y(static_cast<std::size_t>(p.rows * p.dim) * size_of(p.y_dtype), "y", stream);
    rung.forward(plain, {in[1], {}, in[2], {}, TensorView(y.data(), p.y_dtype, {p.rows, p.dim}), in[3]}, {}, stream);
  };
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::backward));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    const BackwardArgs args{in[0], in[1], in[2], in[3], p.add ? in[4] : ConstTensorView{}, out[0], out[1]};
    rung.backward(p, args, workspace.lend(stream), stream);
  };
  made.expect = [p, op_by_op = rung.op_by_op](const Inputs& in) {
    const ConstTensorView dh = p.add ? in[4] : ConstTensorView{};
    BackwardOracle oracle = backward_oracle(p, in[0], in[1], in[2], in[3], dh);
    if (op_by_op) eager_allow(p, dh, oracle);
    std::vector<Expected> expected;
    expected.push_back(std::move(oracle.dx));
    expected.push_back(std::move(oracle.dw));
    return expected;
  };
  made.flops = backward_flops(p, p.add);
  made.bytes = backward_bytes(p, p.add);
  return made;
}

Operation operation_of(const Problem& p, Pass pass, const Rung& rung) {
  return pass == Pass::forward ? forward_operation(p, rung) : backward_operation(p, rung);
}

}  // namespace

Operation operation(const Problem& p, Pass pass, const Rung& rung) {
  Operation made = operation_of(p, pass, rung);
  made.device = rung.device;
  if (ops::held_against_naive(rung, p.y_dtype)) made.naive = operation_of(p, pass, find_rung("naive")).call;
  return made;
}

}  // namespace syslab::rms_norm
