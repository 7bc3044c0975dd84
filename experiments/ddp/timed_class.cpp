#include "experiments/ddp/timed_class.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "parallel/strategy.hpp"
#include "train/ladder.hpp"
#include "train/params.hpp"
#include "trials/rank_training.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/timed_ranks.hpp"

namespace syslab {
namespace {

constexpr const char* kOursInTorch = "ours_in_torch";
constexpr const char* kTorchsOwn = "torchs_own";

train::WorkloadOptions workload_of(const Params& params, std::int64_t ranks) {
  return parallel::rank_workload(params, train::find_rung("host"), ranks);
}

// Elements of each, in the order of parameters().
std::vector<std::int64_t> parameters_of(const model::ModelConfig& config) {
  const std::int64_t d = config.d_model, wide = config.d_model * config.d_ff;
  std::vector<std::int64_t> made{config.vocab * d};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (const std::int64_t one : {d * d, d * d, d * d, d * d, wide, wide, wide, d, d}) made.push_back(one);
  }
  made.insert(made.end(), {d, config.vocab * d});
  return made;
}

// Floats that autograd keeps of a pass, an operation of the module at a time.
double activations_of(const model::ModelConfig& config, double rows) {
  const double tokens = rows * static_cast<double>(config.context), d = static_cast<double>(config.d_model);
  const double scores = 3 * static_cast<double>(config.heads) * static_cast<double>(config.context);
  const double block = 24 * d + 5 * static_cast<double>(config.d_ff) + scores;
  return tokens * (static_cast<double>(config.layers) * block + 4 * d + 3 * static_cast<double>(config.vocab));
}

std::string word_of(const TimedClass& timed, const std::string& value) {
  const auto found = std::ranges::find(timed.ours, value, &std::pair<std::string, std::string>::first);
  return found == timed.ours.end() ? "" : found->second;
}

// Whether a case is the class's own: a class is one of the values, and torch's own stands beside it.
bool is_of(const TimedClass& timed, const Params& params, std::string_view implementation) {
  const std::string value = params.text(timed.axis);
  return implementation == kOursInTorch ? !word_of(timed, value).empty() : value == timed.of_class;
}

Json sizes_of(const model::ModelConfig& config) {
  return {{"vocab", config.vocab},
          {"context", config.context},
          {"d_model", config.d_model},
          {"d_ff", config.d_ff},
          {"layers", config.layers},
          {"heads", config.heads},
          {"theta", config.rope_theta.value_or(10000.0)},
          {"halves", config.handout == model::Handout::y2026}};
}

}  // namespace

bool trains_in_python(std::string_view implementation) {
  return std::ranges::none_of(train::ladder(), [&](const train::Rung& rung) { return rung.name == implementation; });
}

void time_classes(registry::Builder& experiment, const TimedClass& timed) {
  registry::Implementation ours{.name = kOursInTorch,
                                .teaches =
                                    "the strategy by src/python/syslab_parallel.py, or in plain torch, around the "
                                    "torch module that a class on ranks is given: what to compare a class with",
                                .dtypes = {"fp32"},
                                .beside_classes = true};
  experiment.implementation(std::move(ours));
  if (timed.has_torchs_own) {
    experiment.implementation({.name = kTorchsOwn,
                               .teaches = "torch's DistributedDataParallel or ZeroRedundancyOptimizer around the same",
                               .dtypes = {"fp32"},
                               .role = Role::peer,
                               .beside_classes = true});
  }
  experiment.accepts_classes_on_ranks()
      .skip_if("a class on ranks is timed as " + timed.axis + "=" + timed.of_class,
               [timed](const Params& params, std::string_view implementation) {
                 return trains_in_python(implementation) && !is_of(timed, params, implementation);
               })
      .skip_if(
          "a class on ranks is timed in fp32, gradients as they lie: precision=fp32 mode=train wire=own backend=auto",
          [](const Params& params, std::string_view implementation) {
            return trains_in_python(implementation) &&
                   (params.text("precision") != "fp32" || params.text("mode") != "train" ||
                    params.text("backend") != "auto" || parallel::wire_of(params).has_value());
          })
      .metric("optimizer_bytes", "B", "of a class on ranks: what its optimizer holds on this rank")
      .metric("weight_bytes", "B", "of a class on ranks: the memory behind its parameters on this rank, between steps")
      .metric("peak_memory", "B", "of a class on ranks on a GPU: the most that torch held of it in the last step");
}

void run_timed_class(worker::CaseContext& context, const TimedClass& timed) {
  const worker::CaseRequest& asked = context.request();
  if (asked.mine) worker::require_class_for_ranks(context);
  const std::int64_t ranks = asked.own_ranks;
  const train::WorkloadOptions workload = workload_of(context.params(), ranks);
  const std::string value = context.params().text(timed.axis);
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  worker::TimedRanks made;
  made.training = {{"way", timed.way},
                   {"whose", asked.implementation == kTorchsOwn ? "torchs" : "ours"},
                   {"strategy", word_of(timed, value)},
                   {"communicates", timed.way != "data_parallel" || value != "none"},
                   {"ranks", ranks},
                   {"rows", workload.batch},
                   {"threads", std::max<std::int64_t>(1, cores / ranks)},
                   {"sizes", sizes_of(workload.config)},
                   {"adamw", {{"lr", 1e-3}}}};
  if (value == "bucketed") made.training["bucket_mb"] = context.params().integer("bucket_mb");
  made.parameters = parameters_of(workload.config);
  made.tokens = static_cast<double>(workload.batch * workload.seq);
  if (asked.mine) {
    made.laws = timed.laws(context.rank_channel());
    // What is timed computes in fp32: whether the class could compute in fp16 decides nothing. Two laws beyond the
    // hand-out look for memory that a class does not show: what it shows is stored.
    std::erase_if(made.laws, [](const check::Law& law) {
      const bool looks = law.id == "sharded.state_once" || law.id == "fsdp.holds_parts";
      return (!law.asked_by_handout && !looks) || law.id == "fsdp.fp16";
    });
  }
  worker::run_timed_ranks(context, made);
}

double timed_class_memory(const Params& params) {
  const std::int64_t ranks = params.integer("world_size");
  const train::WorkloadOptions workload = workload_of(params, ranks);
  double state = 0;
  for (const std::int64_t one : parameters_of(workload.config)) state += static_cast<double>(one);
  const auto rows = static_cast<double>(workload.batch);
  constexpr double kFloat = 4;
  const double rank = 5 * state + activations_of(workload.config, rows);  // weights, gradients, moments, buckets
  const double one_process = 4 * state + activations_of(workload.config, rows * static_cast<double>(ranks));
  return kFloat * std::max(rank, one_process);
}

}  // namespace syslab
