#include "train/optimizer.hpp"

#include <cstddef>
#include <new>

#include "device/cuda/nvtx.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::train {
namespace {

using device::MemoryCategory;
using model::Plane;

}  // namespace

adamw::Options adamw_options_of(const model::ModelConfig& config) {
  adamw::Options options;
  options.decay_order = config.handout == model::Handout::y2025 ? adamw::DecayOrder::after : adamw::DecayOrder::before;
  return options;
}

Optimizer::Optimizer(model::Transformer& model, const OptimizerOptions& options)
    : model_(model),
      options_(options),
      norm_({"gradient_norm", model.dtypes().statistics, {1}}, model.stream(), MemoryCategory::optimizer),
      factor_({"clip_factor", model.dtypes().statistics, {1}}, model.stream(), MemoryCategory::optimizer),
      non_finite_(sizeof(std::int64_t), "non_finite", model.stream(), MemoryCategory::optimizer),
      numbers_(sizeof(Numbers), "step_numbers", model.stream(), MemoryCategory::optimizer),
      staged_(device::Buffer::pinned(sizeof(Numbers), "step_numbers", device::place_of(model.stream()))),
      copied_(device::place_of(model.stream())) {
  static_cast<void>(adamw::scalars_of(options.adamw, 1));  // throws on options that make no sense
}

void Optimizer::begin_step(double learning_rate, double loss_scale, double unscale) {
  copied_.synchronize();  // the numbers of the step before have been copied out of the staging memory
  ++steps_;
  adamw::Options options = options_.adamw;
  options.lr = learning_rate;
  new (staged_.data()) Numbers{adamw::scalars_of(options, steps_, unscale), loss_scale, unscale,
                               static_cast<float>(loss_scale), static_cast<float>(unscale)};
  device::copy(numbers_.data(), staged_.data(), sizeof(Numbers), model_.stream());
  copied_.record(model_.stream());
}

ConstTensorView Optimizer::number(std::size_t f64_offset, std::size_t f32_offset) const {
  const DType dtype = model_.dtypes().statistics;
  const std::size_t offset = dtype == DType::f64 ? f64_offset : f32_offset;
  return {static_cast<const std::byte*>(numbers_.data()) + offset, dtype, {1}};
}

ConstTensorView Optimizer::loss_scale() const {
  return number(offsetof(Numbers, loss_scale_f64), offsetof(Numbers, loss_scale_f32));
}

ConstTensorView Optimizer::unscale() const {
  return number(offsetof(Numbers, unscale_f64), offsetof(Numbers, unscale_f32));
}

const float* Optimizer::queue_norm(const ConstTensorView& losses) {
  const model::Kernels& kernels = model_.kernels();
  const TensorView gradients = model_.parameters().whole(Plane::gradient);
  const float* clip = nullptr;
  if (has_norm()) {
    const bool counts_losses = options_.skip_non_finite && losses.data != nullptr;
    if (counts_losses) {  // norm and factor are the gradients' after them
      const global_norm::Problem of_losses{losses.elements(), losses.dtype};
      const model::Scratch scratch(kernels.global_norm->workspace_bytes(of_losses), model_.stream());
      kernels.global_norm->norm(
          of_losses,
          {.g = losses, .norm = norm_, .factor = factor_, .non_finite = static_cast<std::int64_t*>(non_finite_.data())},
          scratch, model_.stream());
    }
    const global_norm::Problem problem{gradients.elements(), gradients.dtype};
    const model::Scratch scratch(kernels.global_norm->workspace_bytes(problem), model_.stream());
    global_norm::NormArgs args{.g = gradients,
                               .norm = norm_,
                               .factor = factor_,
                               .non_finite = static_cast<std::int64_t*>(non_finite_.data()),
                               .grad_scale = unscale()};
    args.add_to_count = counts_losses;
    if (options_.max_norm) args.max_norm = *options_.max_norm;
    {
      const device::NvtxRange range("global_norm", device::RangeKind::kernel, model_.stream(),
                                    kernels.global_norm->name);
      kernels.global_norm->norm(problem, args, scratch, model_.stream());
    }
    // In one kernel with the update if that can read the factor; otherwise as an operation of its own.
    if (options_.max_norm && kernels.joined && factor_.view().dtype == DType::f32) {
      clip = factor_.view().as<float>();
    } else if (options_.max_norm) {
      const device::NvtxRange range("clip", device::RangeKind::kernel, model_.stream(), kernels.global_norm->name);
      kernels.global_norm->scale(problem, {gradients, factor_}, model_.stream());
    }
  }
  return clip;
}

void Optimizer::queue(const ConstTensorView& losses) {
  model::ParameterArena& arena = model_.parameters();
  const float* clip = queue_norm(losses);
  const TensorView gradients = arena.whole(Plane::gradient);
  if (arena.splits()) {
    update(arena.whole(Plane::copy), gradients, arena.whole(Plane::first_moment), arena.whole(Plane::second_moment), {},
           clip, arena.whole(Plane::low));
    return model_.refresh_weights_copy();
  }
  if (model_.kernels().joined) {
    const bool has_copy = arena.has(Plane::copy);
    return update(arena.whole(Plane::weight), gradients, arena.whole(Plane::first_moment),
                  arena.whole(Plane::second_moment), has_copy ? arena.whole(Plane::copy) : TensorView{}, clip);
  }
  for (int index = 0; index < arena.layout().size(); ++index) {
    update(arena.view(Plane::weight, index), arena.view(Plane::gradient, index), arena.view(Plane::first_moment, index),
           arena.view(Plane::second_moment, index), {}, clip);  // only the next forward pass needs the copy
  }
}

void Optimizer::update(const TensorView& p, const TensorView& g, const TensorView& m, const TensorView& v,
                       const TensorView& copy, const float* clip, const TensorView& low) {
  adamw::Problem problem{.elements = p.elements(), .dtype = m.dtype, .split = low.data != nullptr};
  if (copy.data != nullptr) problem.copy_dtype = copy.dtype;
  const auto flat = [](const TensorView& tensor) { return TensorView(tensor.data, tensor.dtype, {tensor.elements()}); };
  const device::NvtxRange range("adamw", device::RangeKind::kernel, model_.stream(), model_.kernels().adamw->name);
  model_.kernels().adamw->step(problem,
                               {.p = flat(p),
                                .m = flat(m),
                                .v = flat(v),
                                .g = flat(g),
                                .copy = copy.data != nullptr ? flat(copy) : TensorView{},
                                .scalars = scalars(),
                                .clip = clip,
                                .non_finite = skips_on(),
                                .low = low},
                               model_.stream());
}

}  // namespace syslab::train
