#include "ops/rope/operation.hpp"

#include <utility>

#include "device/memory.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/naive_yardstick.hpp"
#include "ops/rope/eager.hpp"

namespace syslab::rope {
namespace {

constexpr double kTheta = 10'000;

Operation operation_of(const Problem& p, Pass pass, const Rung& rung) {
  const bool forward = pass == Pass::forward;
  const Shape shape{p.batch, p.heads, p.seq, p.head_dim}, table{p.seq, p.head_dim / 2};
  Operation made;
  made.inputs = {{"x", forward ? p.x_dtype : p.y_dtype, shape}, {"cos", p.tables(), table}, {"sin", p.tables(), table}};
  made.outputs = {{"y", forward ? p.y_dtype : p.x_dtype, shape}};
  made.prepared = {"cos", "sin"};
  made.prepare = [p, table](std::vector<TensorView>& in, device::Stream stream) {
    std::vector<std::byte> cos(static_cast<std::size_t>(table.elements()) * size_of(p.tables())), sin(cos);
    fill_tables(p.seq, p.head_dim, kTheta, TensorView(cos.data(), p.tables(), table),
                TensorView(sin.data(), p.tables(), table));
    device::copy_now(in[1].data, cos.data(), cos.size(), stream);
    device::copy_now(in[2].data, sin.data(), sin.size(), stream);
  };
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, pass));
  made.call = [p, rung, forward, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    (forward ? rung.forward : rung.backward)(p, {in[0], in[1], in[2], out[0]}, workspace.lend(stream), stream);
  };
  made.expect = [p, pass, op_by_op = rung.op_by_op](const Inputs& in) {
    Expected expected = oracle(p, pass, in[0], in[1], in[2]);
    if (op_by_op) eager_allow(p, pass, in[0], in[1], in[2], expected);
    return std::vector{std::move(expected)};
  };
  made.flops = flops(p);
  made.bytes = bytes(p);
  return made;
}

}  // namespace

Operation operation(const Problem& p, Pass pass, const Rung& rung) {
  Operation made = operation_of(p, pass, rung);
  made.device = rung.device;
  if (ops::held_against_naive(rung, p.x_dtype)) made.naive = operation_of(p, pass, find_rung("naive")).call;
  return made;
}

}  // namespace syslab::rope
