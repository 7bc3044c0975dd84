// What a call of attention from outside needs before a rung runs: its problem, and the rung. Both ways in share it:
// DLPack tensors (capi.cpp) and torch's (torch/operators.cpp).
#pragma once

#include "capi/syslab.h"
#include "ops/attention/dispatch.hpp"

namespace syslab::capi {

// Of tensors (B, H, S, D). Error(usage) if there is no such problem.
attention::Problem problem_of(const ConstTensorView& q, const ConstTensorView& k,
                              const syslab_attention_options& options);

// The rung that the options name, else the dispatcher's; for work on `stream`. `walkable`: attention::walkable() of the
// call's tensors. Error(usage) with the reason if the named one cannot take the problem there.
attention::Dispatched choose_with_reason(const attention::Problem& problem, Pass pass,
                                         const syslab_attention_options& options, device::Stream stream, bool walkable);
// The same without the reason.
const attention::Rung& choose(const attention::Problem& problem, Pass pass, const syslab_attention_options& options,
                              device::Stream stream, bool walkable);

// Buffer accounts are not read on this side of the interface; in a process that makes calls for days they must not
// grow.
void forget_accounts(device::Place place) noexcept;

}  // namespace syslab::capi
