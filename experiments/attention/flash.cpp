// flash_forward and flash_backward: the passes of FlashAttention-2, one by one; the questions and the napkin maths are
// in README.md of their folders.
#include "capi/declared_domain.hpp"
#include "capi/implementation.hpp"
#include "experiments/attention/attention_case.hpp"
#include "ops/attention/dispatch.hpp"
#include "ops/attention/operation.hpp"
#include "ops/attention/params.hpp"
#include "property_tests/attention/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/cases/law_case.hpp"

namespace syslab::experiment_flash {
namespace {

using registry::Need;
using registry::text;

template <Pass kPass>
void run_case(worker::CaseContext& context) {
  const attention::Rung rung = capi::attention_implementation(context);
  if (context.is_law()) {
    return worker::run_law(context, attention::laws_of(rung, kPass, capi::declared_domain(context)));
  }
  run_attention(context, attention_problem(context), kPass, rung);
}

// What both share. Title, question, problems and metrics are still to be added.
template <Pass kPass>
registry::Builder flash(std::string id) {
  const Value fp32 = std::string("fp32"), bf16 = std::string("bf16");
  const Values all = registry::names_of(attention::ladder());
  registry::Builder made = registry::experiment(std::move(id));
  made.tags({"attention", "kernel"})
      .axes(registry::axes_of(attention::param_list()))
      .preset("smoke", {{"batch", {std::int64_t{4}}},
                        {"heads", {std::int64_t{1}}},
                        {"seq", {std::int64_t{128}}},
                        {"dtype", {fp32, bf16}},
                        {"device", {std::string("cpu"), std::string("cuda")}},
                        {"impl", all}})
      .preset("laptop", {{"seq", {std::int64_t{1024}}}, {"device", {std::string("cpu")}}, {"impl", all}})
      .preset("paper", {{"seq", registry::pow2(7, 12)},
                        {"head_dim", registry::pow2(4, 7)},
                        {"dtype", {bf16, fp32}},
                        {"causal", {true}},
                        {"impl", all}})
      .implementations(registry::implementations_of(attention::ladder()))
      .laws(attention::law_list(kPass))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .accepts_mine()
      .flops([](const Params& params) { return attention::flops(attention::problem_from(params), kPass); })
      .bytes([](const Params& params) { return attention::bytes(attention::problem_from(params), kPass); })
      .memory([](const Params& params, std::string_view implementation) {
        return attention::predicted_bytes(attention::problem_from(params), kPass, implementation);
      })
      .runs(run_case<kPass>);
  for (const attention::DispatchRow& row : attention::dispatch_rows()) made.chosen(row.rung, row.because);
  return made;
}

constexpr const char* kScratch = "memory taken during a call beyond inputs and outputs";

registry::Experiment describe_forward() {
  return flash<Pass::forward>("flash_forward")
      .title("FlashAttention-2 forward pass")
      .question(
          "Compute O = softmax(scale·QKᵀ)·V and the log-sum-exp L of each row without holding the S×S scores. How much "
          "faster is that than holding them, how does the ratio grow with S, and what does causality save?")
      .problem("2025", "flash_forward", 15)
      .problem("2026", "flash_forward", 15)
      .evidence({.parts = {"a"}, .grid = {{"impl", {text("flash_tiled")}}}, .laws = true})
      .evidence({.parts = {"b"}, .grid = {{"impl", {text("flash_fp32"), text("flash_mma")}}}, .laws = true})
      .evidence({.parts = {"c"}, .grid = {{"impl", {text("flash_tiled"), text("flash_fp32")}}}})
      .evidence({.need = Need::asked, .parts = {"b"}, .laws = true})
      .evidence({.need = Need::asked, .parts = {"b", "c"}, .preset = "paper", .coarse = true})
      .evidence({.need = Need::nice, .preset = "paper"})
      .metric("tflops", "TFLOP/s", "4·B·H·pairs·D over the time; pairs of query and key that the mask leaves")
      .metric("gbps", "GB/s", "Q, K, V read once and O written once, over the time")
      .metric("error_out", "1", "worst |O − reference| where largest beside its bound, tolerance_out")
      .metric("error_lse", "1", "the same for L")
      .metric("peak_scratch_bytes", "B", kScratch);
}

registry::Experiment describe_backward() {
  return flash<Pass::backward>("flash_backward")
      .title("FlashAttention-2 backward pass")
      .question(
          "Compute dQ, dK and dV from Q, K, V, O, L and dO, recomputing the weights tile by tile. What does a backward "
          "pass cost beside the forward pass, and what does doing without atomic additions cost?")
      .problem("2025", "flash_backward", 5)
      .problem("2026", "flash_backward", 5)
      .evidence({.grid = {{"impl", {text("flash_tiled"), text("flash_fp32"), text("flash_mma")}}}, .laws = true})
      .evidence({.grid = {{"impl", {text("naive"), text("flash_tiled"), text("naive_cuda"), text("flash_fp32")}}}})
      .evidence({.need = Need::asked, .preset = "paper", .coarse = true})
      .evidence({.need = Need::nice, .preset = "paper"})
      .metric("tflops", "TFLOP/s", "10·B·H·pairs·D over the time: five products, whatever a kernel recomputes")
      .metric("gbps", "GB/s", "each input read once, each gradient written once, over the time")
      .metric("error_dq", "1", "worst |dQ − reference| where largest beside its bound, tolerance_dq")
      .metric("error_dk", "1", "the same for dK")
      .metric("error_dv", "1", "the same for dV")
      .metric("peak_scratch_bytes", "B", kScratch);
}

SYSLAB_EXPERIMENT(flash_forward, describe_forward);
SYSLAB_EXPERIMENT(flash_backward, describe_backward);

}  // namespace
}  // namespace syslab::experiment_flash
