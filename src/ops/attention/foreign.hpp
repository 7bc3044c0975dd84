// An implementation in another process (a student's autograd.Function, PyTorch's own) as a rung of the ladder.
#pragma once

#include <memory>
#include <string>

#include "core/call_channel.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {

// forward calls "attention_forward" with inputs q, k, v and outputs out, lse; backward "attention_backward" with q, k,
// v, out, lse, dout and outputs dq, dk, dv. Options: causal (0 none, 1 top-left, 2 bottom-right), scale.
Rung foreign_rung(std::string name, std::string language, std::string digest, std::shared_ptr<CallChannel> channel);

}  // namespace syslab::attention
