#include "trials/rank_training.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/copy_engines/copy_engines.hpp"
#include "core/error.hpp"
#include "train/measured_step.hpp"
#include "train/params.hpp"

namespace syslab::parallel {
namespace {

constexpr const char* kBackend = "backend";
constexpr const char* kAuto = "auto";
constexpr const char* kWire = "wire";

std::int64_t rows_of_rank(std::int64_t batch, std::int64_t ranks) {
  if (batch % ranks == 0) return batch / ranks;
  throw Error(
      ErrorKind::usage,
      fmt::format("a batch of {} rows is not divided evenly among {} ranks: batch counts the rows of all ranks; "
                  "ask for a multiple of them all, such as batch={}",
                  batch, ranks, ranks * std::max<std::int64_t>(1, batch / ranks)));
}

void expect_even_rows(const Params& params) { rows_of_rank(params.integer("batch"), params.integer("world_size")); }

std::optional<std::string> refusal_by_axes(const Params& params, std::string_view rung) {
  if (auto why = train::refusal_by_axes(params, rung)) return why;
  if (auto why = refusal_of_backend(params, rung, train::find_rung(rung).device)) return why;
  return refusal_on_ranks(train::parse_mode(params.text("mode")));
}

}  // namespace

train::WorkloadOptions rank_workload(const Params& params, const train::Rung& rung, std::int64_t ranks) {
  train::WorkloadOptions options = train::workload_from(params, rung);
  options.batch = rows_of_rank(options.batch, ranks);
  return options;
}

std::optional<std::string> refusal_on_ranks(train::Mode mode) {
  if (mode == train::Mode::train) return std::nullopt;
  return "gradients of several ranks meet for an update: mode=train";
}

std::optional<DType> wire_of(const Params& params) {
  if (!params.has(kWire) || params.text(kWire) == "own") return std::nullopt;
  return parse_dtype(params.text(kWire));
}

std::optional<std::string> refusal_on_wire(std::optional<DType> wire, model::Precision precision) {
  if (!wire || precision != model::Precision::fp64) return std::nullopt;
  return fmt::format(
      "a model in fp64 is what others are held against: its gradients travel as they lie, and not in {}: take wire=own",
      to_string(*wire));
}

std::optional<std::string> refusal_with_wire(const Params& params, std::string_view rung) {
  if (auto why = refusal_by_axes(params, rung)) return why;
  return refusal_on_wire(wire_of(params), model::parse_precision(params.text("precision")));
}

std::optional<std::string> refusal_of_backend(const Params& params, std::string_view name, device::Kind device) {
  const std::string asked = params.text(kBackend);
  const bool on_cpu = device == device::Kind::cpu;
  if (asked == kAuto || on_cpu == (asked == "shm")) return std::nullopt;
  return fmt::format("the backend {} joins {}, and {} computes on {}", asked, on_cpu ? "GPUs" : "ranks of the CPU",
                     name, on_cpu ? "the CPU" : "a GPU");
}

std::string backend_of(const Params& params, device::Kind device) {
  const std::string asked = params.text(kBackend);
  if (asked != kAuto) return asked;
  return device == device::Kind::cpu ? "shm" : "nccl";
}

double backend_bytes(const Params& params, int ranks) {
  if (params.text(kBackend) != "copy_engines") return 0;
  return static_cast<double>(comm::CopyEngines::memory_bytes(comm::CopyEngineOptions{}, ranks));
}

RankTrainingCases rank_training_cases() {
  const auto word = [](const char* one) -> Value { return std::string(one); };
  RankTrainingCases made{train::param_list(), train::ladder(), expect_even_rows, refusal_by_axes};
  made.params.push_back({kBackend,
                         {word(kAuto)},
                         "what carries tensors between ranks; auto: shm on the CPU, nccl on GPUs. copy_engines: large "
                         "ones go by the GPUs' copy engines, and multiprocessors are left to who computes",
                         true,
                         {word("shm"), word("nccl"), word("copy_engines")}});
  return made;
}

}  // namespace syslab::parallel
