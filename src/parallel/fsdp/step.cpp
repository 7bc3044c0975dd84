#include "parallel/fsdp/step.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/accounting.hpp"
#include "core/error.hpp"
#include "core/index.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/fill_random.hpp"
#include "device/stream.hpp"
#include "model/initialise.hpp"
#include "parallel/moves.hpp"
#include "parallel/replicas.hpp"
#include "parallel/step_ranks.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;

TransformerParts parts_for(const model::ModelConfig& config, const model::TransformerOptions& options,
                           Granularity granularity) {
  return parts_of(model::ParameterLayout(config), model::dtypes_of(options.precision, options.variant),
                  options.recompute, granularity);
}

// What this rank adds to the norm: its shards; rank 0 also what is replicated.
std::vector<ConstTensorView> counted(const Fsdp& fsdp, int rank) {
  const std::int64_t sharded = fsdp.layout().sharded_elements();
  return {stretch(fsdp.gradients(), 0, rank == 0 ? fsdp.layout().elements() : sharded)};
}

}  // namespace

FsdpStepOptions fsdp_step_options(Granularity granularity) {
  FsdpStepOptions options{.granularity = granularity};
  options.fsdp.scatter.slots = granularity == Granularity::layer ? 2 : 4;
  return options;
}

ConstTensorView LentShards::weights(int parameter) const {
  const int tensor = parts_.replicated_of[at(parameter)];
  return tensor >= 0 ? fsdp_.replicated(tensor) : fsdp_.gathered().read(parts_.bracket_of[at(parameter)]);
}

void LentShards::done(int parameter) const {
  if (parts_.replicated_of[at(parameter)] < 0) fsdp_.gathered().done(parts_.bracket_of[at(parameter)]);
}

model::GradientPlace LentShards::gradient(int parameter, bool) const {
  const int tensor = parts_.replicated_of[at(parameter)];
  if (tensor >= 0) return {fsdp_.scattered().replicated(tensor), add_};
  return {fsdp_.scattered().place(parts_.bracket_of[at(parameter)]), false};
}

void LentShards::gradient_final(int parameter) const {
  if (parts_.replicated_of[at(parameter)] >= 0) return fsdp_.scattered().replicated_final();
  const int bracket = parts_.bracket_of[at(parameter)];  // −1: its bracket's first tensor stands for it
  if (bracket >= 0) fsdp_.scattered().final(bracket);
}

model::TransformerOptions FsdpStep::sourced(model::TransformerOptions options, const model::ParameterSource& source) {
  options.source = &source;
  return options;
}

FsdpStep::FsdpStep(const model::ModelConfig& config, const model::TransformerOptions& model, comm::Communicator& ranks,
                   const FsdpStepOptions& options, std::int64_t batch, std::int64_t seq, Stream compute,
                   Stream communication)
    : ranks_(ranks),
      compute_(compute),
      communication_(communication),
      options_(options),
      parts_(parts_for(config, model, options.granularity)),
      fsdp_(ranks, parts_.parts, options.fsdp, compute, communication),
      source_(fsdp_, parts_),
      model_(config, sourced(model, source_), compute),
      moments_({{fsdp_.weights(), fsdp_.gradients()}}, *model_.kernels().adamw, compute),
      shares_(shares_of(ranks, batch)),
      share_(shares_[at(ranks.rank())]),
      step_(model_, step_options(options), batch, seq) {
  require_agreement(ranks, "what a step is made of",
                    fmt::format("{} parts\n{} tokens a row\nprecision {}\n{}", options.parts, seq,
                                to_string(model.precision), text_of(options.optimizer)));
  if (options.optimizer.max_norm && parts_.parts.dtype == DType::f64) {
    throw Error(ErrorKind::usage, "clipping of sharded gradients in fp64: take fp32, or no limit of the norm");
  }
  if (step_.optimizer().has_norm()) {
    norm_.emplace(ranks, *model_.kernels().global_norm, counted(fsdp_, ranks.rank()), parts_.parts.dtype, compute,
                  communication);
  }
  device::synchronize(compute);
}

FsdpStep::~FsdpStep() {
  for (const Stream stream : {communication_, compute_}) {
    try {
      device::synchronize(stream);
    } catch (...) {  // earlier calls have reported the failure
    }
  }
}

train::StepOptions FsdpStep::step_options(const FsdpStepOptions& options) {
  train::StepOptions made{.optimizer = options.optimizer, .parts = options.parts, .loss_weight = share_};
  made.grad_final = [this](int parameter, Stream) { source_.gradient_final(parameter); };
  made.parts_apart = true;
  made.before_update = [this](Stream) { fsdp_.finish(); };
  made.update = [this](train::Optimizer& optimizer, const ConstTensorView& losses) { take_update(optimizer, losses); };
  return made;
}

