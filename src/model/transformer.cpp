#include "model/transformer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "device/queue.hpp"
#include "model/linear.hpp"

namespace syslab::model {
namespace {

ParameterArena arena_of(const ModelConfig& config, const TransformerOptions& options, const DTypes& dtypes,
                        device::Stream stream) {
  const bool own = options.source == nullptr;
  return ParameterArena(ParameterLayout(config),
                        {.dtype = dtypes.weights,
                         .copy_dtype = dtypes.weights_copy,
                         .weights = own,
                         .gradients = own && options.with_gradients,
                         .moments = own && options.with_moments,
                         .split = splits_weights(options)},
                        stream);
}

// A contiguous tensor as one row.
TensorView flat(const TensorView& tensor) { return {tensor.data, tensor.dtype, {1, tensor.elements()}}; }

std::string block_name(std::int64_t layer) { return fmt::format("layers.{}", layer); }

// Releases everything of a half-block that was run, except the stream.
void give_back(Activations::Block& block, bool is_attention) {
  NormSaved& norm = is_attention ? block.norm1 : block.norm2;
  norm.rstd = {};
  norm.normalized = {};
  if (is_attention) {
    block.attention = {};
  } else {
    block.feed_forward = {};
  }
}

// The gradient of a layer's output, in the dtype that its products read: under autocast a cast, otherwise the stream's
// own gradient.
class Arriving {
 public:
  Arriving(const PassContext& pass, const Tensor& dresidual) : view_(dresidual) {
    if (view_.dtype == pass.dtypes.product) return;
    cast_ = pass.tensor("dout", pass.dtypes.product, view_.shape);
    pass.cast(dresidual, cast_);
    view_ = cast_;
  }
  operator ConstTensorView() const { return view_; }  // NOLINT

 private:
  Tensor cast_;
  ConstTensorView view_;
};

}  // namespace

Transformer::Transformer(const ModelConfig& config, const TransformerOptions& options, device::Stream stream)
    : config_(config),
      options_(options),
      dtypes_(dtypes_of(options.precision, options.variant)),
      chosen_seq_(config.context),
      kernels_(choose_kernels(chosen_batch_, chosen_seq_, stream)),
      stream_(stream),
      parameters_(arena_of(config, options, dtypes_, stream)) {
  device::expect_plain(stream, "a model");
  if (!config.rope_theta) return;
  const Shape shape{config.context, config.head_dim() / 2};
  const TensorSpec cos{"rope.cos", dtypes_.statistics, shape}, sin{"rope.sin", dtypes_.statistics, shape};
  const Tensor host_cos(cos, {}, device::MemoryCategory::parameter),
      host_sin(sin, {}, device::MemoryCategory::parameter);
  rope::fill_tables(config.context, config.head_dim(), *config.rope_theta, host_cos, host_sin);
  cos_ = Tensor(cos, stream, device::MemoryCategory::parameter);
  sin_ = Tensor(sin, stream, device::MemoryCategory::parameter);
  device::copy_now(cos_.view().data, host_cos.view().data, cos.bytes(), stream);
  device::copy_now(sin_.view().data, host_sin.view().data, sin.bytes(), stream);
}

Kernels Transformer::choose_kernels(std::int64_t batch, std::int64_t seq, device::Stream stream) const {
  Kernels chosen = kernels_of(config_, options_.precision, options_.variant, attention::where_of(stream),
                              attention_wish(options_, batch, seq));
  chosen.keeps_all = model::keeps_all(options_);
  if (options_.plant) options_.plant(chosen);
  return chosen;
}

PassContext Transformer::pass(const Tokens& tokens) const {
  if (tokens.batch != chosen_batch_ || tokens.seq != chosen_seq_) {
    kernels_ = choose_kernels(tokens.batch, tokens.seq, stream_);
    chosen_batch_ = tokens.batch;
    chosen_seq_ = tokens.seq;
  }
  return {config_,
          kernels_,
          dtypes_,
          parameters_.layout(),
          source(),
          tokens.batch,
          tokens.seq,
          stream_,
          observer_ ? &observer_ : nullptr};
}

void Transformer::refresh_weights_copy() {
  if (!parameters_.has(Plane::copy)) return;
  if (parameters_.splits()) {
    const ParameterArena::Gains gains = parameters_.gains();
    const device::NvtxRange range("join", device::RangeKind::kernel, stream_, kernels_.elementwise->name);
    kernels_.elementwise->join(
        {gains.values.size(0), gains.values.size(1)},
        {parameters_.whole(Plane::copy), parameters_.whole(Plane::low), gains.offsets, gains.values}, stream_);
    return;
  }
  const auto cast = [this](const TensorView& from, const TensorView& to) {
    const device::NvtxRange range("cast", device::RangeKind::kernel, stream_, kernels_.elementwise->name);
    kernels_.elementwise->cast({1, from.elements()}, {flat(from), flat(to)}, stream_);
  };
  if (kernels_.joined) return cast(parameters_.whole(Plane::weight), parameters_.whole(Plane::copy));
  for (int index = 0; index < parameters_.layout().size(); ++index) {
    cast(parameters_.view(Plane::weight, index), parameters_.view(Plane::copy, index));
  }
}

Activations Transformer::forward(const Tokens& tokens, Keep keep) const {
  if (tokens.batch < 1 || tokens.seq < 1 || tokens.seq > config_.context) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} sequences of {} tokens for a model with a context of {}: at least one of each is wanted, "
                    "and no sequence beyond the context",
                    tokens.batch, tokens.seq, config_.context));
  }
  const PassContext pass = this->pass(tokens);
  const ParameterLayout& layout = parameters_.layout();
  Activations made;
  made.tokens = tokens;
  Tensor embedded = pass.tensor("embedding", dtypes_.residual, {pass.rows(), config_.d_model});
  pass.with_weights(layout.embedding(), [&](const ConstTensorView& table) {
    const embedding::Problem lookup{pass.rows(), config_.vocab, config_.d_model, table.dtype, dtypes_.residual};
    const Scratch scratch(kernels_.embedding->workspace_bytes(lookup, Pass::forward), stream_);
    const device::NvtxRange range = pass.call("embedding", *kernels_.embedding);
    kernels_.embedding->forward(lookup, {tokens.ids, table, embedded}, scratch, stream_);
  });
  pass.made("embedding", embedded);

  ResidualStream stream;
  stream.begins = std::move(embedded);
  std::vector<Activations::Block> blocks(static_cast<std::size_t>(config_.layers));
  const auto kept = [&](std::int64_t half) {
    return keep == Keep::nothing ? Kept::nothing : kept_of(options_.recompute, config_.layers, half);
  };
  const auto leave = [&](std::int64_t half) {  // the stream has gone on from there
    if (half >= 0 && kept(half) == Kept::nothing) norm_of(blocks, half).residual = {};
  };
  for (std::int64_t half = 0; half < 2 * config_.layers; ++half) {
    forward_half(pass, half, stream, blocks, Output::wanted);
    leave(half - 1);
    if (kept(half) != Kept::everything) give_back(blocks[static_cast<std::size_t>(half / 2)], half % 2 == 0);
  }
  residual_norm(pass, "ln_final", layout.ln_final(), stream, made.final_norm);
  leave(2 * config_.layers - 1);
  if (keep == Keep::activations) made.blocks = std::move(blocks);

  const device::NvtxRange range = pass.part("lm_head");
  made.logits = pass.tensor("logits", dtypes_.product, {pass.rows(), config_.vocab});
  pass.with_weights(layout.lm_head(),
                    [&](const ConstTensorView& w) { linear(pass, made.final_norm.normalized, w, made.logits); });
  pass.made("logits", made.logits);
  if (keep == Keep::nothing) made.final_norm = {};
  return made;
}

