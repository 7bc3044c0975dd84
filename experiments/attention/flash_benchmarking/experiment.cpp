// flash_benchmarking: FlashAttention-2 against attention that holds its scores; the question is in README.md in this
// folder.
#include "experiments/attention/attention_case.hpp"
#include "ops/attention/params.hpp"
#include "registry/ladder.hpp"
#include "registry/values.hpp"

namespace syslab::experiment_flash_benchmarking {
namespace {

using registry::Need;
using registry::number;
using registry::text;

registry::Experiment describe() {
  const Values both{text("bf16"), text("fp32")};
  // To hold the scores of one head at a time is neither the usual implementation nor ours.
  const Values plain_and_flash = registry::names_of(attention::autograd_ladder(), {"naive"});
  // On each device the plain form, and ours that is fastest in each dtype on any GPU that this is for.
  const Values plain_and_best{text("literal"), text("flash_tiled"), text("naive_cuda_literal"), text("flash_tf32"),
                              text("flash_mma")};
  return autograd_experiment("flash_benchmarking")
      .title("FlashAttention-2 benchmark")
      .question(
          "From 128 to 65,536 tokens, in bf16 and fp32, causal, one head: how long do a forward pass, a backward pass "
          "and both together take, and how does that compare with attention that holds its scores?")
      .problem("2025", "flash_benchmarking", 5)
      .problem("2026", "flash_benchmarking", 5)
      .evidence({.grid = {{"head_dim", {number(64)}}, {"pass", {text("both")}}, {"impl", plain_and_best}}})
      .evidence({.grid = {{"head_dim", {number(16), number(32), number(128)}},
                          {"pass", {text("both")}},
                          {"impl", plain_and_best}}})
      .evidence({.grid = {{"seq", {number(128), number(2048), number(16384), number(65536)}},
                          {"head_dim", {number(64)}},
                          {"pass", {text("forward"), text("backward")}},
                          {"impl", plain_and_best}}})
      .evidence({.need = Need::asked, .grid = {{"impl", plain_and_best}}})
      .evidence({.need = Need::nice, .preset = "paper"})
      .tags({"attention", "kernel"})
      .protocol("do_bench")
      .axes(registry::axes_of(attention::param_list(), {{"heads", {number(1)}},
                                                        {"seq", registry::pow2(7, 16)},
                                                        {"head_dim", registry::pow2(4, 7)},
                                                        {"dtype", both},
                                                        {"causal", {true}}}))
      .closed_axis("pass", {text("forward"), text("backward"), text("both")},
                   "what one timed call is; both: a forward pass and the backward pass on what it made")
      .preset("smoke", {{"seq", {number(128)}},
                        {"head_dim", {number(64)}},
                        {"dtype", both},
                        {"device", {text("cpu"), text("cuda")}},
                        {"impl", plain_and_flash}})
      .preset("laptop", {{"seq", {number(256), number(1024), number(4096)}},
                         {"head_dim", {number(64)}},
                         {"dtype", {text("fp32")}},
                         {"device", {text("cpu")}},
                         {"impl", plain_and_flash}})
      .preset("paper", {{"impl", plain_and_flash}})
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("time_mean", "s", "its mean, which do_bench returns unless asked for another")
      .metric("tflops", "TFLOP/s", "forward 4, backward 10, both 14 times H·pairs·D over the time")
      .metric("error_out", "1", "worst |O − reference| where largest beside its bound, tolerance_out")
      .metric("error_dq", "1", "the same for dQ; error_dk, error_dv and error_lse alike")
      .metric("peak_scratch_bytes", "B", "memory taken during a call beyond inputs and outputs")
      .metric("peak_bytes", "B", "that, and inputs and outputs")
      .runs(run_autograd_case);
}

SYSLAB_EXPERIMENT(flash_benchmarking, describe);

}  // namespace
}  // namespace syslab::experiment_flash_benchmarking
