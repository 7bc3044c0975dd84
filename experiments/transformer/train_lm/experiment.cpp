// train_lm: a small model learns a text, in every precision; the question is in README.md in this folder.
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "core/files/temporary_folder.hpp"
#include "core/files/user_file.hpp"
#include "core/resources.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "measure/clock.hpp"
#include "model/against_reference.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "stats/summary.hpp"
#include "train/checkpoint.hpp"
#include "train/measured_step.hpp"
#include "train/params.hpp"
#include "train/training_run.hpp"
#include "worker/cases/bench.hpp"
#include "worker/cases/step_case.hpp"

namespace syslab::experiment_train_lm {
namespace {

using registry::number;
using registry::text;

constexpr std::int64_t kValidationBatches = 16;
constexpr const char* kOwnPages = "pages";  // the value of the axis `text`

std::optional<std::string> refusal(const Params& params, std::string_view implementation) {
  if (params.text("mode") != to_string(train::Mode::train)) {
    return "a text is learned by steps with an update: mode=train";
  }
  return train::refusal_by_axes(params, implementation);
}

train::RunOptions options_from(const Params& params, const train::Rung& rung) {
  const train::WorkloadOptions workload = train::workload_from(params, rung);
  train::RunOptions options;
  options.config = workload.config;
  options.model = workload.model;
  options.model.deterministic = true;  // a run that is resumed ends with the bits of one that went through
  options.batch = workload.batch;
  options.seq = workload.seq;
  options.steps = params.integer("steps");
  options.schedule = {.largest = params.number("lr"),
                      .smallest = params.number("lr") / 10,
                      .warmup = params.integer("lr_warmup"),
                      .cycle = options.steps};
  if (options.steps < 1) {
    throw Error(ErrorKind::usage, fmt::format("steps is {}; it must be at least 1", options.steps));
  }
  if (!(params.number("lr") >= 0)) {
    throw Error(ErrorKind::usage, fmt::format("lr is {}; it must not be negative", params.number("lr")));
  }
  options.adamw = workload.optimizer.adamw;
  options.max_norm = params.number("max_norm");
  options.seed = static_cast<std::uint64_t>(params.integer("seed"));
  validate(options.schedule);
  return options;
}

// The text pages embedded in this program, as a file that is deleted once it is mapped.
train::TokenFile own_pages() {
  const TemporaryFolder folder;
  const std::filesystem::path path = std::filesystem::path(folder.path()) / "pages";
  std::ofstream file(path, std::ios::binary);
  for (const Resource& page : resources("docs/")) file << page.text;
  if (!file.flush()) {
    const int error = errno;  // of the write that failed: none came after it
    throw Error(kind_of_write_error(error, ErrorKind::config),
                fmt::format("cannot write '{}' to learn from; set TMPDIR to a folder that you may "
                            "write, on a disk that is not full",
                            path.string()));
  }
  train::TokenFile text(path, train::TokenFormat::bytes);
  text.call_it(kOwnPages);
  return text;
}

train::TokenFile text_of(const Params& params) {
  const std::string& name = params.text("text");
  return name == kOwnPages ? own_pages() : train::TokenFile(name);
}

std::vector<StepCheck> against_reference(const train::RunOptions& options, device::Stream stream) {
  std::vector<StepCheck> checks;
  for (const StepCheck& one : model::against_reference(options.config, options.model, stream, options.seed)) {
    checks.push_back({one.name, one.error, one.tolerance, one.message});
  }
  return checks;
}

// The last tenth of the losses: one batch's is noisy.
double late_loss(const std::vector<double>& losses) {
  const std::size_t n = std::max<std::size_t>(1, losses.size() / 10);
  return std::accumulate(losses.end() - static_cast<std::ptrdiff_t>(n), losses.end(), 0.0) / static_cast<double>(n);
}

// Why a loss that is not below ln V accuses nobody: a right program would end there, too. Empty: it would not. A step
// of AdamW moves a weight by about the rate. A logit is a sum of d_model products of a weight and a value of about 1,
// so it moves by about rate · d_model, and must move by about ln V for the loss to come near the frequencies' loss.
std::string why_nothing_is_learned(const train::RunOptions& options, double unigram_entropy) {
  constexpr double kLargestRate = 1e-2, kLeastToLearn = 1, kAboveEpsilon = 100;
  constexpr std::int64_t kLeastTokens = 64, kLeastWidth = 32;
  const double uniform = std::log(static_cast<double>(options.config.vocab));
  const auto width = static_cast<double>(options.config.d_model);
  if (options.config.d_model < kLeastWidth) return fmt::format("a model of width {} may not", options.config.d_model);
  if (options.schedule.largest > std::min(kLargestRate, 1 / width)) {
    return fmt::format("at a rate of {} it may not settle", options.schedule.largest);
  }
  double travelled = 0;
  for (std::int64_t step = 0; step < options.steps; ++step) travelled += options.schedule.at(step) * width;
  if (travelled < uniform) return "its steps are too few or too small";
  if (options.batch * options.seq < kLeastTokens) {
    return fmt::format("{} of a step are mostly noise", counted(options.batch * options.seq, "token"));
  }
  if (uniform - unigram_entropy < kLeastToLearn) return "the frequencies of the text's tokens tell too little";
  // Under a norm as small as this AdamW's epsilon is what divides a gradient, and weights stay where they are.
  const double weights = static_cast<double>(model::parameter_count(options.config));
  if (options.max_norm < kAboveEpsilon * options.adamw.eps * std::sqrt(weights)) {
    return fmt::format("gradients of norm {} vanish beside AdamW's epsilon", options.max_norm);
  }
  return "";
}

// A run that learned nothing ends where it began. Of a resumed run, too: its beginning was behind it.
void check_learned(worker::CaseContext& context, double loss, double uniform, const std::string& why_not) {
  worker::CheckRecord check;
  check.name = "learned";
  check.cases_run = 1;
  check.worst_error = loss;
  check.tolerance = uniform;
  check.outcome = loss < uniform ? Outcome::passed : why_not.empty() ? Outcome::falsified : Outcome::not_run;
  check.message = fmt::format("a loss of {:.4g} over the last tenth of the steps; knowing nothing costs ln V = {:.4g}",
                              loss, uniform);
  if (check.outcome == Outcome::not_run) check.message += "; whether it learns was not judged: " + why_not;
  context.emit(check);
  if (check.outcome == Outcome::falsified) throw worker::CheckFailed(check.message);
}

class Curves {
 public:
  explicit Curves(std::int64_t first) : first_(first) {}
  void add(const train::RunStep& step, double seconds) {
    if (step.skipped) {
      ++skipped_;
      return;
    }
    losses_.push_back(step.loss);
    norms_.push_back(step.gradient_norm);
    seconds_.push_back(seconds);
  }
  const std::vector<double>& losses() const { return losses_; }

