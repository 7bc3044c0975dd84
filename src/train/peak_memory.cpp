#include "train/peak_memory.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "core/text/named.hpp"

namespace syslab::train {
namespace {

constexpr auto kMemoryPasses = std::to_array<Named<MemoryPass>>(
    {{MemoryPass::forward, "forward"}, {MemoryPass::forward_kept, "forward_kept"}, {MemoryPass::step, "step"}});

double bytes_of(DType dtype) { return static_cast<double>(size_of(dtype)); }

// Sizes of the tensors of a pass, in bytes.
class Sizes {
 public:
  explicit Sizes(const WorkloadOptions& options)
      : options_(options), dtypes_(dtypes_of(options.model.precision, options.model.variant)) {
    const model::ModelConfig& config = options.config;
    const double rows = static_cast<double>(options.batch * options.seq), d = static_cast<double>(config.d_model);
    keeps_all = model::keeps_all(options.model);
    residual = rows * d * bytes_of(dtypes_.residual);
    normalized = rows * d * bytes_of(dtypes_.normalized);
    hidden = rows * d * bytes_of(dtypes_.product);
    inner = rows * static_cast<double>(config.d_ff) * bytes_of(dtypes_.product);
    statistic = rows * bytes_of(dtypes_.statistics);
    lse = statistic * static_cast<double>(config.heads);
    logits = rows * static_cast<double>(config.vocab) * bytes_of(dtypes_.product);
    tokens = 2 * rows * 8;
    scores = static_cast<double>(options.batch * config.heads) * static_cast<double>(options.seq * options.seq);
    cast_residual = dtypes_.residual == dtypes_.product ? 0 : hidden;
    cast_normalized = dtypes_.normalized == dtypes_.product ? 0 : hidden;
    parameters = static_cast<double>(model::parameter_count(config));
    gains = static_cast<double>((2 * config.layers + 1) * config.d_model) * bytes_of(dtypes_.weights);
    ask_rungs();
  }

  double weights() const { return parameters * bytes_of(dtypes_.weights); }
  // Weights in halves have their copy in them, and the gains of norms once more.
  double copy() const {
    if (model::splits_weights(needed(options_))) return gains;
    return parameters * (dtypes_.weights_copy ? bytes_of(*dtypes_.weights_copy) : 0);
  }
  double rope_tables() const {
    if (!options_.config.rope_theta) return 0;
    return static_cast<double>(options_.config.context * options_.config.head_dim()) * bytes_of(dtypes_.statistics);
  }
  double norm() const { return residual + normalized + statistic; }
  // Tensors that are not kept (model::Kernels::keeps_all): made temporarily in the forward pass and again in the
  // backward pass.
  double normalized_again() const { return keeps_all ? 0 : normalized; }
  double gated_again() const { return keeps_all ? 0 : inner; }
  double kept_norm() const { return norm() - normalized_again(); }
  double kept_feed_forward() const { return feed_forward() - gated_again(); }
  double attention() const { return 4 * hidden + lse + kept; }
  // What attention holds in addition: its workspace while it works, then the output of its last product.
  double attention_output() const { return std::max(attention_forward, hidden); }
  double feed_forward() const { return 3 * inner; }
  double losses() const { return 2 * statistic + 2 * bytes_of(dtypes_.statistics); }

  bool keeps_all = false;
  double residual, normalized, hidden, inner, statistic, lse, logits, tokens, scores, cast_residual, cast_normalized,
      parameters, gains;
  double kept = 0;  // by the attention rung itself
  double attention_forward = 0, attention_backward = 0, swiglu_backward = 0, norm_backward = 0, loss_both = 0,
         loss_forward = 0;  // workspaces

