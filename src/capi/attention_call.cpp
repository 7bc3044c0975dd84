#include "capi/attention_call.hpp"

#include <fmt/format.h>

#include "device/memory_log.hpp"
#include "device/stream.hpp"

namespace syslab::capi {

using attention::Mask;
using attention::Problem;
using attention::Rung;

Problem problem_of(const ConstTensorView& q, const ConstTensorView& k, const syslab_attention_options& options) {
  Problem problem;
  problem.batch = q.size(0);
  problem.heads_q = q.size(1);
  problem.heads_kv = k.size(1);
  problem.seq_q = q.size(2);
  problem.seq_k = k.size(2);
  problem.head_dim = q.size(3);
  problem.scale = options.scale;
  problem.mask = options.causal == 0 ? Mask::none : options.causal == 1 ? Mask::top_left : Mask::bottom_right;
  problem.dtype = q.dtype;
  attention::validate(problem);
  return problem;
}

attention::Dispatched choose_with_reason(const Problem& problem, Pass pass, const syslab_attention_options& options,
                                         device::Stream stream, bool walkable) {
  const auto want = options.deterministic != 0 ? attention::Want::deterministic : attention::Want::fastest;
  attention::Where where = attention::where_of(stream);
  where.walkable = walkable;
  if (options.implementation == nullptr) return attention::dispatch(problem, pass, where, want);
  const Rung& rung = attention::find_rung(options.implementation);
  if (const auto reason = attention::reason_against(rung, problem, pass, where, want)) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' {}; the tensors lie on {}", rung.name, *reason, to_string(device::place_of(stream))));
  }
  return {&rung, "it was asked for by name"};
}

const Rung& choose(const Problem& problem, Pass pass, const syslab_attention_options& options, device::Stream stream,
                   bool walkable) {
  return *choose_with_reason(problem, pass, options, stream, walkable).rung;
}

void forget_accounts(device::Place place) noexcept {
  device::MemoryLog::global().clear();
  if (place.kind == device::Kind::cuda) device::MemoryLog::of(place).clear();
}

}  // namespace syslab::capi
