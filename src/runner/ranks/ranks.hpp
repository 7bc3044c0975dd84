// One launch of a case that several ranks do together.
#pragma once

#include "runner/launch.hpp"

namespace syslab::runner {

// As run_launch. Every rank has a fresh process, whatever the isolation. They are told of each other by `rank`,
// `world_size` and `rendezvous` alone (runner/ranks/gang.hpp). Progress is rank 0's. The launch is over when the last
// rank is gone; at the order's deadline all are killed. How the ends of the ranks become one: runner/ranks/verdict.hpp.
Launch run_ranks(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                 const Interruption& interruption);

}  // namespace syslab::runner
