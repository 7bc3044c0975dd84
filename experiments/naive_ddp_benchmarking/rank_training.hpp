// Training steps of several ranks as cases: what every experiment on them does around what it asks.
#pragma once

#include <functional>
#include <memory>

#include "parallel/measured_data_parallel.hpp"
#include "worker/rank_case.hpp"

namespace syslab {

// A model's step with this rank's rows of a batch of all ranks. Error(usage) where they do not divide.
train::WorkloadOptions rank_workload(const worker::CaseRequest& request, const train::Rung& rung);

// Steps with new tokens each, whose loss is a number.
worker::RankSeries training_steps(const std::shared_ptr<parallel::DataParallelWorkload>& workload);

// The journey on each rank: meets the others, certifies and checks what is measured, and times what `start` gives.
using StartOnRanks = std::function<worker::RankRun(comm::Communicator& ranks, device::Stream stream)>;
void run_on_ranks(worker::CaseContext& context, const parallel::MeasuredDataParallel& measured,
                  const StartOnRanks& start);

}  // namespace syslab
