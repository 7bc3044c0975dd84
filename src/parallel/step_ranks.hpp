// What the training steps of several ranks have in common, however weights and gradients travel.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "train/optimizer.hpp"
#include "train/step.hpp"

namespace syslab::parallel {

struct DataParallelResult {
  double loss = 0;                      // mean over all rows of all ranks
  std::vector<double> losses;           // by rank
  std::optional<double> gradient_norm;  // of the mean gradient: the same on all ranks
  bool skipped = false;                 // likewise: what is no number on one rank is none in the sum
};

// Each rank's number, to the bit; and each rank's share of all rows. Collective, of the host.
std::vector<double> exchange(comm::Communicator& ranks, double value);
std::vector<double> shares_of(comm::Communicator& ranks, std::int64_t rows);

// Of the last step, over all ranks. Collective; waits for the step.
DataParallelResult result_of(comm::Communicator& ranks, train::TrainingStep& step, const std::vector<double>& shares);

// All that ranks must have alike.
std::string text_of(const train::OptimizerOptions& options);

// The others would wait for what this rank owes them in vain: what `body` throws ends their communication.
template <typename Body>
void told(comm::Communicator& ranks, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    if (ranks.size() > 1) ranks.abort(error.what());
    throw;
  }
}

}  // namespace syslab::parallel
