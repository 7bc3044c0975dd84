// An implementation in another process (a student's autograd.Function) as a rung of the ladder.
#pragma once

#include <memory>
#include <string>

#include "core/call_channel.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

// forward calls "weighted_sum_forward" with inputs x, w and output y; backward "weighted_sum_backward" with x, w, dy
// and outputs dx, dw.
Rung foreign_rung(std::string name, std::string language, std::string digest, std::shared_ptr<CallChannel> channel);

}  // namespace syslab::weighted_sum
