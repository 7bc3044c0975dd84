// communication_accounting: 126 wide blocks on paper, their memory and the batch from which they are bound by compute;
// the question is in README.md in this folder. Nothing is timed: the answer is arithmetic, counted twice.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "paper/block_memory.hpp"
#include "paper/mesh_batch.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/wire/check_number.hpp"

namespace syslab::experiment_communication_accounting {
namespace {

using parallel::Axes;
using parallel::BlockModel;
using parallel::Machine;
using parallel::Mesh;
using registry::number;

// (a) and (b). A gigabyte is read as 10^9 bytes or as 2^30; the answer has both.
constexpr std::pair<const char*, std::int64_t> kReadings[] = {{"decimal", 1'000'000'000}, {"binary", 1'073'741'824}};

std::int64_t between(const Params& params, const char* axis, std::int64_t least, std::int64_t most) {
  const std::int64_t value = params.integer(axis);
  if (value >= least && value <= most) return value;
  throw Error(ErrorKind::usage, fmt::format("{} is {}; it must be between {} and {}", axis, value, least, most));
}

BlockModel model_from(const Params& params) {
  const BlockModel model{params.integer("d_model"), params.integer("d_ff"), params.integer("blocks")};
  parallel::validate(model);
  return model;
}

Machine machine_from(const Params& params) {
  const Machine machine{.flops_per_second = 1e12 * params.number("compute_tflops"),
                        .link_bytes_per_second = 1e9 * params.number("link_gbps")};
  parallel::validate(machine);
  return machine;
}

// So many that what they leave is counted in 63 bits.
std::int64_t tokens_from(const Params& params, const BlockModel& model) {
  return between(params, "tokens", 0, (std::int64_t{1} << 61) / parallel::activation_bytes_per_token(model));
}

std::int64_t gigabytes(const Params& params, const char* axis) { return between(params, axis, 1, 1 << 20); }

void check_sums(worker::CaseContext& context, const BlockModel& model) {
  std::int64_t parameters = 0, kept = 0;
  for (std::int64_t block = 0; block < model.blocks; ++block) {
    for (const auto& [in, out] : {std::pair{model.d_model, model.d_ff}, std::pair{model.d_ff, model.d_model}}) {
      parameters += in * out;
      kept += 2 * in;
    }
  }
  worker::check_number(context, "reference:parameters", static_cast<double>(parallel::parameter_count(model)),
                       static_cast<double>(parameters), 0, "parameters, beside those of every layer added up");
  worker::check_number(context, "reference:activations",
                       static_cast<double>(parallel::activation_bytes_per_token(model)), static_cast<double>(kept), 0,
                       "bytes kept of a token, beside the inputs of every layer added up");
}

void tell_memory(worker::CaseContext& context, const BlockModel& model) {
  const parallel::BlockStateBytes state = parallel::state_bytes(model);
  const std::int64_t of_token = parallel::activation_bytes_per_token(model);
  const std::int64_t tokens = tokens_from(context.params(), model);
  const std::int64_t activations = tokens * of_token, all = state.total() + activations;
  check_sums(context, model);
  context.metric("parameters", "1", static_cast<double>(parallel::parameter_count(model)));
  context.metric("weight_bytes", "B", static_cast<double>(state.weights));
  context.metric("gradient_bytes", "B", static_cast<double>(state.gradients));
  context.metric("moment_bytes", "B", static_cast<double>(state.moments));
  context.metric("state_bytes", "B", static_cast<double>(state.total()));
  context.metric("token_bytes", "B", static_cast<double>(of_token));
  context.metric("activation_bytes", "B", static_cast<double>(activations));
  for (const auto& [reading, unit] : kReadings) {
    const std::int64_t device = unit * gigabytes(context.params(), "device_gb");
    const std::int64_t devices = parallel::devices_for(all, device);
    const bool first = devices * device >= all && (devices - 1) * device < all;
    worker::check_number(context, fmt::format("reference:devices_{}", reading), first ? 0 : 1, 0, 0,
                         fmt::format("{} devices hold it and one less does not (0: so it is)", devices));
    context.metric(fmt::format("devices_{}", reading), "1", static_cast<double>(devices));
    context.metric(fmt::format("filled_{}", reading), "1", static_cast<double>(all) / static_cast<double>(device));

    const std::int64_t shard = unit * gigabytes(context.params(), "shard_gb");
    const std::optional<std::int64_t> shards = parallel::shards_for(state.total(), activations, shard);
    const auto fits = [&](std::int64_t n) {
      return parallel::sharded_bytes(state.total(), activations, n) <= static_cast<double>(shard) * (1 + 1e-12);
    };
    // More shards never need more memory each: if even one shard for each byte does not fit, no number does.
    const bool right = shards ? fits(*shards) && (*shards == 1 || !fits(*shards - 1)) : !fits(2 * all);
    worker::check_number(context, fmt::format("reference:shards_{}", reading), right ? 0 : 1, 0, 0,
                         shards ? fmt::format("{} shards fit and one less does not (0: so it is)", *shards)
                                : "no number of shards fits (0: so it is)");
    if (shards) {
      context.metric(fmt::format("shards_{}", reading), "1", static_cast<double>(*shards));
    } else {
      context.missing_metric(fmt::format("shards_{}", reading), "1", "half of the activations fill the device");
    }
  }
  const double shard_bytes = 1e9 * static_cast<double>(context.params().integer("shard_gb"));
  context.metric("tokens_without_room", "1", 2 * shard_bytes / static_cast<double>(of_token));
}

// (c) and (d).
Mesh mesh_from(const Params& params) {
  const Mesh mesh{.x = between(params, "fsdp_ranks", 1, 1 << 16),
                  .y = between(params, "tensor_ranks", 1, 1 << 16),
                  .x_links = params.integer("fsdp_links"),
                  .y_links = params.integer("tensor_links")};
  parallel::validate(mesh);
  return mesh;
}

Json json_of(const std::optional<std::int64_t>& tokens) { return tokens ? Json(*tokens) : Json(); }

// The batch by the formula, where trying every batch agrees.
std::optional<std::int64_t> checked_batch(worker::CaseContext& context, const std::string& what, const Mesh& mesh,
                                          std::int64_t d_ff, const Machine& machine, Axes axes) {
  const auto found = parallel::least_whole_tokens(mesh, d_ff, machine, axes);
  const auto tried = parallel::least_tokens_by_search(mesh, d_ff, machine, axes);
  const auto number = [](const std::optional<std::int64_t>& tokens) {
    return tokens ? static_cast<double>(*tokens) : std::numeric_limits<double>::infinity();
  };
  worker::check_number(context,
                       fmt::format("reference:{}_{}", what, axes == Axes::overlapped ? "overlapped" : "serial"),
                       number(found), number(tried), parallel::tokens_of_rounding(mesh, d_ff, machine, axes),
                       "the least batch by the formula, beside trying");
  return found;
}

struct Lever {
  const char* name;
  const char* says;
  Mesh mesh;
};

std::vector<Lever> levers(const Mesh& mesh) {
  Mesh fp8 = mesh, links = mesh, reused = mesh, stages = mesh;
  fp8.weight_bytes = 1;
  links.x_links *= 2;
  reused.micro_batches_per_gather = 4;
  std::vector<Lever> list{
      {"none", "as asked", mesh},
      {"fp8 weights", "weights travel in one byte", fp8},
      {"more links", "the FSDP axis has twice the links", links},
      {"gathers reused", "a gathered weight serves 4 micro-batches; the batch is that of one", reused},
  };
  if (mesh.x % 4 == 0) {
    stages.x /= 4;
    list.push_back({"pipeline", "4 stages, each on a quarter of the FSDP ranks; the batch is a micro-batch", stages});
  }
  return list;
}

void tell_batch(worker::CaseContext& context, std::int64_t d_ff, const Mesh& mesh, const Machine& machine) {
  Json facts{{"splits", Json::array()}, {"levers", Json::array()}};
  for (const Lever& one : levers(mesh)) {
    const auto overlapped =
        checked_batch(context, fmt::format("batch ({})", one.name), one.mesh, d_ff, machine, Axes::overlapped);
    const auto serial =
        checked_batch(context, fmt::format("batch ({})", one.name), one.mesh, d_ff, machine, Axes::serial);
    facts["levers"].push_back({{"lever", one.name},
                               {"says", one.says},
                               {"devices", one.mesh.devices()},
                               {"overlapped", json_of(overlapped)},
                               {"serial", json_of(serial)}});
  }
  for (const parallel::WholeSplit& one : parallel::whole_splits(mesh, d_ff, machine)) {
    Mesh split = mesh;
    split.x = one.x;
    split.y = one.y;
    const std::string what = fmt::format("batch of {} × {}", one.x, one.y);
    facts["splits"].push_back(
        {{"x", one.x},
         {"y", one.y},
         {"overlapped", json_of(checked_batch(context, what, split, d_ff, machine, Axes::overlapped))},
         {"serial", json_of(checked_batch(context, what, split, d_ff, machine, Axes::serial))}});
  }
  context.metric("alpha", "1", machine.flops_per_second / machine.link_bytes_per_second);
  for (const Axes axes : {Axes::overlapped, Axes::serial}) {
    const std::string name = axes == Axes::overlapped ? "batch_overlapped" : "batch_serial";
    if (const auto batch = parallel::least_tokens(mesh, d_ff, machine, axes)) {
      context.metric(name, "1", *batch);
    } else {
      context.missing_metric(name, "1", "the tensor axis takes longer than computing at any batch");
    }
    const parallel::FreeSplit free = parallel::best_free_split(mesh, d_ff, machine, axes);
    context.metric("free_" + name, "1", free.tokens);
    context.metric("free_" + name + "_x", "1", free.x);
    context.metric("free_" + name + "_y", "1", free.y);
    const double best = parallel::free_tokens_by_search(mesh, d_ff, machine, axes);
    worker::check_number(context, "reference:free_" + name, free.tokens, best, 1e-6 * best,
                         "the least batch over all X by the formula, beside the best of 8001");
  }
  context.emit(worker::FactRecord{json_text(facts)});
}

void run_case(worker::CaseContext& context) {
  const Params& params = context.params();
  const BlockModel model = model_from(params);
  const Machine machine = machine_from(params);
  const Mesh mesh = mesh_from(params);
  tell_memory(context, model);
  tell_batch(context, model.d_ff, mesh, machine);
}

// Error(usage) before anything runs.
void expect(const Params& params) {
  const BlockModel model = model_from(params);
  machine_from(params);
  mesh_from(params);
  tokens_from(params, model);
  for (const char* axis : {"device_gb", "shard_gb"}) gigabytes(params, axis);
}

registry::Experiment describe() {
  return registry::experiment("communication_accounting")
      .title("Communication accounting")
      .question(
          "126 blocks of two linear layers, D = 16384 and F = 53248: how much memory do they take, over how many "
          "devices, and from which batch on is computing what a mesh of 16 × 4 devices waits for?")
      .problem("2025", "communication_accounting", 10)
      .evidence({.preset = "paper"})
      .tags({"parallel", "arithmetic"})
      .axis("tokens", {number(0), number(512), number(1024), number(2048), number(4096), number(8192), number(131072)},
            "that leave activations behind, on the devices together in (a) and on each in (b)")
      .axis("d_model", {number(16384)}, "D")
      .axis("d_ff", {number(53248)}, "F")
      .axis("blocks", {number(126)}, "of two linear layers each")
      .axis("device_gb", {number(80)}, "memory of a device in (a): 10^9 bytes in one reading, 2^30 in the other")
      .axis("shard_gb", {number(95)}, "memory of a device in (b), alike")
      .axis("fsdp_ranks", {number(16)}, "X")
      .axis("tensor_ranks", {number(4)}, "Y")
      .axis("fsdp_links", {number(2)}, "M_X, links that the FSDP axis uses at once")
      .axis("tensor_links", {number(1)}, "M_Y, links of the tensor axis")
      .axis("compute_tflops", {460.0}, "C, 10^12 operations a second of one device")
      .axis("link_gbps", {180.0}, "W, 10^9 bytes a second of one link")
      .preset("smoke", {{"tokens", {number(0), number(4096)}}})
      .preset("laptop", {})
      .preset("paper", {})
      .implementation({.name = "predicted", .teaches = "arithmetic: bytes, devices and batches; nothing is run"})
      .expects(expect)
      .metric("parameters", "1", "of the model")
      .metric("state_bytes", "B", "weights, gradients and moments in fp32: weight, gradient and moment_bytes")
      .metric("token_bytes", "B", "that backward needs of a token: activation_bytes is that of all tokens")
      .metric("devices_decimal", "1", "that hold state and activations; devices_binary: with device_gb in GiB")
      .metric("filled_decimal", "1", "the same, not rounded up; filled_binary")
      .metric("shards_decimal", "1",
              "the least N for which a device holds its shard and half of its activations; shards_binary")
      .metric("tokens_without_room", "1", "on a device: from here on no N will do")
      .metric("alpha", "1", "C/W, operations a byte")
      .metric(
          "batch_overlapped", "1",
          "the least batch, in tokens of the whole mesh, that is bound by compute when both axes communicate at once")
      .metric("batch_serial", "1", "the same when one axis waits for the other")
      .metric("free_batch_overlapped", "1", "the same if X and Y could be any numbers; free_batch_overlapped_x, _y")
      .metric("free_batch_serial", "1", "alike")
      .runs(run_case);
}

SYSLAB_EXPERIMENT(communication_accounting, describe);

}  // namespace
}  // namespace syslab::experiment_communication_accounting