// A norm and the layer after it: computes the next delta, unless it is not needed, and all that a backward pass reads.
void Transformer::forward_half(const PassContext& pass, std::int64_t half, ResidualStream& stream,
                               std::vector<Activations::Block>& blocks, Output output) const {
  const std::int64_t layer = half / 2;
  const std::string name = block_name(layer);
  const device::NvtxRange range(name, device::RangeKind::layer);
  const LayerIndices index = parameters_.layout().layer(layer);
  Activations::Block& block = blocks[static_cast<std::size_t>(layer)];
  if (half % 2 == 0) {
    residual_norm(pass, name + ".ln1", index.ln1, stream, block.norm1);
    stream.delta =
        attention_forward(pass, name + ".attn", index, {cos_, sin_}, block.norm1.normalized, block.attention, output);
    if (!kernels_.keeps_all) block.norm1.normalized = {};
  } else {
    residual_norm(pass, name + ".ln2", index.ln2, stream, block.norm2);
    stream.delta = feed_forward(pass, name + ".ffn", index, block.norm2.normalized, block.feed_forward, output);
    if (!kernels_.keeps_all) block.norm2.normalized = {};
  }
  ++half_blocks_forward_;
}

void Transformer::prepare_loss(Activations& activations) const {
  const PassContext pass = this->pass(activations.tokens);
  activations.row_loss = pass.tensor("row_loss", dtypes_.statistics, {pass.rows()});
  activations.lse = pass.tensor("lse", dtypes_.statistics, {pass.rows()});
  activations.loss = pass.tensor("loss", dtypes_.statistics, {1});
}

void Transformer::loss(Activations& activations, const std::int64_t* targets) const {
  prepare_loss(activations);
  const PassContext pass = this->pass(activations.tokens);
  const cross_entropy::Problem problem{pass.rows(), config_.vocab, dtypes_.product};
  const Scratch scratch(kernels_.cross_entropy->workspace_bytes(problem, Pass::forward), stream_);
  const device::NvtxRange range = pass.call("cross_entropy", *kernels_.cross_entropy);
  kernels_.cross_entropy->forward(
      problem, {activations.logits, targets, activations.row_loss, activations.lse, activations.loss}, scratch,
      stream_);
  pass.made("loss", activations.loss);
}

