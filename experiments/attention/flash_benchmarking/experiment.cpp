// flash_benchmarking: FlashAttention-2 against attention that holds its scores; the question is in README.md beside
// this file.
#include "capi/implementation.hpp"
#include "ops/attention/operation.hpp"
#include "ops/attention/params.hpp"
#include "property_tests/attention/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/law_case.hpp"
#include "worker/operation_case.hpp"

namespace syslab::experiment_flash_benchmarking {
namespace {

using attention::phase_from;
using registry::number;
using registry::text;

void run_case(worker::CaseContext& context) {
  const attention::AutogradRung rung = capi::autograd_implementation(context);
  if (context.is_law()) return worker::run_law(context, attention::laws(attention::as_rung(rung)));
  worker::run_pass(context, attention::problem_from(context.params()), phase_from(context.params()), rung);
}

registry::Experiment describe() {
  const registry::Values both{text("bf16"), text("fp32")};
  // Holding the scores of one head at a time is neither the regular form nor ours.
  const registry::Values plain_and_flash = registry::names_of(attention::autograd_ladder(), {"naive"});
  return registry::experiment("flash_benchmarking")
      .title("FlashAttention-2 against the plain form")
      .question(
          "From 128 to 65,536 tokens, in bf16 and fp32, causal, one head: how long do a forward pass, a backward pass "
          "and both together take, and how does that compare with attention that holds its scores?")
      .problem("2025", "flash_benchmarking", 5)
      .problem("2026", "flash_benchmarking", 5)
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
      .implementations(registry::implementations_of(attention::autograd_ladder()))
      .laws(registry::laws_of(attention::law_list()))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("time_mean", "s", "its mean, which do_bench returns unless asked for another")
      .metric("tflops", "TFLOP/s", "forward 4, backward 10, both 14 times H·pairs·D over the time")
      .metric("error_out", "1", "worst |O − reference| where largest beside its bound, tolerance_out")
      .metric("error_dq", "1", "the same for dQ; error_dk, error_dv and error_lse alike")
      .metric("peak_scratch_bytes", "B", "memory taken during a call beyond inputs and outputs")
      .metric("peak_bytes", "B", "that, and inputs and outputs")
      .accepts_mine()
      .oom_is_an_answer()
      .flops([](const Params& params) { return attention::flops(attention::problem_from(params), phase_from(params)); })
      .bytes([](const Params& params) { return attention::bytes(attention::problem_from(params), phase_from(params)); })
      .memory([](const Params& params, std::string_view implementation) {
        return attention::predicted_bytes(attention::problem_from(params), phase_from(params), implementation);
      })
      .runs(run_case);
}

const registry::Experiment kFlashBenchmarking = describe();
SYSLAB_EXPERIMENT(kFlashBenchmarking);

}  // namespace
}  // namespace syslab::experiment_flash_benchmarking