  void tell(worker::CaseContext& context, double tokens) const {
    for (const auto& [name, unit, values] :
         {std::tuple{"loss", "1", &losses_}, {"gradient_norm", "1", &norms_}, {"step", "s", &seconds_}}) {
      worker::SampleRecord record{.series = name, .unit = unit};
      record.first_index = first_;
      record.values = *values;
      context.emit(record);
    }
    const stats::Summary times = stats::summarize(seconds_);
    context.emit(worker::MetricRecord{.name = "time",
                                      .unit = "s",
                                      .value = times.median,
                                      .n = times.n,
                                      .note = "steps of a run are no samples of one quantity: no interval"});
    context.metric("tokens_per_second", "1/s", tokens / times.median);
    context.metric("first_loss", "1", losses_.front());
    context.metric("loss", "1", late_loss(losses_));
    context.metric("skipped_steps", "1", static_cast<double>(skipped_));
    context.metric("first_step", "1", static_cast<double>(first_));
  }

 private:
  std::int64_t first_, skipped_ = 0;
  std::vector<double> losses_, norms_, seconds_;
};

void learn(worker::CaseContext& context, train::TrainingRun& run, Curves& curves) {
  const std::string& path = context.params().text("checkpoint");
  const std::int64_t every = context.params().integer("checkpoint_every");
  while (!run.is_done()) {
    const Nanoseconds began = measure::steady_clock().now();
    const train::RunStep step = run.next();
    curves.add(step, Seconds(measure::steady_clock().now() - began).count());
    if (step.step % 10 == 0) {
      context.progress(static_cast<double>(step.step) / static_cast<double>(run.options().steps),
                       fmt::format("step {}, loss {:.3f}", step.step, step.loss));
    }
    const bool due = every > 0 && run.state().step % every == 0 && !step.skipped;
    if (!path.empty() && (due || run.is_done())) run.save(path);
  }
}

void run_case(worker::CaseContext& context) {
  const train::Rung& rung = train::find_rung(context.request().implementation);
  if (context.is_paired()) throw Unsupported("a run ends somewhere; it is no call that can be repeated in bursts");
  const train::RunOptions options = options_from(context.params(), rung);
  if (const auto why = refusal(context.params(), rung.name)) throw Unsupported(*why);
  const std::string& path = context.params().text("checkpoint");
  if (!path.empty()) train::check_place(path);
  const worker::Bench bench(context.request(), rung.device);
  worker::emit_checks(context, against_reference(options, bench.stream()));

  const train::TokenFile text = text_of(context.params());
  train::TrainingRun run(options, text, bench.stream());
  if (!path.empty() && std::filesystem::exists(path)) run.resume(path);
  if (run.is_done()) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' holds all {} steps already; name another file, or remove it to begin anew", path,
                            options.steps));
  }
  Curves curves(run.state().step);
  const double before = run.validation_loss(kValidationBatches);
  try {
    learn(context, run, curves);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::check) throw worker::CheckFailed(error.what());
    throw;
  }
  curves.tell(context, static_cast<double>(options.batch * options.seq));
  const double after = run.validation_loss(kValidationBatches);
  context.metric("validation_before", "1", before);
  context.metric("validation_loss", "1", after);
  context.metric("bits_per_token", "bit", after / std::numbers::ln2);
  const double unigram_entropy = train::unigram_entropy(text, options.config.vocab);
  context.metric("unigram_entropy", "1", unigram_entropy);
  context.metric("parameters", "1", static_cast<double>(model::parameter_count(options.config)));
  Json facts{{"text_tokens", text.size()}, {"text_fingerprint", text.fingerprint()}};
  if (run.state().scaler) facts["loss_scale"] = run.state().scaler->scale;
  facts.update(bench.facts());
  context.emit(worker::FactRecord{json_text(facts)});
  check_learned(context, late_loss(curves.losses()), std::log(static_cast<double>(options.config.vocab)),
                why_nothing_is_learned(options, unigram_entropy));
}