void Transformer::loss_and_gradient(Activations& activations, const std::int64_t* targets,
                                    const ConstTensorView& scale) const {
  prepare_loss(activations);
  const PassContext pass = this->pass(activations.tokens);
  const cross_entropy::Problem problem{pass.rows(), config_.vocab, dtypes_.product};
  const Scratch scratch(kernels_.cross_entropy->workspace_bytes(problem, Pass::both), stream_);
  const device::NvtxRange range = pass.call("cross_entropy", *kernels_.cross_entropy);
  kernels_.cross_entropy->forward_backward(
      problem,
      {activations.logits, targets, scale, activations.row_loss, activations.lse, activations.loss, activations.logits},
      scratch, stream_);
  pass.made("loss", activations.loss);
  activations.has_gradient = true;
  pass.made("dlogits", activations.logits);
}

void Transformer::backward(Activations activations, const BackwardOptions& options) {
  if (activations.blocks.size() != static_cast<std::size_t>(config_.layers)) {
    throw Error(ErrorKind::usage, "a backward pass needs the activations of a forward pass that kept them");
  }
  if (!activations.has_gradient) {
    throw Error(ErrorKind::usage, "a backward pass needs the gradient of the logits: call loss_and_gradient() before");
  }
  PassContext pass = this->pass(activations.tokens);
  pass.add = options.add;
  pass.grad_final = &options.grad_final;
  const ParameterLayout& layout = parameters_.layout();

  Tensor dnormalized = pass.tensor("ln_final.dnormalized", dtypes_.product, {pass.rows(), config_.d_model});
  {
    const device::NvtxRange range = pass.part("lm_head");
    linear_weight_gradient(pass, activations.logits, activations.final_norm.normalized,
                           pass.gradient(layout.lm_head()));
    pass.with_weights(layout.lm_head(), [&](const ConstTensorView& w) {
      linear_input_gradient(pass, activations.logits, w, dnormalized);
    });
  }
  activations.logits = {};
  pass.gradient_final(layout.lm_head());

  Tensor dresidual;
  residual_norm_backward(pass, "ln_final", layout.ln_final(), std::move(activations.final_norm), dnormalized,
                         dresidual);
  dnormalized = {};

  for (std::int64_t half = 2 * config_.layers - 1; half >= 0; --half) {
    if (kept_of(options_.recompute, config_.layers, half) != Kept::everything) {
      const Segment segment = segment_of(options_.recompute, config_.layers, half);
      if (half + 1 == segment.end) recompute(pass, segment, activations.blocks);
    }
    backward_half(pass, half, activations.blocks[static_cast<std::size_t>(half / 2)], dresidual);
  }

  const embedding::Problem problem{pass.rows(), config_.vocab, config_.d_model, dtypes_.weights, dtypes_.residual};
  {
    const Scratch scratch(kernels_.embedding->workspace_bytes(problem, Pass::backward), stream_);
    const device::NvtxRange range = pass.call("embedding", *kernels_.embedding);
    const GradientPlace dtable = pass.gradient(layout.embedding());
    kernels_.embedding->backward(problem, {activations.tokens.ids, dresidual, dtable.view, dtable.add}, scratch,
                                 stream_);
  }
  pass.gradient_final(layout.embedding());
}

// Turns the stream's gradient after a layer into the gradient before the layer's norm.
void Transformer::backward_half(const PassContext& pass, std::int64_t half, Activations::Block& block,
                                Tensor& dresidual) const {
  const std::int64_t layer = half / 2;
  const std::string name = block_name(layer);
  const device::NvtxRange range(name, device::RangeKind::layer);
  const LayerIndices index = parameters_.layout().layer(layer);
  if (half % 2 == 0) {
    const Given given = [&] { return normalized_of(pass, name + ".ln1", index.ln1, block.norm1); };
    const Tensor dnormalized = attention_backward(pass, name + ".attn", index, {cos_, sin_}, given,
                                                  std::move(block.attention), Arriving(pass, dresidual));
    residual_norm_backward(pass, name + ".ln1", index.ln1, std::move(block.norm1), dnormalized, dresidual);
  } else {
    const Given given = [&] { return normalized_of(pass, name + ".ln2", index.ln2, block.norm2); };
    const Tensor dnormalized = feed_forward_backward(pass, name + ".ffn", index, given, std::move(block.feed_forward),
                                                     Arriving(pass, dresidual));
    residual_norm_backward(pass, name + ".ln2", index.ln2, std::move(block.norm2), dnormalized, dresidual);
  }
}

}  // namespace syslab::model
