// Blocks of a comparison, as statistics and verdicts take them.
#pragma once

#include <span>
#include <vector>

#include "runner/paired/paired.hpp"
#include "session/no_time.hpp"
#include "verdict/judgement.hpp"

namespace syslab::cli {

std::vector<stats::PairedBlock> for_stats(std::span<const runner::PairedBlock> blocks);
verdict::Turns turns_of(std::span<const runner::PairedBlock> blocks);

// Without a ratio: too much of the time of this side ('A', 'B') is the lab's own.
verdict::Judgement under_resolution(char side, const NoTime& why);

}  // namespace syslab::cli
