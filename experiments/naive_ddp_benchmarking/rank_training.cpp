#include "experiments/naive_ddp_benchmarking/rank_training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "parallel/case_ranks.hpp"
#include "registry/ladder.hpp"
#include "registry/values.hpp"
#include "stats/summary.hpp"
#include "train/measured_step.hpp"
#include "train/params.hpp"

namespace syslab {
namespace {

using registry::number;
using registry::text;
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

constexpr const char* kBackend = "backend";
constexpr const char* kAuto = "auto";

// The word of comm::connect() for what the axis says.
std::string backend_of(const Params& params, device::Kind device) {
  const std::string asked = params.text(kBackend);
  if (asked != kAuto) return asked;
  return device == device::Kind::cpu ? "shm" : "nccl";
}

// What parallel::measured_data_parallel and parallel::measured_fsdp refuse, as far as axes tell.
std::optional<std::string> refusal_on_ranks(const Params& params, std::string_view implementation) {
  if (auto why = train::refusal_by_axes(params, implementation)) return why;
  if (const std::string asked = params.text(kBackend); asked != kAuto) {
    const bool on_cpu = train::find_rung(implementation).device == device::Kind::cpu;
    if (on_cpu != (asked == "shm")) {
      return fmt::format("the backend {} joins {}, and {} computes on {}", asked, on_cpu ? "GPUs" : "ranks of the CPU",
                         implementation, on_cpu ? "the CPU" : "a GPU");
    }
  }
  if (params.text("mode") == "train") return std::nullopt;
  return "gradients of several ranks meet for an update: mode=train";
}

// Rows of a rank, of a batch of all ranks.
std::int64_t rows_of_rank(std::int64_t batch, std::int64_t ranks) {
  if (batch % ranks == 0) return batch / ranks;
  throw Error(ErrorKind::usage, fmt::format("a batch of {} rows is not divided evenly among {} ranks", batch, ranks));
}

}  // namespace

registry::Builder training_experiment(std::string id, const std::vector<std::string>& models, std::string no_graphs) {
  const auto on_cpu = [](const char* model, std::int64_t context) {
    return registry::Preset{{"model", {text(model)}},
                            {"batch", {number(2)}},
                            {"context", {number(context)}},
                            {"device", {text("cpu")}},
                            {"impl", {text("host")}}};
  };
  registry::Builder made = registry::experiment(std::move(id));
  made.tags({"communication", "model"})
      .protocol("cs336")
      .axes(registry::axes_of(
          train::param_list(),
          {{"model", registry::texts(models)}, {"context", {number(128)}}, {"precision", {text("fp32")}}}))
      .closed_axis(
          kBackend, {text(kAuto)},
          "what carries tensors between ranks; auto: shm on the CPU, nccl on GPUs. copy_engines: large ones go "
          "by the GPUs' copy engines, and multiprocessors are left to who computes",
          registry::texts({"shm", "nccl", "copy_engines"}))
      .world_sizes({number(2)})
      .preset("smoke", on_cpu("tiny", 16))
      .preset("laptop", on_cpu("cpu10m", 64))
      .implementations(registry::implementations_of(train::ladder()))
      .expects([](const Params& params) { rows_of_rank(params.integer("batch"), params.integer("world_size")); })
      .refuses(refusal_on_ranks)
      .skip_if(std::move(no_graphs),
               [](const Params&, std::string_view implementation) { return implementation == "graph"; })
      .metric("time", "s", "median of a whole step; of the slowest rank at each (rank -1)")
      .oom_is_an_answer();
  return made;
}

void add_training_metrics(registry::Builder& experiment) {
  experiment.metric("tokens_per_second", "1/s", "of all ranks, over this rank's median")
      .metric("parameters", "1", "of the model")
      .metric("loss", "1", "of the last step, over the rows of all ranks");
}

void tell_training(worker::CaseContext& context, double tokens, double parameters, double loss,
                   const std::vector<double>& seconds) {
  context.metric("tokens_per_second", "1/s", tokens * context.world_size() / stats::summarize(seconds).median);
  context.metric("loss", "1", loss);
  context.metric("parameters", "1", parameters);
}

train::WorkloadOptions rank_workload(const worker::CaseRequest& request, const train::Rung& rung) {
  train::WorkloadOptions options = train::workload_from(request.params, rung);
  options.batch = rows_of_rank(options.batch, request.world_size);
  return options;
}

train::WorkloadOptions fullest_rank(const Params& params, std::string_view implementation) {
  train::WorkloadOptions options = train::workload_from(params, train::find_rung(implementation));
  options.batch = rows_of_rank(options.batch, params.integer("world_size"));
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
      parallel::join(parallel::case_rank(context.request(), backend_of(context.params(), training.device)));
  worker::RankCase made;
  made.device = training.device;
  parallel::keep_in_step(made, *ranks);
  made.check = [&](device::Stream stream) { return checked(training, *ranks, stream); };
  made.start = [&](device::Stream stream) { return start(*ranks, stream); };
  worker::run_rank_case(context, made);
}

}  // namespace syslab