 private:
  void ask_rungs() {
    attention::Problem problem;
    problem.batch = options_.batch;
    problem.heads_q = problem.heads_kv = options_.config.heads;
    problem.seq_q = problem.seq_k = options_.seq;
    problem.head_dim = options_.config.head_dim();
    problem.mask = attention::Mask::top_left;
    problem.dtype = dtypes_.product;
    const std::int64_t rows = options_.batch * options_.seq;
    try {
      const model::Kernels kernels =
          model::kernels_of(options_.config, options_.model.precision, options_.model.variant,
                            {device_of(), options_.sm}, attention_wish(options_.model, options_.batch, options_.seq));
      const auto bytes = [](std::size_t count) { return static_cast<double>(count); };
      const attention::AutogradRung& rung = kernels.attention;
      problem.tf32 = rung.tf32;
      kept = bytes(rung.saved_bytes(problem));
      attention_forward = bytes(rung.workspace_bytes(problem, Pass::forward));
      attention_backward = bytes(rung.workspace_bytes(problem, Pass::backward));
      swiglu::Problem gate;
      gate.rows = rows;
      gate.dim = options_.config.d_ff;
      gate.dtype = dtypes_.product;
      swiglu_backward = bytes(kernels.swiglu->workspace_bytes(gate, Pass::backward));
      rms_norm::Problem one;
      one.rows = rows;
      one.dim = options_.config.d_model;
      one.x_dtype = dtypes_.residual;
      one.w_dtype = dtypes_.weights;
      one.y_dtype = dtypes_.product;
      norm_backward = bytes(kernels.rms_norm->workspace_bytes(one, Pass::backward));
      const cross_entropy::Problem loss{rows, options_.config.vocab, dtypes_.product};
      loss_both = bytes(kernels.cross_entropy->workspace_bytes(loss, Pass::both));
      loss_forward = bytes(kernels.cross_entropy->workspace_bytes(loss, Pass::forward));
    } catch (const Error&) {  // rungs of a GPU in a build without CUDA
      if (options_.model.variant != model::Variant::eager) return;
      kept = scores * (4 + bytes_of(dtypes_.product));
      attention_forward = 2 * scores * 4;
      attention_backward = 4 * scores * 4;
    }
  }

  // Half precision and TF32 exist only on a GPU; fp32 with joined products may be on either, without large workspaces.
  device::Kind device_of() const {
    using model::Precision;
    return options_.model.precision == Precision::fp64 || options_.model.precision == Precision::fp32
               ? device::Kind::cpu
               : device::Kind::cuda;
  }

  const WorkloadOptions& options_;
  model::DTypes dtypes_;
};

struct Moment {
  std::string name;
  double saved, temporaries;
  double total() const { return saved + temporaries; }
};

// "attention of the last block, backward"
std::string name_of(std::int64_t half, std::int64_t layers, const char* pass) {
  const std::string block = half / 2 + 1 == layers ? "the last block" : "block " + std::to_string(half / 2);
  return (half % 2 == 0 ? "attention of " : "feed-forward of ") + block + ", " + pass;
}

// A pass over half-blocks, segment by segment (model/recompute.hpp): of a segment that is not kept whole, only the
// stream at its beginning is kept.
class MemoryWalk {
 public:
  MemoryWalk(const Sizes& sizes, const model::Recompute& recompute, std::int64_t layers)
      : s_(sizes), recompute_(recompute), layers_(layers) {}

  std::vector<Moment> forward() {
    double streams = 0;  // of the segments before
    for_segments([&](const model::Segment& segment) {
      const bool whole = segment.end == 2 * layers_;
      double held = streams;
      for (std::int64_t half = segment.first; half < segment.end; ++half) {
        held += of_half(half);
        all_.push_back({name_of(half, layers_, "forward"), held, beside(half, s_.hidden)});
        // What will be recomputed later is released at once, except the streams: the segment's first, and the one
        // before a sum.
        if (!whole) held = streams + (half == segment.first ? 1 : 2) * s_.residual;
      }
      streams += s_.residual;
      kept_ = held;
    });
    return std::move(all_);
  }

  // `besides` (the losses) is alive all the time.
  std::vector<Moment> backward(double besides) {
    double streams = 0;
    for_segments([&](const model::Segment& segment) {
      double held = streams + besides;
      for (std::int64_t half = segment.first; half < segment.end; ++half) {
        held += of_half(half);
        if (segment.end != 2 * layers_) {
          const double output = half + 1 < segment.end ? s_.hidden : 0;  // the segment's last is not read
          all_.push_back({name_of(half, layers_, "made again"), held, s_.residual + beside(half, output)});
        }
        all_.push_back({name_of(half, layers_, "backward"), held, going_back(half)});
      }
      most_ = std::max(most_, held - besides);
      streams += s_.residual;
    });
    return std::move(all_);
  }