// Error(usage) before anything runs, in the words of what would say it while it runs. Every token of a text of the
// user's is looked at by the run alone: that can take long.
void expect(const Params& params) {
  const train::RunOptions options = options_from(params, train::ladder().back());
  const train::TokenFile text = text_of(params);
  train::check_run(options, text);
  if (params.text("text") == kOwnPages) text.check(options.config.vocab);
  if (const std::string& path = params.text("checkpoint"); !path.empty()) train::check_place(path);
}

std::vector<registry::Metric> metrics() {
  return {{"loss", "1", "mean over the last tenth of the steps, in nats a token"},
          {"first_loss", "1", "of the first step"},
          {"validation_loss", "1", "over tokens that were kept back (the last tenth of the text), at the end"},
          {"validation_before", "1", "the same before the first step"},
          {"bits_per_token", "bit", "the validation loss over ln 2"},
          {"unigram_entropy", "1", "the loss of a model that knows only how often each token occurs"},
          {"time", "s", "median step, drawing and loading its batch and reading its loss included"},
          {"tokens_per_second", "1/s", "tokens of a step over that"},
          {"skipped_steps", "1", "fp16: whose gradients overflowed under the loss scale"},
          {"first_step", "1", "0, or where a resumed run went on"},
          {"parameters", "1", "of the model"}};
}

registry::Experiment describe() {
  const Values half_precisions{text("fp32"), text("tf32"), text("bf16_amp"), text("fp16_amp"), text("bf16_fused")};
  return registry::experiment("train_lm")
      .title("Training a small language model")
      .question(
          "Does a model trained by our forward, backward and optimizer learn a text, does each precision learn it as "
          "well as fp32, and does a run that was killed go on as if nothing had been?")
      .tags({"model", "training"})
      .axes(registry::axes_of(train::param_list(), {{"model", {text("cpu10m")}},
                                                    {"batch", {number(8)}},
                                                    {"context", {number(128)}},
                                                    {"vocab", {number(256)}},
                                                    {"precision", {text("fp32")}}}))
      .file_axis("text", {text(kOwnPages)},
                 "file to learn: text (a byte is a token), .bin of uint16, .npy; `pages`: this program's own")
      .axis("steps", {number(1000)}, "of the optimizer")
      .axis("lr", {1e-3}, "largest learning rate: linear warm-up, then a cosine down to a tenth")
      .axis("lr_warmup", {number(20)}, "steps of its warm-up")
      .axis("max_norm", {1.0}, "gradients are scaled down to this global norm")
      .axis("seed", {number(0)}, "of weights and batches")
      .file_axis("checkpoint", {text("")},
                 "safetensors file: written at the end, gone on from where it is there; empty: none")
      .axis("checkpoint_every", {number(0)}, "steps between two writings of it; 0: at the end alone")
      .preset("smoke", {{"model", {text("tiny")}},
                        {"batch", {number(4)}},
                        {"context", {number(32)}},
                        {"steps", {number(30)}},
                        {"lr", {1e-2}},
                        {"lr_warmup", {number(3)}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", registry::names_of(train::ladder(), {"host_eager"})}})
      .preset("laptop", {{"d_model", {number(128)}},
                         {"d_ff", {number(384)}},
                         {"layers", {number(2)}},
                         {"context", {number(64)}},
                         {"steps", {number(400)}},
                         {"lr", {3e-3}},
                         {"device", {text("cpu")}},
                         {"impl", {text("host")}}})
      .preset("paper", {{"precision", half_precisions}, {"impl", {text("fused"), text("graph")}}})
      .implementations(registry::implementations_of(train::ladder()))
      .expects(expect)
      .refuses(refusal)
      .metrics(metrics())
      .flops(train::flops_by_axes)
      .memory([](const Params& params, std::string_view implementation) {
        const train::Rung& rung = train::find_rung(implementation);
        static_cast<void>(options_from(params, rung));  // what cannot be is told before anything runs
        return train::predicted_bytes(train::workload_from(params, rung));
      })
      .runs(run_case);
}

SYSLAB_EXPERIMENT(train_lm, describe);

}  // namespace
}  // namespace syslab::experiment_train_lm
