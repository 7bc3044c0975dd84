// One launch of a case that several ranks do together: a worker process each, all started before any is listened to,
// all heard at once, and ended together.
#pragma once

#include "runner/launch.hpp"

namespace syslab::runner {

// How long ranks have to say what they know once another has ended badly; then they are killed.
inline constexpr auto kGrace = std::chrono::seconds(3);

// As run_launch. Every rank has a fresh process, whatever the isolation, and its share of the processors' threads
// (OMP_NUM_THREADS, unless it is set). They are told of each other by `rank`, `world_size` and `rendezvous` alone: a
// private folder that is there while they are. Progress is rank 0's. The launch is over when the last rank is gone; at
// the order's deadline all are killed. How the ends of the ranks become one: runner/ranks_verdict.hpp.
Launch run_ranks(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                 const Interruption& interruption);

}  // namespace syslab::runner