  double kept() const { return kept_; }  // by all blocks, when the forward pass has ended
  double most() const { return most_; }  // by all blocks, while the backward pass goes through them

 private:
  template <typename Visit>
  void for_segments(const Visit& visit) const {
    for (std::int64_t half = 0; half < 2 * layers_;) {
      const model::Segment segment = segment_of(recompute_, layers_, half);
      visit(segment);
      half = segment.end;
    }
  }
  double of_half(std::int64_t half) const {
    return s_.kept_norm() + (half % 2 == 0 ? s_.attention() : s_.kept_feed_forward());
  }
  // What a layer holds in addition: its workspace while it works, then the inputs and outputs of its last product.
  double beside(std::int64_t half, double output) const {
    if (half % 2 == 0) return s_.normalized_again() + std::max(s_.attention_forward, output);
    return s_.normalized_again() + (output > 0 ? s_.gated_again() : 0) + output + s_.cast_normalized;
  }
  double going_back(std::int64_t half) const {
    const double arriving = s_.residual + s_.cast_residual;
    if (half % 2 == 0) return arriving + s_.hidden + 3 * s_.hidden + s_.attention_backward;  // of merged, of Q, K, V
    // `gated`, kept or recomputed, has been released when the normalised rows and their gradient are needed.
    const double gone = s_.inner - s_.gated_again();
    return arriving + std::max(s_.gated_again() + s_.swiglu_backward,
                               s_.normalized_again() + s_.hidden + s_.cast_normalized - gone);
  }

