// leaderboard_2025: both passes of attention at one size; the question is in README.md in this folder.
#include "experiments/attention/attention_case.hpp"
#include "ops/attention/params.hpp"
#include "registry/ladder.hpp"
#include "registry/values.hpp"

namespace syslab::experiment_leaderboard_2025 {
namespace {

using registry::Need;
using registry::number;
using registry::text;

registry::Experiment describe() {
  const Values all = registry::names_of(attention::autograd_ladder(), {"naive"});
  return autograd_experiment("leaderboard_2025")
      .title("Leaderboard 2025: FlashAttention-2")
      .question(
          "How long do a forward pass and a backward pass take together at the leaderboard's size: 16 heads, 16,384 "
          "tokens, head_dim 64, bf16, causal? And how far is that from what the GPU's tensor cores could do?")
      .analogue(
          "the two passes on gradients that are given, in C++ and CUDA; the leaderboard times Triton through PyTorch, "
          "where a sum makes the gradient and about 100 MB of gradients are added up besides")
      .problem("2025", "leaderboard", 0)
      .evidence({.grid = {{"impl", {text("naive_cuda"), text("flash_mma"), text("flash_wgmma")}}}})
      .evidence({.need = Need::nice, .preset = "paper"})
      .evidence({.preset = "laptop", .in_small = true})
      .tags({"attention", "kernel"})
      .protocol("leaderboard")
      .axes(registry::axes_of(
          attention::param_list(),
          {{"heads", {number(16)}}, {"seq", {number(16384)}}, {"dtype", {text("bf16")}}, {"causal", {true}}}))
      .closed_axis("pass", {text("both")}, "what one timed call is; both: a forward pass and the backward pass on it",
                   {text("forward"), text("backward")})
      .preset("smoke",
              {{"heads", {number(2)}}, {"seq", {number(128)}}, {"device", {text("cpu"), text("cuda")}}, {"impl", all}})
      .preset("laptop", {{"seq", {number(512)}}, {"device", {text("cpu")}}, {"impl", all}})
      .preset("paper", {{"pass", {text("forward"), text("backward"), text("both")}}, {"impl", all}})
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("time_mean", "s", "its mean, which the leaderboard counts")
      .metric("tflops", "TFLOP/s", "14·B·H·pairs·D over the time of both passes: 1.924 TFLOP at the leaderboard's size")
      .metric("error_out", "1", "worst |O − reference| where largest beside its bound, tolerance_out")
      .metric("error_dq", "1", "the same for dQ; error_dk, error_dv and error_lse alike")
      .metric("peak_scratch_bytes", "B", "memory taken during a call beyond inputs and outputs")
      .metric("peak_bytes", "B", "that, and inputs and outputs")
      .runs(run_autograd_case);
}

SYSLAB_EXPERIMENT(leaderboard_2025, describe);

}  // namespace
}  // namespace syslab::experiment_leaderboard_2025
