#include "parallel/fsdp/state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "model/parameters.hpp"

namespace syslab::parallel {

FsdpState fsdp_state(const model::ModelConfig& config, std::int64_t ranks, const StateWidths& widths) {
  if (ranks < 1) throw Error(ErrorKind::usage, fmt::format("{} ranks; at least 1 is wanted", ranks));
  FsdpState state;
  const model::ParameterLayout layout(config);
  for (const model::ParameterInfo& one : layout.infos()) {
    const std::int64_t elements = one.shape.elements();
    if (one.kind == model::ParameterKind::norm) {
      ++state.replicated_tensors;
      state.replicated_parameters += elements;
      continue;
    }
    ++state.sharded_tensors;
    state.sharded_parameters += elements;
    state.padding += (round_up(one.shape[0], ranks) - one.shape[0]) * (elements / one.shape[0]);
    state.largest_parameters = std::max(state.largest_parameters, elements);
  }
  const std::int64_t held = (state.sharded_parameters + state.padding) / ranks + state.replicated_parameters;
  state.rank_bytes = static_cast<double>(held * (widths.weight + widths.gradient + widths.master + widths.moments));
  return state;
}

}  // namespace syslab::parallel
