#include "ops/cross_entropy/operation.hpp"

#include <algorithm>

#include "ops/cross_entropy/eager.hpp"
#include "ops/cross_entropy/oracle.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/whole_numbers.hpp"

namespace syslab::cross_entropy {
namespace {

using ops::WholeNumbers;

std::vector<TensorSpec> losses_of(const Problem& p) {
  return {{"row_loss", p.statistics(), {p.rows}}, {"lse", p.statistics(), {p.rows}}, {"loss", p.statistics(), {1}}};
}

struct Maker {
  Problem problem;
  Rung rung;
  WholeNumbers targets;
  ops::KeptWorkspace workspace;
  Rows computed;  // of the gradient, by the oracle

  void forward(const Inputs& in, const Outputs& out, device::Stream stream) const {
    rung.forward(problem, {in[0], WholeNumbers::of(in[1]), out[0], out[1], out[2]}, workspace.lend(stream), stream);
  }
  void backward(const Inputs& in, const Outputs& out, device::Stream stream) const {
    rung.backward(problem, {in[0], WholeNumbers::of(in[1]), in[2], {}, out[0]}, workspace.lend(stream), stream);
  }
  void both(const Inputs& in, const Outputs& out, device::Stream stream) const {
    rung.forward_backward(problem, {in[0], WholeNumbers::of(in[1]), {}, out[0], out[1], out[2], out[3]},
                          workspace.lend(stream), stream);
  }
  // Targets, and lse if it is an input.
  void prepare(std::vector<TensorView>& in, device::Stream stream) const {
    targets.write(in[1], stream);
    if (in.size() < 3) return;
    const std::size_t size = size_of(problem.statistics()), rows = static_cast<std::size_t>(problem.rows);
    const device::Buffer losses((rows + 1) * size, "losses", stream);
    const TensorView row_loss(losses.data(), problem.statistics(), {problem.rows}),
        loss(losses.as<std::byte>() + rows * size, problem.statistics(), {1});
    rung.forward(problem, {in[0], WholeNumbers::of(in[1]), row_loss, in[2], loss}, workspace.lend(stream), stream);
  }

  std::vector<Expected> expect(const Inputs& in, Pass pass) const {
    std::vector<Expected> expected;
    if (rung.op_by_op) {
      Oracle exact = oracle(problem, in[0], targets.values());
      eager_allow(problem, in[0], targets.values(), 1, exact);
      std::vector<Expected> all;
      if (pass != Pass::backward) all = {std::move(exact.row_loss), std::move(exact.lse), std::move(exact.loss)};
      if (pass != Pass::forward) all.push_back(std::move(exact.dlogits));
      return all;
    }
    if (pass == Pass::backward) {
      expected.push_back(gradient_oracle(problem, in[0], targets.values(), in[2], 1, computed));
    } else {
      Oracle exact = oracle(problem, in[0], targets.values(), 1, computed);
      expected.push_back(std::move(exact.row_loss));
      expected.push_back(std::move(exact.lse));
      expected.push_back(std::move(exact.loss));
      if (pass == Pass::both) expected.push_back(std::move(exact.dlogits));
    }
    return expected;
  }
};

}  // namespace

Operation operation(const Problem& p, Pass pass, const Rung& rung, std::uint64_t seed, std::int64_t oracle_budget) {
  std::size_t workspace = rung.workspace_bytes(p, pass);
  if (pass == Pass::backward) workspace = std::max(workspace, rung.workspace_bytes(p, Pass::forward));
  const std::int64_t every = std::max<std::int64_t>((p.rows * p.classes + oracle_budget - 1) / oracle_budget, 1);
  const Maker maker{
      p, rung, WholeNumbers("targets", p.rows, p.classes, seed), ops::KeptWorkspace(workspace), {every, seed}};
  Operation made;
  made.device = rung.device;
  made.inputs = {{"logits", p.dtype, {p.rows, p.classes}}, maker.targets.spec()};
  made.prepared = {"targets"};
  made.prepare = [maker](std::vector<TensorView>& in, device::Stream stream) { maker.prepare(in, stream); };
  made.expect = [maker, pass](const Inputs& in) { return maker.expect(in, pass); };
  const TensorSpec gradient{"dlogits", p.dtype, {p.rows, p.classes}};
  switch (pass) {
    case Pass::forward:
      made.outputs = losses_of(p);
      made.call = [maker](const auto& in, const auto& out, device::Stream stream) { maker.forward(in, out, stream); };
      break;
    case Pass::backward:
      made.inputs.push_back({"lse", p.statistics(), {p.rows}});
      made.prepared.emplace_back("lse");
      made.outputs = {gradient};
      made.call = [maker](const auto& in, const auto& out, device::Stream stream) { maker.backward(in, out, stream); };
      break;
    case Pass::both:
      made.outputs = losses_of(p);
      made.outputs.push_back(gradient);
      made.call = [maker](const auto& in, const auto& out, device::Stream stream) { maker.both(in, out, stream); };
      break;
  }
  made.flops = flops(p, pass);
  made.bytes = bytes(p, pass);
  return made;
}

}  // namespace syslab::cross_entropy
