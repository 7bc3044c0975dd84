#include "train/ladder.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "core/text/named.hpp"
#include "model/kernels.hpp"
#include "ops/cuda_rung.hpp"

namespace syslab::train {
namespace {

using model::Precision;
using model::Variant;

// Passes of a model ask the dispatch rule with their own sizes; this is its answer for the hand-out's batch of 4 at
// context 512, with a head of 64.
std::string attention_taken(const Rung& rung, const std::vector<Precision>& precisions) {
  model::ModelConfig config = model::find_model("small");
  std::string says;
  for (const int sm : rung.device == device::Kind::cpu ? std::vector{0} : std::vector{80, 90}) {
    std::string here;
    for (const Precision precision : precisions) {
      const model::Kernels kernels =
          model::kernels_of(config, precision, rung.variant, {rung.device, sm}, {.batch = 4, .seq = 512});
      here += fmt::format("{}{} in {} ({})", here.empty() ? "" : "; ", kernels.attention.name, to_string(precision),
                          kernels.attention_because);
    }
    if (says.empty()) {
      says = "attention: " + here;
    } else if (says != "attention: " + here) {
      says += fmt::format("; on a GPU of compute capability {}.{}: {}", sm / 10, sm % 10, here);
    }
  }
  return says;
}

Rung rung(const char* name, const char* teaches, device::Kind device, Variant variant) {
  Rung made;
  made.name = name;
  made.teaches = teaches;
  made.device = device;
  made.variant = variant;
  made.dtypes = {DType::f32};
  if (device == device::Kind::cpu) {
    made.takes = attention_taken(made, {Precision::fp32});
    return made;
  }
  made.dtypes = {DType::f32, DType::bf16, DType::f16};
  made.minimum_sm = 80;
  if (!ops::kBuiltWithCuda) return ops::without_cuda(made);
  made.takes = attention_taken(made, {Precision::fp32, Precision::bf16_fused});
  return made;
}

Rung reference() {
  Rung made = rung("reference", "the model in fp64, plain loops: what every other rung is measured against",
                   device::Kind::cpu, Variant::fused);
  made.role = Role::reference;
  made.dtypes = {DType::f64};
  return made;
}

}  // namespace

std::span<const Rung> ladder() {
  static const std::array rungs{
      reference(),
      rung("host", "the model on the CPU: OpenBLAS's products and vectorised loops between them", device::Kind::cpu,
           Variant::fused),
      rung("host_eager", "the same one operation at a time, its attention with matrices of scores: to be taken apart",
           device::Kind::cpu, Variant::eager),
      rung("eager", "one kernel an operation of a framework, each tensor by itself", device::Kind::cuda,
           Variant::eager),
      rung("fused", "what a compiler fuses, by hand: norm with residual, RoPE in place, SwiGLU, loss; one AdamW",
           device::Kind::cuda, Variant::fused),
      rung("graph", "`fused`, the whole step recorded once and replayed: no launches left on the host",
           device::Kind::cuda, Variant::graph)};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of a training step", name); }

std::optional<std::string> refusal(const Rung& rung, Precision precision) {
  if (!rung.unavailable.empty()) return fmt::format("{} {}", rung.name, rung.unavailable);
  const bool exact = precision == Precision::fp64;
  if (exact != (rung.role == Role::reference)) {
    return exact ? fmt::format("fp64 is for the rung `reference`, not for {}", rung.name)
                 : std::string("the reference runs in fp64 alone");
  }
  if (rung.device == device::Kind::cpu && !exact && precision != Precision::fp32) {
    return fmt::format("{} runs in fp32 on the CPU; {} needs a GPU", rung.name, to_string(precision));
  }
  return std::nullopt;
}

}  // namespace syslab::train
