#include "ops/attention/autograd.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "device/buffer.hpp"
#include "ops/attention/materialised.hpp"

namespace syslab::attention {
namespace {

// Cuts one piece of memory into aligned parts: the caller's where that is large enough, else its own.
class Parts {
 public:
  Parts(ops::Workspace lent, std::size_t bytes, device::Stream stream) {
    if (lent.bytes < bytes) own_ = device::Buffer(bytes, "workspace", stream, device::MemoryCategory::workspace);
    next_ = static_cast<std::byte*>(lent.bytes < bytes ? own_.data() : lent.data);
  }
  ops::Workspace take(std::size_t bytes) { return {std::exchange(next_, next_ + aligned(bytes)), bytes}; }
  static std::size_t aligned(std::size_t bytes) {
    return (bytes + device::kAlignment - 1) / device::kAlignment * device::kAlignment;
  }

 private:
  device::Buffer own_;
  std::byte* next_;
};

TensorSpec like(const ConstTensorView& view) { return {"", view.dtype, view.shape}; }

// What the two passes take that as_rung() makes of one rung: O and L of a forward pass, made to be thrown away, what it
// saves, and the larger workspace.
std::size_t bytes_of_both(const AutogradRung& rung, const Problem& p) {
  const std::int64_t rows = p.batch * p.heads_q * p.seq_q;
  return Parts::aligned(static_cast<std::size_t>(rows * p.head_dim) * size_of(p.dtype)) +
         Parts::aligned(static_cast<std::size_t>(rows) * sizeof(float)) + Parts::aligned(rung.saved_bytes(p)) +
         std::max(rung.workspace_bytes(p, Direction::forward), rung.workspace_bytes(p, Direction::backward));
}

}  // namespace

std::span<const AutogradRung> autograd_ladder() {
  static const std::vector<AutogradRung> rungs = [] {
    std::vector<AutogradRung> all{literal_rung(), fused_softmax_rung(), naive_cuda_literal_rung(), naive_cuda_rung()};
    const auto stands = [&all](const Rung& rung) {
      return std::ranges::any_of(all, [&](const AutogradRung& one) { return one.name == rung.name; });
    };
    for (const Rung& rung : ladder()) {
      if (!rung.name.starts_with("reference") && !stands(rung)) all.push_back(as_autograd(rung));
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
  rung.workspace_bytes = [from](const Problem& p, Direction direction) {
    if (direction == Direction::backward) return bytes_of_both(from, p);
    return Parts::aligned(from.saved_bytes(p)) + from.workspace_bytes(p, direction);
  };
  if (!rung.unavailable.empty()) return rung;
  rung.forward = [from](const Problem& p, const ForwardArgs& args, ops::Workspace lent, device::Stream stream) {
    const std::size_t saved_bytes = from.saved_bytes(p), bytes = from.workspace_bytes(p, Direction::forward);
    Parts parts(lent, Parts::aligned(saved_bytes) + bytes, stream);
    const ops::Workspace saved = parts.take(saved_bytes);
    from.forward(p, args, saved, parts.take(bytes), stream);
  };
  rung.backward = [from](const Problem& p, const BackwardArgs& args, ops::Workspace lent, device::Stream stream) {
    Parts parts(lent, bytes_of_both(from, p), stream);
    const TensorSpec out = like(args.out), lse = like(args.lse);
    const ops::Workspace out_memory = parts.take(out.bytes()), lse_memory = parts.take(lse.bytes()),
                         saved = parts.take(from.saved_bytes(p)),
                         rest = parts.take(std::max(from.workspace_bytes(p, Direction::forward),
                                                    from.workspace_bytes(p, Direction::backward)));
    from.forward(p,
                 {args.q, args.k, args.v, TensorView(out_memory.data, out.dtype, out.shape),
                  TensorView(lse_memory.data, lse.dtype, lse.shape)},
                 saved, rest, stream);
    from.backward(p, args, saved, rest, stream);
  };
  return rung;
}

}  // namespace syslab::attention
