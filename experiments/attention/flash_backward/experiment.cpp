// flash_backward: gradients of attention without the score matrix; question and napkin maths in README.md beside this.
#include "capi/declared_domain.hpp"
#include "capi/implementation.hpp"
#include "ops/attention/handout_tolerance.hpp"
#include "ops/attention/operation.hpp"
#include "ops/attention/params.hpp"
#include "property_tests/attention/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/law_case.hpp"
#include "worker/operation_case.hpp"

namespace syslab::experiment_flash_backward {
namespace {

using attention::Phase;

void run_case(worker::CaseContext& context) {
  const attention::Rung rung = capi::attention_implementation(context);
  if (context.is_law())
    return worker::run_law(context,
                           attention::laws_of(rung, attention::Direction::backward, capi::declared_domain(context)));
  const attention::Problem problem = attention::problem_from(context.params());
  if (!context.request().mine) return worker::run_pass(context, problem, Phase::backward, rung);
  if (const auto reason = attention::refusal(rung, problem, Phase::backward)) throw Unsupported(*reason);
  const ops::Operation operation = attention::operation(problem, Phase::backward, rung, context.request().seed);
  worker::run_operator_case(context, worker::operator_case_of(attention::at_handout_tolerance(operation)));
}

registry::Experiment describe() {
  const Value fp32 = std::string("fp32"), bf16 = std::string("bf16");
  const registry::Values all = registry::names_of(attention::ladder());
  return registry::experiment("flash_backward")
      .title("FlashAttention-2 backward pass")
      .question(
          "Compute dQ, dK and dV from Q, K, V, O, L and dO, recomputing the weights tile by tile. What does a backward "
          "pass cost beside the forward pass, and what does doing without atomic additions cost?")
      .problem("2025", "flash_backward", 5)
      .problem("2026", "flash_backward", 5)
      .tags({"attention", "kernel"})
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
      .laws(registry::laws_of(attention::law_list(attention::Direction::backward)))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("tflops", "TFLOP/s", "10·B·H·pairs·D over the time: five products, whatever a kernel recomputes")
      .metric("gbps", "GB/s", "each input read once, each gradient written once, over the time")
      .metric("error_dq", "1", "worst |dQ − reference| where largest beside its bound, tolerance_dq")
      .metric("error_dk", "1", "the same for dK")
      .metric("error_dv", "1", "the same for dV")
      .metric("peak_scratch_bytes", "B", "memory taken during a call beyond inputs and outputs")
      .accepts_mine()
      .flops([](const Params& params) { return attention::backward_flops(attention::problem_from(params)); })
      .bytes([](const Params& params) { return attention::backward_bytes(attention::problem_from(params)); })
      .memory([](const Params& params, std::string_view implementation) {
        return attention::predicted_bytes(attention::problem_from(params), Phase::backward, implementation);
      })
      .runs(run_case);
}

const registry::Experiment kFlashBackward = describe();
SYSLAB_EXPERIMENT(kFlashBackward);

}  // namespace
}  // namespace syslab::experiment_flash_backward
