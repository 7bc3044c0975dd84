#include "parallel/ddp/data_parallel_step.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/accounting.hpp"
#include "core/error.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/stream.hpp"
#include "parallel/model_pieces.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {

using model::Plane;

DataParallelStep::DataParallelStep(model::Transformer& model, comm::Communicator& ranks,
                                   const DataParallelOptions& options, std::int64_t batch, std::int64_t seq,
                                   device::Stream communication)
    : model_(model),
      ranks_(ranks),
      piece_of_parameter_(piece_of_parameter(model.parameters().layout())),
      zero_(options.zero),
      communication_(communication),
      sync_(zero_ != nullptr ? nullptr
                             : std::make_unique<GradientSync>(ranks, pieces_of(model.parameters()),
                                                              model.parameters().whole(Plane::gradient), options.sync,
                                                              communication)),
      shares_(shares_of(ranks, batch)),
      share_(shares_[static_cast<std::size_t>(ranks.rank())]),
      step_(model, step_options(options), batch, seq) {
  require_agreement(ranks, "what a step is made of",
                    fmt::format("{} parts\n{} tokens a row\nprecision {}\n{}\nsharding {}{}", options.parts, seq,
                                to_string(model.options().precision), text_of(options.optimizer),
                                to_string(zero_ != nullptr ? zero_->options().sharding : options.sharding),
                                zero_ != nullptr && zero_->options().in_turn ? ", updated in turn" : ""));
  if (options.sharding == Sharding::optimizer) divide(communication);
  if (zero_ != nullptr && zero_->options().in_turn) zero_->update_by(step_.optimizer());
  if (zero_ != nullptr) zero_->gather_weights(model.stream());
  device::synchronize(model.stream());
  for (const TensorView& plane : weights()) make_replicas(ranks, plane, communication);
  zero_ != nullptr ? zero_->refresh_copy() : model.refresh_weights_copy();
}

DataParallelStep::~DataParallelStep() {
  if (zero_ != nullptr) zero_->leave();  // queued updates read the optimizer's numbers
}

// Gives each parameter an owner, the only rank with its moments.
void DataParallelStep::divide(device::Stream communication) {
  const model::ParameterArena& arena = model_.parameters();
  std::vector<OptimizedParameter> all;
  for (const int index : arena.layout().arena_order()) {
    all.push_back(
        {arena.layout().info(index).name, arena.view(Plane::weight, index), arena.view(Plane::gradient, index)});
  }
  owners_ = std::make_unique<ParameterOwners>(ranks_, communication);
  std::vector<OwnedStretch> own;
  for (const OptimizedParameter& one : owners_->add(all, "AdamW")) own.push_back({one.weight, one.gradient});
  owned_ = std::make_unique<OwnedUpdate>(std::move(own), *model_.kernels().adamw, model_.stream());
}

train::StepOptions DataParallelStep::step_options(const DataParallelOptions& options) {
  const bool zero = zero_ != nullptr, owned = options.sharding == Sharding::optimizer;
  const bool misfit = zero ? options.sharding != Sharding::none || zero_->options().parts != options.parts ||
                                 model_.options().source != zero_
                           : options.sharding != Sharding::none && !owned;
  if (misfit) {
    throw Error(ErrorKind::usage,
                "zero1 and zero2 are asked for by DataParallelOptions::zero, of as many parts, which is the model's "
                "source; DataParallelOptions::sharding is none or optimizer");
  }
  train::StepOptions made{.optimizer = options.optimizer, .parts = options.parts, .loss_weight = share_};
  if (zero) {
    made.grad_final = [this](int parameter, device::Stream compute) { zero_->grad_final(parameter, compute); };
    made.update = [this](train::Optimizer& optimizer, const ConstTensorView& losses) {
      zero_->update(optimizer, losses, model_.stream());
    };
    made.parts_apart = zero_->options().sharding == Sharding::zero2;
    return made;
  }
  if (owned) {
    made.update = [this](train::Optimizer& optimizer, const ConstTensorView& losses) {
      update_owned(optimizer, losses);
    };
  }
  if (ranks_.size() == 1) return made;
  if (!owned && options.optimizer.skip_non_finite) {
    made.update = [this](train::Optimizer& optimizer, const ConstTensorView& losses) {
      optimizer.queue(of_all_ranks(losses));
    };
  }
  made.grad_final = [this](int parameter, device::Stream compute) {
    sync_->grad_final(piece_of_parameter_[static_cast<std::size_t>(parameter)], compute);
  };
  made.before_update = [this](device::Stream compute) { sync_->finish(compute); };
  return made;
}

