#include "experiments/naive_ddp_benchmarking/rank_training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "parallel/case_ranks.hpp"
#include "train/params.hpp"

namespace syslab {
namespace {

using worker::StepCheck;

// The strategy's certificate to the bit, and the model of this rank against fp64.
std::vector<StepCheck> checked(const RankTraining& training, comm::Communicator& ranks, device::Stream stream) {
  StepCheck certificate{.name = "certificate",
                        .message = "a network of exact numbers ends with the bits of one process"};
  try {
    std::vector<StepCheck> all{certificate};
    for (const auto& one : training.check(ranks, stream))
      all.push_back({one.name, one.error, one.tolerance, one.message});
    return all;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::check) throw;
    certificate.error = std::numeric_limits<double>::quiet_NaN();
    certificate.message = error.what();
    return {certificate};
  }
}

}  // namespace

train::WorkloadOptions rank_workload(const worker::CaseRequest& request, const train::Rung& rung) {
  train::WorkloadOptions options = train::workload_from(request.params, rung);
  if (options.batch % request.world_size != 0) {
    throw Error(ErrorKind::usage, fmt::format("a batch of {} rows is not divided evenly among {} ranks", options.batch,
                                              request.world_size));
  }
  options.batch /= request.world_size;
  return options;
}

worker::StepCheck loss_check(double loss) {
  return {.name = "loss",
          .error = std::isfinite(loss) ? 0 : std::numeric_limits<double>::quiet_NaN(),
          .message = fmt::format("the mean over all rows is {}", loss)};
}

void run_training(worker::CaseContext& context, const RankTraining& training, const StartOnRanks& start) {
  if (training.refusal) throw worker::Unsupported(*training.refusal);
  const std::unique_ptr<comm::Communicator> ranks =
      parallel::join(parallel::case_rank(context.request(), training.device == device::Kind::cpu ? "shm" : "nccl"));
  worker::RankCase made;
  made.device = training.device;
  made.of_first = [&](double own) { return parallel::of_first(*ranks, own); };
  made.barrier = [&] { ranks->barrier(); };
  made.check = [&](device::Stream stream) { return checked(training, *ranks, stream); };
  made.start = [&](device::Stream stream) { return start(*ranks, stream); };
  worker::run_rank_case(context, made);
}

}  // namespace syslab