  const Sizes& s_;
  model::Recompute recompute_;
  std::int64_t layers_;
  std::vector<Moment> all_;
  double kept_ = 0, most_ = 0;
};

std::vector<Moment> moments_of(const Sizes& s, const WorkloadOptions& options, MemoryPass pass) {
  if (pass == MemoryPass::forward) {
    // In addition to the active layer: the stream at the previous norm, which the next sum reads.
    return {
        {"attention of a block", 0, s.residual + s.norm() + s.attention() + s.attention_output() + s.cast_normalized},
        {"feed-forward of a block", 0, s.residual + s.norm() + s.feed_forward() + s.hidden + s.cast_normalized},
        {"LM head", 0, s.norm() + s.logits + s.cast_normalized},
        {"loss", 0, s.logits + s.losses() + s.loss_forward}};
  }
  MemoryWalk there(s, options.model.recompute, options.config.layers);
  std::vector<Moment> all = there.forward();
  const double kept = there.kept() + s.norm() + s.logits + s.losses();
  all.push_back({"loss", kept, s.loss_both});
  if (pass == MemoryPass::forward_kept) return all;
  all.push_back({"LM head, backward", kept, s.hidden + s.cast_normalized});
  all.push_back({"last norm, backward", kept - s.logits, s.hidden + s.residual + s.norm_backward});
  MemoryWalk back(s, options.model.recompute, options.config.layers);
  std::ranges::move(back.backward(s.losses()), std::back_inserter(all));
  return all;
}

}  // namespace

std::string_view to_string(MemoryPass pass) { return name_in(kMemoryPasses, pass); }

MemoryPass parse_memory_pass(std::string_view text) { return find_named(kMemoryPasses, "pass", text).value; }

PeakBytes predicted_peak(const WorkloadOptions& options, MemoryPass pass) {
  const Sizes sizes(options);
  const std::vector<Moment> moments = moments_of(sizes, options, pass);
  const Moment& highest = *std::ranges::max_element(moments, {}, &Moment::total);
  PeakBytes made;
  made.parameters = sizes.weights() + sizes.copy() + sizes.rope_tables();
  if (pass == MemoryPass::step) {
    made.gradients = sizes.weights();
    made.optimizer = 2 * sizes.weights();
  }
  made.saved = highest.saved;
  made.temporaries = highest.temporaries;
  made.others = sizes.tokens;
  made.moment = highest.name;
  return made;
}

double most_kept_by_blocks(const WorkloadOptions& options) {
  const Sizes sizes(options);
  MemoryWalk back(sizes, options.model.recompute, options.config.layers);
  static_cast<void>(back.backward(0));
  return back.most();
}

std::vector<SavedTensor> saved_by_block(const WorkloadOptions& options) {
  const Sizes s(options);
  std::vector<SavedTensor> all{{"ln1.residual", s.residual},
                               {"ln1.rstd", s.statistic},
                               {"ln1.normalized", s.normalized - s.normalized_again()},
                               {"attn.qkv", 3 * s.hidden},
                               {"attn.merged", s.hidden},
                               {"attn.lse", s.lse},
                               {"attn.kept", s.kept},
                               {"ln2.residual", s.residual},
                               {"ln2.rstd", s.statistic},
                               {"ln2.normalized", s.normalized - s.normalized_again()},
                               {"ffn.gate_up", 2 * s.inner},
                               {"ffn.gated", s.inner - s.gated_again()}};
  std::erase_if(all, [](const SavedTensor& one) { return one.bytes == 0; });
  return all;
}

double framework_block_bytes(const WorkloadOptions& options) {
  const model::ModelConfig& config = options.config;
  const double rows = static_cast<double>(options.batch * options.seq), t = static_cast<double>(options.seq);
  const double btd = rows * static_cast<double>(config.d_model), btf = rows * static_cast<double>(config.d_ff),
               bht = rows * static_cast<double>(config.heads);
  const bool half = dtypes_of(options.model.precision, options.model.variant).weights_copy.has_value();
  if (half) return 34 * btd + 10 * btf + 6 * bht * t;
  // Small tensors: 1/rms of two norms, the softmax's maximum and denominator for each row, and the mask.
  return 10 * btd * 4 + 5 * btf * 4 + 2 * bht * t * 4 + 2 * rows * 4 + bht * 12 + t * t;
}

namespace {

// Bytes that the baseline holds for one pass in addition to parameters and blocks. Each of its operations makes a
// tensor, in fp32, except that under autocast products and what follows them directly have 2 bytes.
struct Baseline {
  explicit Baseline(const WorkloadOptions& options) {
    const model::ModelConfig& config = options.config;
    const auto bytes = [](std::int64_t elements) { return 4 * static_cast<double>(elements); };
    const std::int64_t rows = options.batch * options.seq;
    const bool half = dtypes_of(options.model.precision, options.model.variant).weights_copy.has_value();
    p = static_cast<double>(model::parameter_count(config));
    copy = half ? 2 * p : 0;
    largest = bytes(config.d_model * std::max({config.d_model, config.d_ff, config.vocab}));
    stream = bytes(rows * config.d_model);
    inner = bytes(rows * config.d_ff);
    logits = bytes(rows * config.vocab);
    scores = bytes(rows * config.heads * options.seq);
    kept = static_cast<double>(config.layers) * framework_block_bytes(options);
    softmax = half ? 3 * scores : 4 * scores;
  }

  double p, copy;  // parameters; bytes of their copy in halves
  double largest;  // tensor of parameters
  double stream, inner, logits, scores;
  double kept;     // by all blocks
  double softmax;  // masked scores, those less their maximum, exp, weights
};

}  // namespace

double framework_peak(const WorkloadOptions& options, MemoryPass pass) {
  const Baseline b(options);
  if (pass == MemoryPass::forward) {
    const double attention = 5 * b.stream + b.softmax;       // stream, its norm, rotated Q and K, V
    const double feed_forward = 2 * b.stream + 3 * b.inner;  // W1·x, its sigmoid, their product; with W3·x alike
    const double loss = b.stream + 3 * b.logits;             // logits, those less their maximum, exp
    return 4 * b.p + b.copy + std::max({attention, feed_forward, loss});
  }
  const double head = 3 * b.stream + 3 * b.logits;
  if (pass == MemoryPass::forward_kept) return 4 * b.p + b.copy + b.kept + head;
  // Weights and moments. Gradients are allocated as the backward pass goes, but what blocks kept is released faster.
  const double backward = std::max(head + 2 * b.logits, 3 * b.scores + 2 * b.logits);
  return std::max(12 * b.p + b.copy + b.kept + backward, 16 * b.p + 5 * b.largest);
}

}  // namespace syslab::train
