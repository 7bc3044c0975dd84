#include "model/kernels.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::model {
namespace {

attention::Problem attention_problem(const ModelConfig& config, Precision precision, Variant variant,
                                     const AttentionWish& wish) {
  attention::Problem problem;
  problem.batch = wish.batch;
  problem.heads_q = problem.heads_kv = config.heads;
  problem.seq_q = problem.seq_k = wish.seq == 0 ? config.context : wish.seq;
  problem.head_dim = config.head_dim();
  problem.mask = attention::Mask::top_left;
  problem.dtype = dtypes_of(precision, variant).product;
  return problem;
}

struct ChosenAttention {
  attention::AutogradRung rung;
  std::string because;
};

// The rungs that a variant or a precision stands for; empty: the fastest.
ChosenAttention named_by(Precision precision, Variant variant, device::Kind device) {
  const auto named = [](std::string_view name, std::string because) {
    return ChosenAttention{attention::find_autograd_rung(name), std::move(because)};
  };
  if (precision == Precision::fp64) {
    return {attention::as_autograd(attention::find_rung("reference")), "fp64 is the reference"};
  }
  if (variant == Variant::eager) {
    return named(device == device::Kind::cuda ? "naive_cuda_literal" : "literal",
                 "eager: an operation at a time, as a framework runs it");
  }
  if (precision == Precision::tf32) return named("flash_tf32", "products in TF32");
  return {};
}

// Chosen by dispatch(), separately for each pass.
ChosenAttention dispatched(const attention::Problem& problem, const attention::Where& where, attention::Want want) {
  const attention::Dispatched forward = dispatch(problem, Pass::forward, where, want),
                              backward = dispatch(problem, Pass::backward, where, want);
  if (forward.rung->name == backward.rung->name)
    return {attention::as_autograd(*backward.rung), std::string(backward.because)};
  return {attention::as_autograd(*forward.rung, *backward.rung),
          fmt::format("forward: {}; backward: {}", forward.because, backward.because)};
}

ChosenAttention attention_rung(const ModelConfig& config, Precision precision, Variant variant,
                               const attention::Where& where, const AttentionWish& wish) {
  const auto& [name, want, batch, seq] = wish;
  const attention::Problem problem = attention_problem(config, precision, variant, wish);
  const auto refuse = [&](const std::string& rung, const std::string& why) {
    throw Error(ErrorKind::usage,
                fmt::format("the model's attention cannot be {} in {}: {}", rung, to_string(precision), why));
  };
  ChosenAttention chosen = name.empty() ? named_by(precision, variant, where.device)
                                        : ChosenAttention{attention::find_autograd_rung(name), "asked for by name"};
  if (chosen.rung.name.empty()) return dispatched(problem, where, want);
  const attention::AutogradRung& rung = chosen.rung;
  if (rung.device != where.device) {
    refuse(rung.name, rung.device == device::Kind::cpu ? "it runs on the CPU" : "it runs on a GPU");
  }
  if (!rung.unavailable.empty()) refuse(rung.name, rung.unavailable);
  if (want == attention::Want::deterministic && !rung.deterministic) refuse(rung.name, "it is not deterministic");
  if (!name.empty()) {
    for (const auto direction : {Pass::forward, Pass::backward}) {
      if (const auto reason = rung.supports(problem, direction)) refuse(rung.name, *reason);
    }
  }
  return chosen;
}

template <typename Rung>
const Rung* available(const Rung& rung) {
  if (!rung.unavailable.empty()) {
    throw Error(ErrorKind::usage, fmt::format("the model's {}: {}", rung.name, rung.unavailable));
  }
  return &rung;
}

}  // namespace

Kernels kernels_of(const ModelConfig& config, Precision precision, Variant variant, const attention::Where& where,
                   const AttentionWish& attention) {
  const bool gpu = where.device == device::Kind::cuda;
  if (!gpu && precision != Precision::fp64 && precision != Precision::fp32) {
    throw Error(ErrorKind::usage, fmt::format("a model in {} needs a GPU; on the CPU there are fp32 and, as the "
                                              "reference, fp64",
                                              to_string(precision)));
  }
  if (gpu && precision == Precision::fp64) {
    throw Error(ErrorKind::usage, "a model in fp64 is the reference and runs on the CPU; take fp32 on a GPU");
  }
  const std::string name = precision == Precision::fp64 ? "reference"
                           : !gpu                       ? "naive"
                           : variant == Variant::eager  ? "eager_cuda"
                                                        : "fused_cuda";
  Kernels kernels;
  kernels.rms_norm = available(rms_norm::find_rung(name));
  kernels.rope = available(rope::find_rung(name));
  kernels.swiglu = available(swiglu::find_rung(name));
  ChosenAttention chosen = attention_rung(config, precision, variant, where, attention);
  kernels.attention = std::move(chosen.rung);
  kernels.attention_because = std::move(chosen.because);
  kernels.cross_entropy = available(cross_entropy::find_rung(name));
  // A framework also has one operation for each of these.
  kernels.embedding = available(embedding::find_rung(gpu ? "fused_cuda" : name));
  kernels.elementwise = available(elementwise::find_rung(gpu ? "fused_cuda" : name));
  kernels.adamw = available(adamw::find_rung(name));
  kernels.global_norm = available(global_norm::find_rung(gpu ? "fused_cuda" : name));
  kernels.joined = variant != Variant::eager;
  return kernels;
}

}  // namespace syslab::model
