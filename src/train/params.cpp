#include "train/params.hpp"

#include "model/sizes_in_words.hpp"
#include "train/peak_memory.hpp"

namespace syslab::train {
namespace {

using model::Precision;
using model::Variant;

Value text(std::string_view value) { return std::string(value); }
Value number(std::int64_t value) { return value; }

// As any size of a model: tokens of a step and what is predicted of them are counted in 63 bits.
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;

}  // namespace

std::vector<Axis> param_list() {
  std::vector<Value> models, more;
  std::string help = "sizes by name";  // and a line for each name
  for (const model::NamedModel& one : model::named_models()) {
    const bool asked =
        one.name == "small" || one.name == "medium" || one.name == "large" || one.name == "xl25" || one.name == "xl26";
    (asked ? models : more).push_back(text(one.name));
    help += "\n" + one.name + ": " + model::sizes_in_words(one.config);
  }
  more.push_back(text("2.7B"));
  std::vector<Value> precisions;
  for (const Precision one : {Precision::fp32, Precision::tf32, Precision::bf16_amp, Precision::bf16_fused}) {
    precisions.push_back(text(to_string(one)));
  }
  return {
      {"model", models, help, true, more, {{"xl", {{"2025", text("xl25")}, {"2026", text("xl26")}}}}},
      {"batch", {number(4)}, "sequences of a step", false, {}},
      {"context", {number(128), number(256), number(512), number(1024)}, "tokens of a sequence", false, {}},
      {"precision", precisions, "dtypes of weights, activations and products", true, {text("fp16_amp"), text("fp64")}},
      {"mode", {text("train")}, "how far a step goes", true, {text("forward"), text("forward_backward")}},
      {"d_model", {number(0)}, "width of the residual stream instead of the model's; 0: the model's own", false, {}},
      {"d_ff", {number(0)}, "width of the feed-forward layers, alike", false, {}},
      {"layers", {number(0)}, "blocks, alike", false, {}},
      {"heads", {number(0)}, "heads of attention, alike", false, {}},
      {"vocab", {number(0)}, "tokens to tell apart, alike", false, {}}};
}

WorkloadOptions workload_from(const Params& params, const Rung& rung) {
  WorkloadOptions options;
  options.config = model::find_model(params.text("model"));
  const auto own_size = [&params](const char* axis, std::int64_t& size) {
    if (const std::int64_t asked = params.integer(axis); asked != 0) size = asked;
  };
  own_size("d_model", options.config.d_model);
  own_size("d_ff", options.config.d_ff);
  own_size("layers", options.config.layers);
  own_size("heads", options.config.heads);
  own_size("vocab", options.config.vocab);
  options.batch = params.integer("batch");
  options.seq = options.config.context = params.integer("context");
  options.model.precision = model::parse_precision(params.text("precision"));
  options.model.variant = rung.variant;
  options.mode = parse_mode(params.text("mode"));
  options.optimizer.adamw = adamw_options_of(options.config);
  validate(options.config);
  if (options.batch < 1 || options.batch > kLargestBatch) {
    throw Error(ErrorKind::usage, "batch is " + std::to_string(options.batch) + "; it must be between 1 and " +
                                      std::to_string(kLargestBatch));
  }
  return options;
}

double flops(const WorkloadOptions& options) {
  const double forward = model::forward_flops(options.config, options.batch, options.seq);
  return options.mode == Mode::forward ? forward
                                       : forward + model::backward_flops(options.config, options.batch, options.seq);
}

double flops_by_axes(const Params& params) { return flops(workload_from(params, ladder().back())); }

StepBytes predicted_parts(const WorkloadOptions& options) {
  const PeakBytes peak =
      predicted_peak(options, options.mode == Mode::forward ? MemoryPass::forward_kept : MemoryPass::step);
  const model::DTypes dtypes = dtypes_of(options.model.precision, options.model.variant);
  const double parameters = static_cast<double>(model::parameter_count(options.config));
  StepBytes made;
  made.weights = parameters * static_cast<double>(size_of(dtypes.weights));
  const bool has_copy = dtypes.weights_copy && !model::splits_weights(needed(options));  // halves have theirs in them
  made.copy = has_copy ? parameters * static_cast<double>(size_of(*dtypes.weights_copy)) : 0;
  made.gradients = peak.gradients;
  made.moments = options.mode == Mode::train ? peak.optimizer : 0;
  made.kept = most_kept_by_blocks(options);
  made.head = peak.total() - peak.optimizer - peak.gradients - made.weights - made.copy - made.kept;
  return made;
}

double predicted_bytes(const WorkloadOptions& options) { return predicted_parts(options).total(); }

double predicted_bytes_by_axes(const Params& params, std::string_view rung) {
  return predicted_bytes(workload_from(params, find_rung(rung)));
}

}  // namespace syslab::train
