// flash_backward: gradients of attention without the score matrix; question and napkin maths in README.md beside this.
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

// Multiply-adds of one product that one check may cost: some heads of large cases, all heads of small ones.
constexpr double kOracleBudget = 3e7;

// In the order of the case's inputs and outputs below.
attention::BackwardArgs args_of(const worker::Tensors& tensors) {
  const auto& in = tensors.inputs;
  const auto& out = tensors.outputs;
  return {in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1], out[2]};
}

Rung rung_of(worker::CaseContext& context) {
  const worker::CaseRequest& request = context.request();
  std::optional<capi::Mine> mine;
  if (request.mine) mine = {request.mine->path, request.mine->digest, !request.mine->python_class.empty()};
  return capi::attention_implementation(request.implementation, mine, [&] { return context.channel(); });
}

worker::OperatorCase backward_case(const Problem& problem, const Rung& rung, std::uint64_t seed) {
  const Shape queries{problem.batch, problem.heads_q, problem.seq_q, problem.head_dim};
  const Shape keys{problem.batch, problem.heads_kv, problem.seq_k, problem.head_dim};
  const DType lse = problem.dtype == DType::f64 ? DType::f64 : DType::f32;

  worker::OperatorCase operator_case;
  operator_case.inputs = {{{"q", problem.dtype, queries}},
                          {{"k", problem.dtype, keys}},
                          {{"v", problem.dtype, keys}},
                          {{"out", problem.dtype, queries}},
                          {{"lse", lse, {problem.batch, problem.heads_q, problem.seq_q}}},
                          {{"dout", problem.dtype, queries}}};
  operator_case.outputs = {
      {{"dq", problem.dtype, queries}}, {{"dk", problem.dtype, keys}}, {{"dv", problem.dtype, keys}}};
  // O and L come from our own forward pass, so that every implementation is given the same ones.
  const Rung& forward = attention::dispatch(problem, Direction::forward, device::Kind::cpu);
  operator_case.prepare = [problem, &forward](std::vector<TensorView>& inputs) {
    forward.forward(problem, {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]}, {}, {});
  };
  const ops::KeptWorkspace workspace(rung.workspace_bytes(problem, Direction::backward));
  operator_case.call = [problem, rung, workspace](const worker::Tensors& tensors) {
    rung.backward(problem, args_of(tensors), workspace.lend(), {});
  };
  operator_case.expect = [problem, seed](const worker::Tensors& tensors) {
    const attention::BackwardArgs args = args_of(tensors);
    attention::BackwardOracle oracle =
        attention::backward_oracle(problem, args.q, args.k, args.v, args.dout, {.budget = kOracleBudget, .seed = seed});
    return std::vector<worker::Expectation>{
        {std::move(oracle.dq.value), std::move(oracle.dq.tolerance), oracle.fraction},
        {std::move(oracle.dk.value), std::move(oracle.dk.tolerance), oracle.fraction},
        {std::move(oracle.dv.value), std::move(oracle.dv.tolerance), oracle.fraction}};
  };
  operator_case.self_time = rung.last_call_time;
  operator_case.flops = attention::backward_flops(problem);
  operator_case.bytes = attention::backward_bytes(problem);
  return operator_case;
}

void run_case(worker::CaseContext& context) {
  const Rung rung = rung_of(context);
  if (context.is_law()) return worker::run_law(context, attention::laws(rung));
  const Problem problem = attention::problem_from(context.params());
  if (const auto reason = rung.supports(problem, Direction::backward)) throw worker::Unsupported(*reason);
  const std::uint64_t seed = context.request().seed;
  worker::OperatorCase operator_case = backward_case(problem, rung, seed);
  if (size_of(problem.dtype) == 2 && rung.name != "naive") {
    operator_case.naive_error = worker::error_of(backward_case(problem, attention::find_rung("naive"), seed).call);
  }
  worker::run_operator_case(context, operator_case);
}

// Inputs and outputs once, and what the naive rung materialises: weights and their gradients of every head in fp32.
double predicted_bytes(const Params& params, std::string_view implementation) {
  const Problem problem = attention::problem_from(params);
  const double scores = static_cast<double>(problem.batch * problem.heads_q * problem.seq_q) *
                        static_cast<double>(problem.seq_k) * 2 * sizeof(float);
  return attention::backward_bytes(problem) + (implementation == "naive" ? scores : 0);
}

registry::Experiment describe() {
  const Value fp32 = std::string("fp32"), bf16 = std::string("bf16"), fp16 = std::string("fp16"),
              fp64 = std::string("fp64");
  const registry::Values both{std::string("naive"), std::string("flash_tiled")};
  return registry::experiment("flash_backward")
      .title("FlashAttention-2 backward pass")
      .question(
          "Compute dQ, dK and dV from Q, K, V, O, L and dO, recomputing the weights tile by tile. What does a backward "
          "pass cost beside the forward pass, and what does doing without atomic additions cost?")
      .problem("2025", "flash_backward", 5)
      .problem("2026", "flash_backward", 5)
      .tags({"attention", "kernel"})
      .axis("batch", {std::int64_t{1}}, "leading dimension")
      .axis("heads", {std::int64_t{8}}, "query heads")
      .axis("heads_kv", {std::int64_t{0}}, "key/value heads, a divisor of heads; 0: as heads")
      .axis("seq", {std::int64_t{256}, std::int64_t{1024}}, "queries")
      .axis("seq_k", {std::int64_t{0}}, "keys; 0: as seq")
      .axis("head_dim", {std::int64_t{64}}, "width of a head, 1…256")
      .closed_axis("dtype", {fp32}, "storage of tensors and gradients", {bf16, fp16, fp64})
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
      .laws(registry::laws_of(attention::law_list(Direction::backward)))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("tflops", "TFLOP/s", "10·B·H·pairs·D over the time: five products, whatever a kernel recomputes")
      .metric("gbps", "GB/s", "each input read once, each gradient written once, over the time")
      .metric("error_dq", "1", "worst |dQ − reference| where largest beside its bound, tolerance_dq")
      .metric("error_dk", "1", "the same for dK")
      .metric("error_dv", "1", "the same for dV")
      .metric("peak_scratch_bytes", "B", "memory taken during a call beyond inputs and outputs")
      .skip_if("the oracle computes in fp64: ask with dtype=fp64",
               [](const Params& params, std::string_view implementation) {
                 return implementation == "reference" && params.text("dtype") != "fp64";
               })
      .accepts_mine()
      .flops([](const Params& params) { return attention::backward_flops(attention::problem_from(params)); })
      .bytes([](const Params& params) { return attention::backward_bytes(attention::problem_from(params)); })
      .memory(predicted_bytes)
      .runs(run_case);
}

const registry::Experiment kFlashBackward = describe();
SYSLAB_EXPERIMENT(kFlashBackward);

}  // namespace
}  // namespace syslab
