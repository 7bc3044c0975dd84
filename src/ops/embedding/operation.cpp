#include "ops/embedding/operation.hpp"

#include "ops/embedding/oracle.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/whole_numbers.hpp"

namespace syslab::embedding {

using ops::WholeNumbers;

Operation operation(const Problem& p, Pass pass, const Rung& rung, std::uint64_t seed) {
  const WholeNumbers ids("ids", p.rows, p.vocab, seed);
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, pass));
  Operation made;
  made.device = rung.device;
  made.prepared = {"ids"};
  made.prepare = [ids](std::vector<TensorView>& in, device::Stream stream) { ids.write(in[0], stream); };
  if (pass == Pass::forward) {
    made.inputs = {ids.spec(), {"table", p.table_dtype, {p.vocab, p.dim}}};
    made.outputs = {{"x", p.x_dtype, {p.rows, p.dim}}};
    made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
      rung.forward(p, {WholeNumbers::of(in[0]), in[1], out[0]}, workspace.lend(stream), stream);
    };
    made.expect = [p, ids](const Inputs& in) { return std::vector{forward_oracle(p, ids.values(), in[1])}; };
    made.bytes = forward_bytes(p);
  } else {
    made.inputs = {ids.spec(), {"dx", p.x_dtype, {p.rows, p.dim}}};
    made.outputs = {{"dtable", p.gradient(), {p.vocab, p.dim}}};
    made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
      rung.backward(p, {WholeNumbers::of(in[0]), in[1], out[0]}, workspace.lend(stream), stream);
    };
    made.expect = [p, ids](const Inputs& in) { return std::vector{backward_oracle(p, ids.values(), in[1])}; };
    made.flops = static_cast<double>(p.rows) * static_cast<double>(p.dim);
    made.bytes = backward_bytes(p);
  }
  return made;
}

}  // namespace syslab::embedding
