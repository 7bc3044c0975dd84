#include "ops/attention/autograd.hpp"

#include <vector>

#include "core/text.hpp"
#include "device/buffer.hpp"
#include "ops/attention/materialised.hpp"

namespace syslab::attention {
namespace {

ops::Workspace lend(const device::Buffer& buffer) { return {buffer.data(), buffer.bytes()}; }

void forward_alone(const AutogradRung& rung, const Problem& p, const ForwardArgs& args, const device::Buffer& saved,
                   device::Stream stream) {
  const device::Buffer workspace(rung.workspace_bytes(p, Direction::forward), "workspace");
  rung.forward(p, args, lend(saved), lend(workspace), stream);
}

}  // namespace

std::span<const AutogradRung> autograd_ladder() {
  static const std::vector<AutogradRung> rungs = [] {
    std::vector<AutogradRung> all{literal_rung(), fused_softmax_rung()};
    for (const Rung& rung : ladder()) {
      if (rung.name != "reference") all.push_back(as_autograd(rung));
    }
    return all;
  }();
  return rungs;
}

const AutogradRung& find_autograd_rung(std::string_view name) {
  std::vector<std::string> names;
  for (const AutogradRung& rung : autograd_ladder()) {
    if (rung.name == name) return rung;
    names.push_back(rung.name);
  }
  throw Error(ErrorKind::usage, unknown_name("implementation", name, names));
}

AutogradRung as_autograd(const Rung& rung) {
  AutogradRung made;
  static_cast<ops::RungInfo&>(made) = rung;
  made.supports = rung.supports;
  made.saved_bytes = [](const Problem&) { return std::size_t{0}; };
  made.workspace_bytes = rung.workspace_bytes;
  made.forward = [rung](const Problem& problem, const ForwardArgs& args, ops::Workspace, ops::Workspace workspace,
                        device::Stream stream) { rung.forward(problem, args, workspace, stream); };
  made.backward = [rung](const Problem& problem, const BackwardArgs& args, ops::Workspace, ops::Workspace workspace,
                         device::Stream stream) { rung.backward(problem, args, workspace, stream); };
  made.last_call_time = rung.last_call_time;
  return made;
}

Rung as_rung(const AutogradRung& from) {
  Rung rung;
  static_cast<ops::RungInfo&>(rung) = from;
  rung.supports = [from](const Problem& problem, Direction direction) {
    auto reason = from.supports(problem, Direction::forward);
    return reason || direction == Direction::forward ? reason : from.supports(problem, direction);
  };
  rung.workspace_bytes = [](const Problem&, Direction) { return std::size_t{0}; };
  rung.forward = [from](const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream stream) {
    forward_alone(from, p, args, device::Buffer(from.saved_bytes(p), "saved"), stream);
  };
  rung.backward = [from](const Problem& p, const BackwardArgs& args, ops::Workspace, device::Stream stream) {
    const device::Buffer saved(from.saved_bytes(p), "saved");
    // The caller has O and L; these are made anew, to be thrown away.
    const TensorSpec out{"out", p.dtype, args.out.shape}, lse{"lse", args.lse.dtype, args.lse.shape};
    const device::Buffer out_memory(out.bytes(), "out"), lse_memory(lse.bytes(), "lse");
    forward_alone(from, p,
                  {args.q, args.k, args.v, TensorView(out_memory.data(), out.dtype, out.shape),
                   TensorView(lse_memory.data(), lse.dtype, lse.shape)},
                  saved, stream);
    const device::Buffer workspace(from.workspace_bytes(p, Direction::backward), "workspace");
    from.backward(p, args, lend(saved), lend(workspace), stream);
  };
  return rung;
}

}  // namespace syslab::attention
