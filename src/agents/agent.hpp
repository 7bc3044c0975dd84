// An agent: a process that a launcher started as another rank than 0. It plans nothing, stores nothing and prints
// nothing on standard output; it lends its place. On the lab's orders it starts workers on its host, connects their
// streams to the lab, signals them, and reports how they ended (agents/orders.hpp).
#pragma once

#include "agents/lab.hpp"

namespace syslab::agents {

// Until the lab says good-bye: 0. When the lab is gone without a word: all workers are killed, Error(comm). SIGINT,
// SIGTERM, SIGHUP and SIGUSR1, which launchers send to all, leave the lab kAnswer to end the case and say so; then all
// workers are killed: 128 + signal. A worker dies with its agent, whatever ends that.
int serve_agent(const comm::LaunchEnvironment& launch, const LaunchOrders& orders);

}  // namespace syslab::agents
