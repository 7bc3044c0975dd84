// Training steps of several ranks as cases: what every experiment on them does around what it asks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "model/against_reference.hpp"
#include "registry/registry.hpp"
#include "train/ladder.hpp"
#include "train/workload.hpp"
#include "worker/rank_case.hpp"

namespace syslab {

// The experiment around such a case: axes of the model, `batch` being the rows of all ranks and `model` by default
// these; presets smoke and laptop; implementations, of which recorded graphs are skipped for this reason; metric
// "time"; memory. What it is about, further axes, presets and metrics, and the body are to be added.
registry::Builder training_experiment(std::string id, const std::vector<std::string>& models, std::string no_graphs);
// Metrics of every training step, and what they are of this rank's steps: tokens of a rank's step, parameters of the
// model, loss over the rows of all ranks.
void add_training_metrics(registry::Builder& experiment);
void tell_training(worker::CaseContext& context, double tokens, double parameters, double loss,
                   const std::vector<double>& seconds);

// A model's step with this rank's rows of a batch of all ranks. Error(usage) where they do not divide.
train::WorkloadOptions rank_workload(const worker::CaseRequest& request, const train::Rung& rung);

// The same before there are ranks, for what one will hold.
train::WorkloadOptions fullest_rank(const Params& params, std::string_view implementation);

// That a loss is a number.
worker::StepCheck loss_check(double loss);

// Steps with new tokens each, whose loss is a number: of parallel::DataParallelWorkload, parallel::FsdpWorkload.
template <typename Workload>
worker::RankSeries training_steps(const std::shared_ptr<Workload>& workload) {
  worker::RankSeries steps;
  steps.refresh = [workload] { workload->refresh(); };
  steps.call = [workload] { workload->run(); };
  steps.verify = [workload] { return loss_check(workload->loss()); };
  return steps;
}

// What is measured, as far as the journey asks: of parallel::MeasuredDataParallel, parallel::MeasuredFsdp.
struct RankTraining {
  device::Kind device = device::Kind::cpu;
  std::optional<std::string> refusal;
  std::function<std::vector<model::Distance>(comm::Communicator&, device::Stream)> check;
};

// The journey on each rank: meets the others, certifies and checks what is measured, and times what `start` gives.
using StartOnRanks = std::function<worker::RankRun(comm::Communicator& ranks, device::Stream stream)>;
void run_training(worker::CaseContext& context, const RankTraining& training, const StartOnRanks& start);
template <typename Measured>
void run_on_ranks(worker::CaseContext& context, const Measured& measured, const StartOnRanks& start) {
  run_training(context, {measured.device, measured.refusal, measured.check}, start);
}

}  // namespace syslab
