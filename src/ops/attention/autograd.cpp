#include "ops/attention/autograd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/text/named.hpp"
#include "ops/attention/naive/materialised.hpp"
#include "ops/call_memory.hpp"

namespace syslab::attention {
namespace {

constexpr auto part_bytes = ops::CallMemory::part_bytes;

ops::Workspace take(ops::CallMemory& memory, std::size_t bytes) { return {memory.take_bytes(bytes), bytes}; }

TensorSpec like(const ConstTensorView& view) { return {"", view.dtype, view.shape}; }

// The memory that the two passes of as_rung() take: O and L of a forward pass, which are discarded, what it saves, and
// the larger workspace.
std::size_t bytes_of_both(const AutogradRung& rung, const Problem& p) {
  const std::int64_t rows = p.batch * p.heads_q * p.seq_q;
  return part_bytes(static_cast<std::size_t>(rows * p.head_dim) * size_of(p.dtype)) +
         part_bytes(static_cast<std::size_t>(rows) * sizeof(float)) + part_bytes(rung.saved_bytes(p)) +
         std::max(rung.workspace_bytes(p, Pass::forward), rung.workspace_bytes(p, Pass::backward));
}

// What it keeps for backward and holds for a while, in whole matrices of fp32 scores: computed for so long a sequence
// that vectors and tensors do not count.
void add_facts_of_matrices(AutogradRung& rung) {
  Problem problem;
  problem.seq_q = problem.seq_k = 1 << 14;
  problem.head_dim = 16;
  problem.dtype = DType::f32;
  const double matrix = 4.0 * static_cast<double>(problem.batch * problem.heads_q * problem.seq_q * problem.seq_k);
  const auto add = [&](const char* name, std::size_t bytes) {
    rung.facts.push_back({name, fmt::format("{:.0f}", static_cast<double>(bytes) / matrix), "matrices"});
  };
  add("kept_matrices", rung.saved_bytes(problem));
  add("forward_matrices", rung.workspace_bytes(problem, Pass::forward));
  add("backward_matrices", rung.workspace_bytes(problem, Pass::backward));
}

}  // namespace

std::span<const AutogradRung> autograd_ladder() {
  static const std::vector<AutogradRung> rungs = [] {
    std::vector<AutogradRung> all{literal_rung(), fused_softmax_rung(), naive_cuda_literal_rung(),
                                  naive_cuda_autograd_rung()};
    std::ranges::for_each(all, add_facts_of_matrices);
    const auto stands = [&all](const Rung& rung) {
      return std::ranges::any_of(all, [&](const AutogradRung& one) { return one.name == rung.name; });
    };
    for (const Rung& rung : ladder()) {
      if (!is_oracle(rung.role) && !stands(rung)) all.push_back(as_autograd(rung));
    }
    return all;
  }();
  return rungs;
}

const AutogradRung& find_autograd_rung(std::string_view name) {
  return find_named(autograd_ladder(), "implementation", name);
}

AutogradRung as_autograd(const Rung& rung) {
  AutogradRung made;
  static_cast<RungInfo&>(made) = rung;
  made.supports = rung.supports;
  made.saved_bytes = [](const Problem&) { return std::size_t{0}; };
  made.workspace_bytes = rung.workspace_bytes;
  made.forward = [rung](const Problem& problem, const ForwardArgs& args, ops::Workspace, ops::Workspace workspace,
                        device::Stream stream) { rung.forward(problem, args, workspace, stream); };
  made.backward = [rung](const Problem& problem, const BackwardArgs& args, const Saved&, ops::Workspace workspace,
                         device::Stream stream) { rung.backward(problem, args, workspace, stream); };
  made.last_call_time = rung.last_call_time;
  return made;
}

AutogradRung as_autograd(const Rung& forward, const Rung& backward) {
  AutogradRung made = as_autograd(forward);
  if (forward.name == backward.name) return made;
  made.name = fmt::format("{}, {} backward", forward.name, backward.name);
  made.teaches = fmt::format("forward: {}; backward: {}", forward.teaches, backward.teaches);
  made.minimum_sm = std::max(forward.minimum_sm, backward.minimum_sm);
  made.maximum_sm = forward.maximum_sm == 0    ? backward.maximum_sm
                    : backward.maximum_sm == 0 ? forward.maximum_sm
                                               : std::min(forward.maximum_sm, backward.maximum_sm);
  made.deterministic = forward.deterministic && backward.deterministic;
  made.tf32 = forward.tf32 || backward.tf32;
  made.supports = [forward, backward](const Problem& problem, Pass pass) {
    return (pass == Pass::forward ? forward : backward).supports(problem, pass);
  };
  made.workspace_bytes = [forward, backward](const Problem& problem, Pass pass) {
    return (pass == Pass::forward ? forward : backward).workspace_bytes(problem, pass);
  };
  made.backward = [backward](const Problem& problem, const BackwardArgs& args, const Saved&, ops::Workspace workspace,
                             device::Stream stream) { backward.backward(problem, args, workspace, stream); };
  return made;
}

void require_saved(std::string_view rung, const Saved& saved, std::size_t needed) {
  constexpr std::size_t kAlignment = ops::CallMemory::kAlignment;
  const auto address = reinterpret_cast<std::uintptr_t>(saved.data);
  if (saved.bytes >= needed && address % kAlignment == 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: `saved` is {} bytes at address {:#x}; what lives from the forward pass "
                          "to the backward pass takes {} bytes at a multiple of {}: lend both passes "
                          "the same saved_bytes() for the same problem",
                          rung, saved.bytes, address, needed, kAlignment));
}

Rung as_rung(const AutogradRung& from) {
  Rung rung;
  static_cast<RungInfo&>(rung) = from;
  rung.supports = [from](const Problem& problem, Pass pass) {
    auto reason = from.supports(problem, Pass::forward);
    return reason || pass == Pass::forward ? reason : from.supports(problem, pass);
  };
  rung.workspace_bytes = [from](const Problem& p, Pass pass) {
    if (pass == Pass::backward) return bytes_of_both(from, p);
    return part_bytes(from.saved_bytes(p)) + from.workspace_bytes(p, pass);
  };
  if (!rung.unavailable.empty()) return rung;
  rung.forward = [from](const Problem& p, const ForwardArgs& args, ops::Workspace lent, device::Stream stream) {
    const std::size_t saved_bytes = from.saved_bytes(p), bytes = from.workspace_bytes(p, Pass::forward);
    ops::CallMemory memory(lent, part_bytes(saved_bytes) + bytes, "workspace", stream);
    const ops::Workspace saved = take(memory, saved_bytes);
    from.forward(p, args, saved, take(memory, bytes), stream);
  };
  rung.backward = [from](const Problem& p, const BackwardArgs& args, ops::Workspace lent, device::Stream stream) {
    ops::CallMemory memory(lent, bytes_of_both(from, p), "workspace", stream);
    const TensorSpec out = like(args.out), lse = like(args.lse);
    const ops::Workspace out_memory = take(memory, out.bytes()), lse_memory = take(memory, lse.bytes()),
                         saved = take(memory, from.saved_bytes(p)),
                         rest = take(memory, std::max(from.workspace_bytes(p, Pass::forward),
                                                      from.workspace_bytes(p, Pass::backward)));
    from.forward(p,
                 {args.q, args.k, args.v, TensorView(out_memory.data, out.dtype, out.shape),
                  TensorView(lse_memory.data, lse.dtype, lse.shape)},
                 saved, rest, stream);
    from.backward(p, args, saved, rest, stream);
  };
  return rung;
}

}  // namespace syslab::attention
