// weighted_sum: y = Σ_d w_d · x[…, d] and its gradients; the question is in README.md in this folder, and
// docs/add-an-experiment.md explains this one.
#include "capi/implementation.hpp"
#include "ops/weighted_sum/foreign.hpp"
#include "ops/weighted_sum/operation.hpp"
#include "property_tests/weighted_sum/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab::experiment_weighted_sum {
namespace {

using weighted_sum::Problem;
using weighted_sum::Rung;

// --- from the axes of a case to a problem and an implementation ---

Problem problem_from(const Params& params) {
  return {params.integer("rows"), params.integer("dim"), parse_dtype(params.text("dtype")).value()};
}

void run_rung(worker::CaseContext& context, const Rung& rung, const std::shared_ptr<ops::TimedChannel>& channel) {
  if (context.is_law()) return worker::run_law(context, weighted_sum::laws(rung));
  const Problem problem = problem_from(context.params());
  const Pass pass = pass_from(context.params());
  if (const auto reason = rung.supports(problem, pass)) throw worker::Unsupported(*reason);
  Operation made = weighted_sum::operation(problem, pass, rung);
  if (channel) {
    made = ops::timed_elsewhere(std::move(made), channel);
    const Rung& ours = weighted_sum::find_rung("naive");
    if (!ours.supports(problem, pass)) {
      made = ops::seen_beside(std::move(made), weighted_sum::operation(problem, pass, ours));
    }
  }
  worker::run_operator_case(context, made);
}

void run_case(worker::CaseContext& context) {
  const worker::CaseRequest& request = context.request();
  if (!request.mine) return run_rung(context, weighted_sum::find_rung(request.implementation), nullptr);
  const auto channel = std::make_shared<ops::TimedChannel>(context.channel());
  run_rung(context, weighted_sum::foreign_rung(capi::foreign_implementation(context, channel)), channel);
}

// --- what the tool shows and plans ---

double flops(const Params& params) {
  const Problem problem = problem_from(params);
  return pass_from(params) == Pass::forward ? weighted_sum::forward_flops(problem)
                                            : weighted_sum::backward_flops(problem);
}

double bytes(const Params& params) {
  const Problem problem = problem_from(params);
  return pass_from(params) == Pass::forward ? weighted_sum::forward_bytes(problem)
                                            : weighted_sum::backward_bytes(problem);
}

const Value kFp32 = std::string("fp32"), kBf16 = std::string("bf16"), kFp16 = std::string("fp16"),
            kFp64 = std::string("fp64");
const Values kAll = registry::names_of(weighted_sum::ladder());
const Value kCpu = std::string("cpu"), kCuda = std::string("cuda");

registry::Experiment describe() {
  return registry::experiment("weighted_sum")
      .title("Weighted sum over the last dimension")
      .question(
          "y = Σ_d w_d · x[…, d], forward and backward: how near does one pass over x come to the speed of memory, "
          "and what does it cost to sum dw over all rows without atomics?")
      .problem("2025", "weighted_sum", 0)
      .problem("2026", "weighted_sum", 0)
      .evidence({.laws = true})
      .evidence({.preset = "paper", .coarse = true})
      .evidence({.need = registry::Need::asked, .preset = "paper"})
      .tags({"kernel", "example"})
      .axis("rows", {std::int64_t{4096}}, "product of all dimensions of x but the last")
      .axis("dim", {std::int64_t{256}, std::int64_t{1024}}, "length of the sum, D")
      .closed_axis("dtype", {kFp32}, "of x, w, y and their gradients; sums are carried in fp32", {kBf16, kFp16, kFp64})
      .closed_axis("pass", {std::string("forward"), std::string("backward")}, "y, or dx and dw")
      .preset("smoke", {{"rows", {std::int64_t{1000}}},
                        {"dim", {std::int64_t{100}}},
                        {"dtype", {kFp32, kBf16}},
                        {"device", {kCpu, kCuda}},
                        {"impl", kAll}})
      .preset("laptop",
              {{"rows", {std::int64_t{16384}}}, {"dim", registry::pow2(6, 10)}, {"device", {kCpu}}, {"impl", kAll}})
      .preset(
          "paper",
          {{"rows", {std::int64_t{65536}}}, {"dim", registry::pow2(4, 12)}, {"dtype", {kFp32, kBf16}}, {"impl", kAll}})
      .implementations(registry::implementations_of(weighted_sum::ladder()))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("gbps", "GB/s", "each input read once and each output written once, over the time")
      .metric("tflops", "TFLOP/s", "2·rows·D forward, 3·rows·D backward, over the time")
      .metric("error_y", "1", "worst |y − reference| where largest beside its bound, tolerance_y")
      .metric("error_dx", "1", "the same for dx")
      .metric("error_dw", "1", "the same for dw")
      .metric("peak_scratch_bytes", "B", "memory taken during a call: partial dw of every row tile")
      .laws(weighted_sum::law_list())
      .accepts_mine()
      .flops(flops)
      .bytes(bytes)
      .memory([](const Params& params, std::string_view) { return bytes(params); })
      .runs(run_case);
}
SYSLAB_EXPERIMENT(weighted_sum, describe);

}  // namespace
}  // namespace syslab::experiment_weighted_sum
