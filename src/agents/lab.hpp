// The lab of a launch: rank 0's process. Rank 0 of every case runs on its host, and the agents start the other ranks on
// its orders (agents/agent.hpp).
//
//   agents::Lab lab(launch, {.arguments = arguments});   // returns when all agents have come
//   run_plan(plan, {.places = &lab}, observer);
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/line.hpp"
#include "comm/rendezvous/launch_environment.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "runner/places.hpp"

namespace syslab::agents {

struct LaunchOrders {
  std::vector<std::string> arguments;       // of the command line, which must be one on all ranks
  std::chrono::milliseconds limit{60'000};  // until all are there
};

// From the launcher's variables, plus the user's: SYSLAB_LAUNCH_LIMIT ("5m"). Removes SYSLAB_RANK and similar variables
// from the environment: workers are ranks of cases, not of this launch. Error(usage) for contradictions.
comm::LaunchEnvironment take_launch(LaunchOrders& orders);

class Lab final : public runner::Places {
 public:
  // Error(comm) when an agent does not come within the limit, or was started from another build or command line.
  Lab(const comm::LaunchEnvironment& launch, const LaunchOrders& orders);
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  ~Lab() override;  // all agents end, and are waited for, but not for long

  int ranks() const override { return static_cast<int>(seats_.size()); }
  int gpus() const override { return ranks_with_a_gpu(seats_); }
  std::string host(int rank) const override { return seats_.at(static_cast<std::size_t>(rank)).host; }
  int device_index(int rank) const override { return gpu_of(seats_.at(static_cast<std::size_t>(rank))); }
  int threads(int rank, int of) const override { return threads_of(seats_, rank, of); }
  std::string rendezvous(int of) const override;
  std::unique_ptr<runner::Hosted> start(int rank, const SpawnOptions& options) override;

  std::string text() const { return text_of(seats_); }

 private:
  void meet(const comm::LaunchEnvironment& launch, const LaunchOrders& orders);
  void await_agents(comm::Rendezvous& rendezvous, Deadline deadline);
  // The worker's connection, or none when the line is lost.
  comm::MessageClient accept_worker(Line& line, int rank, WorkerId worker);

  std::optional<comm::Reception> reception_;
  std::string address_;                       // of this host, as agents reach it
  std::vector<Seat> seats_;                   // by rank
  std::vector<std::shared_ptr<Line>> lines_;  // by rank; none of rank 0
  WorkerId workers_ = 0;                      // started so far
};

}  // namespace syslab::agents
