// pytorch_attention: attention that holds its scores, and what it keeps for the backward pass; the question is in
// README.md in this folder.
#include "capi/implementation.hpp"
#include "experiments/attention/attention_case.hpp"
#include "ops/attention/operation.hpp"
#include "ops/attention/params.hpp"
#include "property_tests/attention/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/values.hpp"
#include "worker/cases/law_case.hpp"

namespace syslab::experiment_pytorch_attention {
namespace {

using registry::Need;
using registry::number;
using registry::text;

// Memory in use when the forward pass has ended: q, k, v, out, lse and what the implementation keeps.
void tell_memory(worker::CaseContext& context, const attention::Problem& problem, const attention::AutogradRung& rung) {
  if (rung.last_call_time) {
    const char* why = "what the implementation keeps is in another process";
    context.missing_metric("kept_bytes", "B", why);
    return context.missing_metric("before_backward_bytes", "B", why);
  }
  const attention::LiveBytes live = attention::bytes_before_backward(problem, rung);
  context.metric("kept_bytes", "B", live.kept);
  context.metric("before_backward_bytes", "B", live.kept + live.tensors);
}

void run_case(worker::CaseContext& context) {
  const attention::AutogradRung rung = capi::autograd_implementation(context);
  if (context.is_law()) return worker::run_law(context, attention::laws(attention::as_rung(rung)));
  const attention::Problem problem = attention_problem(context);
  run_attention(context, problem, pass_from(context.params()), rung);
  tell_memory(context, problem, rung);
}

std::vector<registry::Metric> metrics() {
  return {{"time", "s", "median time of one pass, with its 95 % interval"},
          {"time_mean", "s", "mean of the measured passes, as the hand-out asks"},
          {"tflops", "TFLOP/s", "forward 4, backward 10 times B·S²·D over the time; pairs that the mask leaves count"},
          {"kept_bytes", "B", "what the forward pass leaves for the backward pass beside Q, K, V and O"},
          {"before_backward_bytes", "B", "in use just before the backward pass: Q, K, V, O and what is kept"},
          {"peak_bytes", "B", "most in use during the pass: inputs, outputs, what is kept and what it works in"},
          {"peak_scratch_bytes", "B", "of that, what is taken during the pass"},
          {"error_out", "1", "worst |O − reference| where largest beside its bound, tolerance_out"},
          {"error_dq", "1", "the same for dQ; error_dk, error_dv and error_lse alike"}};
}

std::vector<registry::Evidence> evidence() {
  // On each device one that keeps its matrices, one with softmax fused, and FlashAttention-2.
  const Values plain_and_fused{text("literal"),     text("fused_softmax"),
                               text("flash_tiled"), text("naive_cuda_literal"),
                               text("naive_cuda"),  text("flash_fp32")};
  const Values literal{text("literal"), text("naive_cuda_literal")};
  return {// Four in five of the grid's points take a tenth of its time.
          {.grid = {{"seq", {number(256), number(1024), number(4096), number(8192)}}, {"impl", literal}}},
          {.grid = {{"seq", {number(16384)}}, {"head_dim", {number(16)}}, {"impl", literal}}},
          // Memory is to run out somewhere, and large GPUs hold the whole grid.
          {.grid = {{"seq", {number(32768)}}, {"head_dim", {number(16)}}, {"impl", literal}}},
          {.problem = "torch_compile",
           .parts = {"a"},
           .grid = {{"seq", {number(256), number(1024), number(4096)}}, {"impl", plain_and_fused}}},
          {.need = Need::asked, .grid = {{"impl", plain_and_fused}}},
          {.need = Need::asked, .problem = "torch_compile", .parts = {"a"}, .grid = {{"impl", plain_and_fused}}},
          {.need = Need::nice, .preset = "paper"}};
}

registry::Experiment describe() {
  const Values kept_and_flash = registry::names_of(attention::autograd_ladder(), {"naive"});
  return autograd_experiment("pytorch_attention")
      .title("PyTorch attention benchmark")
      .question(
          "How long do forward and backward of attention with explicit scores take over sequence length and head "
          "dimension, how much memory is held between them, and where does memory end?")
      .analogue(
          "attention in C++, an operation at a time into a matrix each, keeping what a framework's autograd keeps "
          "(`literal`), and the same with softmax as one operation (`fused_softmax`); no PyTorch is measured")
      .alias("naive_attention")
      .problem("2025", "pytorch_attention", 2)
      .problem("2026", "pytorch_attention", 2)
      .all_evidence(evidence())
      .tags({"attention", "memory"})
      .protocol("cs336_100")
      .axes(registry::axes_of(attention::param_list(),
                              {{"batch", {number(8)}},
                               {"heads", {number(1)}},
                               {"seq", {number(256), number(1024), number(4096), number(8192), number(16384)}},
                               {"head_dim", registry::pow2(4, 7)},
                               {"causal", {false}}}))
      .closed_axis("pass", {text("forward"), text("backward")}, "what one timed call is", {text("both")})
      .preset("smoke", {{"batch", {number(2)}},
                        {"seq", {number(64), number(128)}},
                        {"head_dim", {number(16)}},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", kept_and_flash}})
      .preset("laptop", {{"seq", registry::pow2(7, 9)},
                         {"head_dim", {number(64)}},
                         {"device", {text("cpu")}},
                         {"impl", kept_and_flash}})
      .preset("paper", {{"impl", kept_and_flash}})
      .preset("beyond", {{"seq", {number(24576), number(32768)}}, {"impl", kept_and_flash}})
      .metrics(metrics())
      .runs(run_case);
}

SYSLAB_EXPERIMENT(pytorch_attention, describe);

}  // namespace
}  // namespace syslab::experiment_pytorch_attention