void FsdpStep::take_update(train::Optimizer& optimizer, const ConstTensorView& losses) {
  const train::OptimizerOptions& asked = optimizer.options();
  const train::Optimizer::NormPlaces places = optimizer.norm_places();
  if (norm_) {
    ShardNorm::Places to{.norm = places.norm,
                         .factor = places.factor,
                         .non_finite = places.non_finite,
                         .grad_scale = optimizer.unscale()};
    if (asked.max_norm) to.max_norm = *asked.max_norm;
    if (asked.skip_non_finite) to.losses = losses;
    norm_->queue(to, compute_);
  }
  const device::NvtxRange range("adamw", device::RangeKind::kernel, compute_, model_.kernels().adamw->name);
  moments_.queue(optimizer.scalars(), asked.max_norm ? places.factor.as<float>() : nullptr, optimizer.skips_on(),
                 compute_);
}

FsdpBytes FsdpStep::bytes() const {
  const auto size = static_cast<std::int64_t>(size_of(parts_.parts.dtype));
  const auto plane = static_cast<std::size_t>(fsdp_.layout().elements() * size);
  return {.weights = plane,
          .gradients = fsdp_.shard_bytes() - plane,
          .moments = moments_.bytes(),
          .padding = 4 * fsdp_.layout().alignment() * size,
          .slots = fsdp_.slot_bytes()};
}

void FsdpStep::write(int parameter, std::int64_t first, const ConstTensorView& values) {
  const int tensor = parts_.replicated_of[at(parameter)];
  if (tensor >= 0) return fsdp_.write_replicated(tensor, first, values);
  fsdp_.write(parts_.matrix_of[at(parameter)], first, values);
}

void FsdpStep::initialise(std::uint64_t seed) {
  model::initialise(
      model_.parameters().layout(), seed,
      [this](int parameter, std::int64_t first, const ConstTensorView& values) { write(parameter, first, values); });
}

void FsdpStep::draw_weights(std::uint64_t seed) {
  const model::ParameterLayout& layout = model_.parameters().layout();
  const ShardLayout& shards = fsdp_.layout();
  for (int index = 0; index < layout.size(); ++index) {
    const model::ParameterInfo& info = layout.info(index);
    if (const int tensor = parts_.replicated_of[at(index)]; tensor >= 0) {
      const TensorView weight = stretch(fsdp_.replicated(tensor), 0, info.shape.elements());
      model_.kernels().elementwise->fill({1, weight.elements()}, {1.0, weight}, compute_);
      continue;
    }
    const int matrix = parts_.matrix_of[at(index)], rank = ranks_.rank();
    const std::int64_t own = shards.own_rows(matrix, rank) * info.shape[1];
    if (own == 0) continue;
    device::fill_random(stretch(fsdp_.weights(), shards.offset(matrix), own),
                        RandomStream::derive(seed, "workload", info.name, "weights"), Distribution::normal,
                        static_cast<float>(model::initial_sigma(info)),
                        static_cast<std::uint64_t>(rank * shards.chunk(matrix)), compute_);
  }
}

std::vector<double> FsdpStep::gather_now(int parameter) {
  const int tensor = parts_.replicated_of[at(parameter)];
  return tensor >= 0 ? fsdp_.read_replicated(tensor) : fsdp_.gather_now(parts_.matrix_of[at(parameter)]);
}

void FsdpStep::load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets) {
  step_.load(part, ids, targets);
}

void FsdpStep::begin(double learning_rate, double loss_scale) {
  told(ranks_, [&] { step_.begin(learning_rate, loss_scale); });
}

void FsdpStep::forward(int part) {
  told(ranks_, [&] {
    source_.begin_part(part > 0);
    fsdp_.begin(PassKind::training, part > 0);
    step_.forward(part);
  });
}

void FsdpStep::backward(int part) {
  told(ranks_, [&] {
    step_.backward(part);
    fsdp_.end();
  });
}

void FsdpStep::update() {
  told(ranks_, [&] { step_.update(); });
}

void FsdpStep::run(double learning_rate, double loss_scale) {
  begin(learning_rate, loss_scale);
  for (int part = 0; part < options_.parts; ++part) {
    forward(part);
    backward(part);
  }
  update();
}

model::Activations FsdpStep::evaluate(const model::Tokens& tokens) {
  std::optional<model::Activations> made;
  told(ranks_, [&] {
    fsdp_.begin(PassKind::forward);
    made = model_.forward(tokens, model::Keep::nothing);
    fsdp_.end();
  });
  return std::move(*made);
}

DataParallelResult FsdpStep::result() { return result_of(ranks_, step_, shares_); }

void FsdpStep::check() {
  device::synchronize(communication_);
  fsdp_.check_bytes();
  comm::check_accounting(ranks_);
  const std::int64_t sharded = fsdp_.layout().sharded_elements();
  require_replicas(ranks_, stretch(fsdp_.weights(), sharded, fsdp_.layout().elements() - sharded), compute_);
}

}  // namespace syslab::parallel
