#include "parallel/zero/parameters.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/nvtx.hpp"
#include "parallel/moves.hpp"

namespace syslab::parallel {
namespace {

using model::Plane;

model::ParameterArena arena_of(const comm::Communicator& ranks, const model::ModelConfig& config,
                               const model::TransformerOptions& options, Sharding sharding, device::Stream compute) {
  const model::DTypes dtypes = model::dtypes_of(options.precision, options.variant);
  return {model::ParameterLayout(config, model::kAlignedElements * ranks.size()),
          {.dtype = dtypes.weights,
           .copy_dtype = dtypes.weights_copy,
           .gradients = sharding == Sharding::zero1,
           .moments = false},
          compute};
}

}  // namespace

GradientPieces bracket_pieces(const model::ParameterLayout& layout, DType dtype) {
  std::vector<Piece> pieces;
  for (const int index : layout.arena_order()) {
    if (layout.bracket(index).front() != index) continue;
    pieces.push_back({layout.info(index).name, layout.offset(index), layout.bracket_shape(index).elements()});
  }
  return {std::move(pieces), dtype};
}

std::optional<RoundedGradients> rounded_gradients(const model::ParameterLayout& layout, const model::DTypes& dtypes,
                                                  const ZeroModelOptions& options, int ranks) {
  const std::optional<DType> wire = options.sync.wire;
  if (!wire || *wire == dtypes.weights || ranks == 1) return std::nullopt;
  RoundedGradients made{.dtype = *wire, .written = {}};
  const bool whole = options.sharding == Sharding::zero2 || options.parts == 1;
  if (*wire != dtypes.product || !whole) return made;
  int piece = 0;
  for (const int index : layout.arena_order()) {
    if (layout.bracket(index).front() != index) continue;
    if (model::read_by_products(layout.info(index).kind)) made.written.push_back(piece);
    ++piece;
  }
  return made;
}

ZeroParameters::ZeroParameters(comm::Communicator& ranks, const model::ModelConfig& config,
                               const model::TransformerOptions& model, const ZeroModelOptions& options,
                               device::Stream compute, device::Stream communication)
    : ranks_(ranks),
      options_(options),
      kernels_(model::kernels_of(config, model.precision, model.variant, attention::where_of(compute))),
      compute_(compute),
      arena_(arena_of(ranks, config, model, options.sharding, compute)),
      piece_of_(static_cast<std::size_t>(arena_.layout().size()), -1) {
  const model::ParameterLayout& layout = arena_.layout();
  int next = -1;
  for (const int index : layout.arena_order()) {
    if (layout.bracket(index).front() == index) ++next;
    piece_of_[static_cast<std::size_t>(index)] = next;
    tensors_.push_back({layout.info(index).name, layout.offset(index), layout.info(index).shape.elements()});
  }
  const TensorView weights = arena_.whole(Plane::weight);
  WeightsCopy copy;
  if (arena_.has(Plane::copy)) {
    copy.values = arena_.whole(Plane::copy);
    for (const int index : layout.arena_order()) {
      if (layout.bracket(index).front() == index && !model::read_by_products(layout.info(index).kind)) {
        copy.read_in_full.push_back(piece_of_[static_cast<std::size_t>(index)]);
      }
    }
  }
  GradientPieces pieces = bracket_pieces(layout, weights.dtype);
  std::optional<RoundedGradients> rounded =
      rounded_gradients(layout, model::dtypes_of(model.precision, model.variant), options, ranks.size());
  const DType wire = rounded ? rounded->dtype : weights.dtype;
  const ZeroOptions zero{.sharding = options.sharding,
                         .schedule = schedule_of(options.sync, pieces.as(wire)),
                         .rounded = std::move(rounded),
                         .slots = options.slots,
                         .poison = options.poison,
                         .observer = options.sync.observer};
  sync_ = std::make_unique<ZeroSync>(ranks, std::move(pieces), weights,
                                     arena_.has(Plane::gradient) ? arena_.whole(Plane::gradient) : TensorView{}, zero,
                                     communication, std::move(copy));
  std::vector<OwnedStretch> own;
  std::vector<ConstTensorView> gradients;
  for (int bucket = 0; bucket < sync_->buckets(); ++bucket) {
    own.push_back({sync_->weight_slice(bucket), sync_->gradient_slice(bucket), sync_->copy_slice(bucket)});
    gradients.push_back(sync_->gradient_slice(bucket));
  }
  moments_ = std::make_unique<OwnedUpdate>(std::move(own), *kernels_.adamw, compute);
  norm_ = std::make_unique<ShardNorm>(ranks, *kernels_.global_norm, std::move(gradients), weights.dtype, compute,
                                      communication);
}

void ZeroParameters::refresh_copy() {
  if (!arena_.has(Plane::copy)) return;
  if (!sync_->whole()) {
    throw Error(ErrorKind::usage,
                "a copy cannot be made of weights that came from other ranks as copies: call gather_weights() first");
  }
  const auto flat = [](const TensorView& view) { return TensorView(view.data, view.dtype, {1, view.elements()}); };
  const TensorView from = flat(arena_.whole(Plane::weight)), to = flat(arena_.whole(Plane::copy));
  kernels_.elementwise->cast({1, from.elements()}, {from, to}, compute_);
}

ConstTensorView ZeroParameters::weights(int parameter) const {
  sync_->needed(piece_of_[static_cast<std::size_t>(parameter)], compute_);
  return arena_.weights(parameter);
}

// The first stage communicates only in the last part of a step, the second in every part.
void ZeroParameters::begin_pass(device::Stream compute) const {
  if (open_) return;
  open_ = true;
  const bool last = options_.sharding == Sharding::zero1 || part_ + 1 == options_.parts;
  ZeroSync::SliceUpdate update;
  if (last && in_turn_ != nullptr) {
    update = [this](int bucket, device::Stream stream) {
      const device::NvtxRange range("adamw", device::RangeKind::kernel, stream, kernels_.adamw->name);
      moments_->queue_one(bucket, in_turn_->scalars(), nullptr, nullptr, stream);
    };
  }
  sync_->begin(compute, part_ > 0, std::move(update));
}

void ZeroParameters::update_by(const train::Optimizer& optimizer) {
  if (optimizer.has_norm()) {
    throw Error(ErrorKind::usage,
                "slices are to be updated in turn, before all gradients are there, and the optimizer clips or skips by "
                "all of them: update at the end of the step, or neither clip nor skip");
  }
  in_turn_ = &optimizer;
}

model::GradientPlace ZeroParameters::gradient(int parameter, bool add) const {
  const int piece = piece_of_[static_cast<std::size_t>(parameter)];
  if (options_.sharding == Sharding::zero1 && !sync_->is_written_rounded(piece)) return arena_.gradient(parameter, add);
  begin_pass(compute_);
  const TensorView place = sync_->gradient(piece, compute_);
  return {{place.data, place.dtype, arena_.layout().bracket_shape(parameter)}, add};
}

void ZeroParameters::grad_final(int parameter, device::Stream compute) {
  if (arena_.layout().bracket(parameter).back() != parameter) return;
  begin_pass(compute);
  const int piece = piece_of_[static_cast<std::size_t>(parameter)];
  sync_->grad_final(piece, compute);
  if (piece + 1 < sync_->pieces().size() || options_.sharding == Sharding::zero1 || ++part_ == options_.parts) return;
  sync_->finish_part();
  open_ = false;
}

void ZeroParameters::update(train::Optimizer& optimizer, const ConstTensorView& losses, device::Stream compute) {
  sync_->finish(compute);
  open_ = false;
  part_ = 0;
  if (in_turn_ != nullptr) return;
  const train::OptimizerOptions& asked = optimizer.options();
  const train::Optimizer::NormPlaces places = optimizer.norm_places();
  const float* clip = nullptr;
  if (optimizer.has_norm()) {
    const device::NvtxRange range("global_norm", device::RangeKind::kernel, compute, kernels_.global_norm->name);
    ShardNorm::Places wanted{.norm = places.norm,
                             .factor = places.factor,
                             .non_finite = places.non_finite,
                             .grad_scale = optimizer.unscale(),
                             .losses = asked.skip_non_finite ? losses : ConstTensorView{}};
    if (asked.max_norm) wanted.max_norm = *asked.max_norm;
    norm_->queue(wanted, compute);
    if (asked.max_norm && places.factor.dtype != DType::f32) {
      throw Error(ErrorKind::usage, "clipping of sharded gradients is in fp32: ask for another precision, or for none");
    }
    if (asked.max_norm) clip = places.factor.as<float>();
  }
  const device::NvtxRange range("adamw", device::RangeKind::kernel, compute, kernels_.adamw->name);
  for (int bucket = sync_->buckets(); bucket-- > 0;) {
    moments_->queue_one(bucket, optimizer.scalars(), clip, optimizer.skips_on(), compute);
    sync_->updated(bucket, compute);
  }
}

}  // namespace syslab::parallel
