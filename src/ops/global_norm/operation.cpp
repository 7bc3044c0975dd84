#include "ops/global_norm/operation.hpp"

#include "ops/global_norm/oracle.hpp"
#include "ops/kept_workspace.hpp"

namespace syslab::global_norm {

Operation operation(const Problem& p, double max_norm, const Rung& rung) {
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p));
  Operation made;
  made.device = rung.device;
  made.inputs = {{"g", p.dtype, {p.elements}}};
  made.outputs = {{"norm", p.statistics(), {1}}, {"factor", p.statistics(), {1}}};
  made.call = [p, max_norm, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.norm(p, {.g = in[0], .norm = out[0], .factor = out[1], .max_norm = max_norm}, workspace.lend(stream), stream);
  };
  made.expect = [p, max_norm](const Inputs& in) {
    const Oracle exact = oracle(p, in[0], max_norm);
    return std::vector{exact.norm, exact.factor};
  };
  made.flops = 2.0 * static_cast<double>(p.elements);
  made.bytes = norm_bytes(p);
  return made;
}

}  // namespace syslab::global_norm
