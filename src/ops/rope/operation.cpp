#include "ops/rope/operation.hpp"

#include <utility>

#include "device/memory.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/naive_yardstick.hpp"
#include "ops/rope/eager.hpp"

namespace syslab::rope {
namespace {

constexpr double kTheta = 10'000;

ops::Operation pass(const Problem& p, Direction direction, const Rung& rung) {
  const bool forward = direction == Direction::forward;
  const Shape shape{p.batch, p.heads, p.seq, p.head_dim}, table{p.seq, p.head_dim / 2};
  ops::Operation made;
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
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, direction));
  made.call = [p, rung, forward, workspace](const ops::Inputs& in, const ops::Outputs& out, device::Stream stream) {
    (forward ? rung.forward : rung.backward)(p, {in[0], in[1], in[2], out[0]}, workspace.lend(stream), stream);
  };
  made.expect = [p, direction, op_by_op = rung.op_by_op](const ops::Inputs& in) {
    Expected expected = oracle(p, direction, in[0], in[1], in[2]);
    if (op_by_op) eager_allow(p, direction, in[0], in[1], in[2], expected);
    return std::vector{ops::Expected{std::move(expected.value), std::move(expected.tolerance)}};
  };
  made.flops = flops(p);
  made.bytes = bytes(p);
  return made;
}

}  // namespace

ops::Operation operation(const Problem& p, Direction direction, const Rung& rung) {
  ops::Operation made = pass(p, direction, rung);
  made.device = rung.device;
  if (ops::held_against_naive(rung, p.x_dtype)) made.naive = pass(p, direction, find_rung("naive")).call;
  return made;
}

}  // namespace syslab::rope
