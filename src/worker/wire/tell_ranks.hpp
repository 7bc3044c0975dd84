// What ranks of Python tell of the steps that were timed, stored where it fits what the lab's clock says of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worker/cases/case_context.hpp"
#include "worker/cases/channel_training.hpp"
#include "worker/cases/timed_ranks.hpp"

namespace syslab::worker {

// Emits of each rank the series and metrics of timed_ranks.hpp but rank 0's "time". `seconds`: of each step that
// counts, the last ones of those that `training` has kept. Phases that phases_apart() doubts are emitted as missing,
// with why.
void tell_ranks(CaseContext& context, const TimedRanks& timed, const ChannelTraining& training,
                const std::vector<double>& seconds);

// What judged ranks tell of their steps' phases, added up, beside the steps' times, in seconds: what is wrong with it,
// or nothing. It is where nearly every step's phases leave out, or add, more than 2 % and 1 ms: a busy machine makes
// waits long, and hardly all of them. Of fewer than ten steps it may be all: 10 % and 10 ms.
std::string phases_apart(std::span<const double> told, std::span<const double> times);

}  // namespace syslab::worker
