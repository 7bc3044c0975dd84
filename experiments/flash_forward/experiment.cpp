// flash_forward: the FlashAttention-2 forward pass, its question and napkin maths in README.md beside this file.
#include "capi/implementation.hpp"
#include "ops/attention/oracle.hpp"
#include "ops/attention/params.hpp"
#include "ops/kept_workspace.hpp"
#include "property_tests/attention/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/law_case.hpp"
#include "worker/naive_error.hpp"
#include "worker/operator_case.hpp"

namespace syslab {
namespace {

using attention::Direction;
using attention::Problem;
using attention::Rung;

// Multiply-adds that one check may cost: a part of the rows of large cases, all rows of small ones.
constexpr double kOracleBudget = 1e8;

// In the order of the case's inputs and outputs below.
attention::ForwardArgs args_of(const worker::Tensors& tensors) {
  return {tensors.inputs[0], tensors.inputs[1], tensors.inputs[2], tensors.outputs[0], tensors.outputs[1]};
}

Rung rung_of(worker::CaseContext& context) {
  const worker::CaseRequest& request = context.request();
  std::optional<capi::Mine> mine;
  if (request.mine) mine = {request.mine->path, request.mine->digest, !request.mine->python_class.empty()};
  return capi::attention_implementation(request.implementation, mine, [&] { return context.channel(); });
}

worker::OperatorCase forward_case(const Problem& problem, const Rung& rung, std::uint64_t seed) {
  const Shape queries{problem.batch, problem.heads_q, problem.seq_q, problem.head_dim};
  const Shape keys{problem.batch, problem.heads_kv, problem.seq_k, problem.head_dim};
  // L of the oracle rung is as exact as the rest of it.
  const DType lse = problem.dtype == DType::f64 ? DType::f64 : DType::f32;

  worker::OperatorCase operator_case;
  operator_case.inputs = {{{"q", problem.dtype, queries}}, {{"k", problem.dtype, keys}}, {{"v", problem.dtype, keys}}};
  operator_case.outputs = {{{"out", problem.dtype, queries}},
                           {{"lse", lse, {problem.batch, problem.heads_q, problem.seq_q}}}};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(problem, Direction::forward));
  operator_case.call = [problem, rung, workspace](const worker::Tensors& tensors) {
    rung.forward(problem, args_of(tensors), workspace.lend(), {});
  };
  operator_case.expect = [problem, seed](const worker::Tensors& tensors) {
    const attention::ForwardArgs args = args_of(tensors);
    attention::ForwardOracle oracle =
        attention::forward_oracle(problem, args.q, args.k, args.v, {.budget = kOracleBudget, .seed = seed});
    return std::vector<worker::Expectation>{
        {std::move(oracle.out.value), std::move(oracle.out.tolerance), oracle.fraction},
        {std::move(oracle.lse.value), std::move(oracle.lse.tolerance), oracle.fraction}};
  };
  operator_case.self_time = rung.last_call_time;
  operator_case.flops = attention::forward_flops(problem);
  operator_case.bytes = attention::forward_bytes(problem);
  return operator_case;
}

void run_case(worker::CaseContext& context) {
  const Rung rung = rung_of(context);
  if (context.is_law()) return worker::run_law(context, attention::laws(rung));
  const Problem problem = attention::problem_from(context.params());
  if (const auto reason = rung.supports(problem, Direction::forward)) throw worker::Unsupported(*reason);
  const std::uint64_t seed = context.request().seed;
  worker::OperatorCase operator_case = forward_case(problem, rung, seed);
  if (size_of(problem.dtype) == 2 && rung.name != "naive") {
    operator_case.naive_error = worker::error_of(forward_case(problem, attention::find_rung("naive"), seed).call);
  }
  worker::run_operator_case(context, operator_case);
}

// Inputs and outputs once, and what the naive rung materialises: scores and weights of every head in fp32.
double predicted_bytes(const Params& params, std::string_view implementation) {
  const Problem problem = attention::problem_from(params);
  const double scores = static_cast<double>(problem.batch * problem.heads_q * problem.seq_q) *
                        static_cast<double>(problem.seq_k) * 2 * sizeof(float);
  return attention::forward_bytes(problem) + (implementation == "naive" ? scores : 0);
}

registry::Experiment describe() {
  const Value fp32 = std::string("fp32"), bf16 = std::string("bf16"), fp16 = std::string("fp16"),
              fp64 = std::string("fp64");
  const registry::Values both{std::string("naive"), std::string("flash_tiled")};
  return registry::experiment("flash_forward")
      .title("FlashAttention-2 forward pass")
      .question(
          "Compute O = softmax(scale·QKᵀ)·V and the log-sum-exp L of each row without holding the S×S scores. How much "
          "faster is that than holding them, how does the ratio grow with S, and what does causality save?")
      .problem("2025", "flash_forward", 15)
      .problem("2026", "flash_forward", 15)
      .tags({"attention", "kernel"})
      .axis("batch", {std::int64_t{1}}, "leading dimension")
      .axis("heads", {std::int64_t{8}}, "query heads")
      .axis("heads_kv", {std::int64_t{0}}, "key/value heads, a divisor of heads; 0: as heads")
      .axis("seq", {std::int64_t{256}, std::int64_t{1024}}, "queries")
      .axis("seq_k", {std::int64_t{0}}, "keys; 0: as seq")
      .axis("head_dim", {std::int64_t{64}}, "width of a head, 1…256")
      .closed_axis("dtype", {fp32}, "storage of Q, K, V, O", {bf16, fp16, fp64})
      .closed_axis("causal", {false, true}, "a query sees no later key")
      .closed_axis("align", {std::string("top_left")}, "where the causal diagonal starts",
                   {std::string("bottom_right")})
      .preset("smoke", {{"batch", {std::int64_t{4}}},
                        {"heads", {std::int64_t{1}}},
                        {"seq", {std::int64_t{128}}},
                        {"dtype", {fp32, bf16}},
                        {"impl", both}})
      .preset("laptop", {{"seq", {std::int64_t{1024}}}, {"impl", both}})
      .preset("paper", {{"seq", registry::pow2(7, 12)},
                        {"head_dim", registry::pow2(4, 7)},
                        {"dtype", {bf16, fp32}},
                        {"causal", {true}},
                        {"impl", both}})
      .implementations(registry::implementations_of(attention::ladder()))
      .laws(registry::laws_of(attention::law_list(Direction::forward)))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("tflops", "TFLOP/s", "4·B·H·pairs·D over the time; pairs of query and key that the mask leaves")
      .metric("gbps", "GB/s", "Q, K, V read once and O written once, over the time")
      .metric("error_out", "1", "worst |O − reference| where largest beside its bound, tolerance_out")
      .metric("error_lse", "1", "the same for L")
      .metric("peak_scratch_bytes", "B", "memory taken during a call beyond inputs and outputs")
      .skip_if("the oracle computes in fp64: ask with dtype=fp64",
               [](const Params& params, std::string_view implementation) {
                 return implementation == "reference" && params.text("dtype") != "fp64";
               })
      .accepts_mine()
      .flops([](const Params& params) { return attention::forward_flops(attention::problem_from(params)); })
      .bytes([](const Params& params) { return attention::forward_bytes(attention::problem_from(params)); })
      .memory(predicted_bytes)
      .runs(run_case);
}

const registry::Experiment kFlashForward = describe();
SYSLAB_EXPERIMENT(kFlashForward);

}  // namespace
}  // namespace syslab
