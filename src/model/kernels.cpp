#include "model/kernels.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::model {
namespace {

attention::Problem attention_problem(const ModelConfig& config, Precision precision, Variant variant) {
  attention::Problem problem;
  problem.heads_q = problem.heads_kv = config.heads;
  problem.seq_q = problem.seq_k = config.context;
  problem.head_dim = config.head_dim();
  problem.mask = attention::Mask::top_left;
  problem.dtype = dtypes_of(precision, variant).product;
  return problem;
}

attention::AutogradRung attention_rung(const ModelConfig& config, Precision precision, Variant variant,
                                       device::Kind device, std::string name) {
  const attention::Problem problem = attention_problem(config, precision, variant);
  if (name.empty() && precision == Precision::fp64) return attention::as_autograd(attention::find_rung("reference"));
  if (name.empty() && variant == Variant::eager) {
    name = device == device::Kind::cuda ? "naive_cuda_literal" : "literal";
  }
  if (name.empty() && precision == Precision::tf32) name = "flash_tf32";
  if (name.empty()) {
    return attention::as_autograd(attention::dispatch(problem, attention::Direction::backward, device));
  }
  const attention::AutogradRung rung = attention::find_autograd_rung(name);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::usage,
                fmt::format("the model's attention cannot be {} in {}: {}", name, to_string(precision), why));
  };
  if (rung.device != device) refuse(rung.device == device::Kind::cpu ? "it runs on the CPU" : "it runs on a GPU");
  if (!rung.unavailable.empty()) refuse(rung.unavailable);
  for (const auto direction : {attention::Direction::forward, attention::Direction::backward}) {
    if (const auto reason = rung.supports(problem, direction)) refuse(*reason);
  }
  return rung;
}

template <typename Rung>
const Rung* available(const Rung& rung) {
  if (!rung.unavailable.empty()) {
    throw Error(ErrorKind::usage, fmt::format("the model's {}: {}", rung.name, rung.unavailable));
  }
  return &rung;
}

}  // namespace

Kernels kernels_of(const ModelConfig& config, Precision precision, Variant variant, device::Kind device,
                   const std::string& attention) {
  const bool gpu = device == device::Kind::cuda;
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
  kernels.attention = attention_rung(config, precision, variant, device, attention);
  kernels.cross_entropy = available(cross_entropy::find_rung(name));
  // These are one operation each to a framework too.
  kernels.embedding = available(embedding::find_rung(gpu ? "fused_cuda" : name));
  kernels.elementwise = available(elementwise::find_rung(gpu ? "fused_cuda" : name));
  kernels.adamw = available(adamw::find_rung(name));
  kernels.global_norm = available(global_norm::find_rung(gpu ? "fused_cuda" : name));
  kernels.joined = variant != Variant::eager;
  return kernels;
}

}  // namespace syslab::model