// The losses of all ranks, the same on each: so all take the same decision to skip a step.
ConstTensorView DataParallelStep::of_all_ranks(const ConstTensorView& losses) {
  if (!losses_) losses_ = std::make_unique<SharedLosses>(ranks_, losses, model_.stream(), communication_);
  return losses_->sum(losses, model_.stream());
}

void DataParallelStep::update_owned(train::Optimizer& optimizer, const ConstTensorView& losses) {
  const bool skips = optimizer.options().skip_non_finite && ranks_.size() > 1;
  const float* clip = optimizer.queue_norm(skips ? of_all_ranks(losses) : losses);
  {
    const device::NvtxRange range("adamw", device::RangeKind::kernel, model_.stream(), model_.kernels().adamw->name);
    owned_->queue(optimizer.scalars(), clip, optimizer.skips_on(), model_.stream());
  }
  owners_->broadcast(model_.stream());
  if (model_.kernels().joined) model_.refresh_weights_copy();  // otherwise the next step begins with this
}

std::vector<TensorView> DataParallelStep::weights() const {
  const model::ParameterArena& arena = zero_ != nullptr ? zero_->arena() : model_.parameters();
  std::vector<TensorView> planes;
  for (const Plane plane : arena.planes_of_weights()) planes.push_back(arena.whole(plane));
  return planes;
}

HeldBytes DataParallelStep::held() const {
  const model::ParameterArena& arena = zero_ != nullptr ? zero_->arena() : model_.parameters();
  const bool splits = arena.splits();  // split weights contain their copy
  HeldBytes held{.weights = splits ? arena.bytes(Plane::copy) + arena.bytes(Plane::low) : arena.bytes(Plane::weight),
                 .copy = splits ? 0 : arena.bytes(Plane::copy),
                 .gradients = arena.bytes(Plane::gradient),
                 .moments = arena.bytes(Plane::first_moment) + arena.bytes(Plane::second_moment)};
  if (owned_) held.moments += owned_->bytes();
  if (sync_) held.gradients += sync_->wire_bytes();
  if (zero_ == nullptr) return held;
  held.gradients += zero_->sync().gradient_bytes();
  held.moments += zero_->moments().bytes();
  return held;
}

void DataParallelStep::load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets) {
  step_.load(part, ids, targets);
}

void DataParallelStep::begin(double learning_rate, double loss_scale) {
  told(ranks_, [&] {
    if (ranks_.size() > 1 && sync_) sync_->begin(model_.stream());
    step_.begin(learning_rate, loss_scale);
  });
}

void DataParallelStep::forward(int part) {
  told(ranks_, [&] { step_.forward(part); });
}

void DataParallelStep::backward(int part) {
  told(ranks_, [&] { step_.backward(part); });
}

void DataParallelStep::update() {
  told(ranks_, [&] { step_.update(); });
}

void DataParallelStep::run(double learning_rate, double loss_scale) {
  told(ranks_, [&] {
    if (ranks_.size() > 1 && sync_) sync_->begin(model_.stream());
    step_.run(learning_rate, loss_scale);
  });
}

DataParallelResult DataParallelStep::result() { return result_of(ranks_, step_, shares_); }

void DataParallelStep::check() {
  if (zero_ != nullptr) zero_->gather_weights(model_.stream());
  device::synchronize(communication_);
  zero_ != nullptr ? zero_->sync().check_bytes() : sync_->check_bytes();
  comm::check_accounting(ranks_);
  for (const TensorView& plane : weights()) require_replicas(ranks_, plane, model_.stream());
  if (zero_ != nullptr) zero_->check_copy(model_.stream());
}

}  // namespace syslab::parallel
