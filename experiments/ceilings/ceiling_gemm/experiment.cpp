// ceiling_gemm: how many multiply-adds a second this machine does; the question is in README.md in this folder.
#include <algorithm>

#include "capi/implementation.hpp"
#include "ops/gemm/foreign.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/oracle.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/naive_yardstick.hpp"
#include "property_tests/gemm/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab::experiment_ceiling_gemm {
namespace {

using gemm::Problem;
using gemm::Rung;

// Beyond this the naive kernel takes seconds: it is neither timed nor compared with there.
constexpr std::int64_t kLargestNaive = 1024;

Problem problem_from(const Params& params) {
  const std::int64_t size = params.integer("size");
  const Problem problem{size, size, size, parse_dtype(params.text("dtype")).value()};
  gemm::validate(problem);
  return problem;
}

Operation operation(const Problem& p, const Rung& rung, std::uint64_t seed) {
  Operation made;
  made.device = rung.device;
  made.inputs = {{"a", p.dtype, {p.m, p.k}}, {"b", p.dtype, {p.k, p.n}}};
  made.outputs = {{"c", p.dtype, {p.m, p.n}}};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p));
  made.call = [p, rung, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.run(p, {in[0], in[1], out[0]}, workspace.lend(stream), stream);
  };
  made.expect = [p, seed, operand_unit = rung.operand_unit](const Inputs& in) {
    return std::vector{gemm::oracle(p, in[0], in[1], {.seed = seed, .operand_unit = operand_unit})};
  };
  made.expect_there = gemm::oracle_there(p, rung);
  made.flops = gemm::flops(p);
  made.bytes = gemm::bytes(p);
  return made;
}

void run_rung(worker::CaseContext& context, const Rung& rung, const std::shared_ptr<ops::TimedChannel>& channel) {
  if (context.is_law()) return worker::run_law(context, gemm::laws(rung));
  const Problem problem = problem_from(context.params());
  if (const auto reason = rung.supports(problem)) throw worker::Unsupported(*reason);
  const std::uint64_t seed = worker::unforeseeable_seed(context.request());
  Operation made = operation(problem, rung, seed);
  if (ops::held_against_naive(rung, problem.dtype) && problem.n <= kLargestNaive) {
    made.naive = operation(problem, gemm::find_rung("naive"), seed).call;
  }
  if (channel) {
    made = ops::timed_elsewhere(std::move(made), channel);
    const Rung& ours = gemm::find_rung("tiled");
    if (!ours.supports(problem)) made = ops::seen_beside(std::move(made), operation(problem, ours, seed));
  }
  worker::run_operator_case(context, made);
}

void run_case(worker::CaseContext& context) {
  const worker::CaseRequest& request = context.request();
  if (!request.mine) return run_rung(context, gemm::find_rung(request.implementation), nullptr);
  const auto channel = std::make_shared<ops::TimedChannel>(context.channel());
  run_rung(context, gemm::foreign_rung(capi::foreign_implementation(context, channel)), channel);
}

// Matrices once, what the rung packs, and the oracle's doubles: A, B twice (on a GPU once), C's value and tolerance.
double predicted_bytes(const Params& params, std::string_view) {
  const Problem problem = problem_from(params);
  const double elements = 3.0 * static_cast<double>(problem.n) * static_cast<double>(problem.n);
  return gemm::bytes(problem) + elements / 3 * sizeof(float) + elements * 2 * sizeof(double);
}

// Of ours; somebody's own is none of them.
bool runs_on_cpu(std::string_view implementation) {
  return std::ranges::any_of(gemm::ladder(), [&](const Rung& rung) {
    return rung.name == implementation && rung.device == device::Kind::cpu;
  });
}

const Value kFp32 = std::string("fp32"), kBf16 = std::string("bf16"), kFp16 = std::string("fp16"),
            kFp64 = std::string("fp64");
const Value kCpu = std::string("cpu"), kCuda = std::string("cuda");
const Values kAll = registry::names_of(gemm::ladder()),
             kFastest = registry::names_of(gemm::ladder(), {"naive", "tiled"});

registry::Experiment describe() {
  return registry::experiment("ceiling_gemm")
      .title("Matrix multiplication ceiling")
      .question(
          "How many multiply-adds a second does this machine do in a square matrix product, in which precision, and "
          "from "
          "which size on? The best rate from size 1024 on is the measured ceiling that other tables count in percent "
          "of.")
      .tags({"ceiling", "kernel"})
      .axis("size", registry::pow2(8, 11), "m = n = k")
      .closed_axis("dtype", {kFp32}, "of all three matrices; sums are carried in fp32, for fp64 in fp64",
                   {kFp64, kBf16, kFp16})
      .preset("smoke",
              {{"size", {std::int64_t{256}}}, {"dtype", {kFp32, kBf16}}, {"device", {kCpu, kCuda}}, {"impl", kAll}})
      .preset("laptop",
              {{"size", registry::pow2(8, 11)}, {"dtype", {kFp32, kFp64}}, {"device", {kCpu}}, {"impl", kFastest}})
      .preset("paper", {{"size", registry::pow2(8, 13)}, {"dtype", {kFp32, kFp64, kBf16, kFp16}}, {"impl", kAll}})
      .implementations(registry::implementations_of(gemm::ladder()))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("tflops", "TFLOP/s", "2·size³ over the time")
      .metric("gbps", "GB/s", "each matrix once, over the time")
      .metric("error_c", "1", "worst |C − reference| where largest beside its bound, tolerance_c")
      .metric("peak_scratch_bytes", "B", "memory taken during a call: what is packed")
      .laws(gemm::law_list())
      .accepts_mine()
      .skip_if("beyond size 4096 a product takes seconds of a CPU, and tells nothing new",
               [](const Params& params, std::string_view implementation) {
                 return params.integer("size") > 4096 && runs_on_cpu(implementation);
               })
      .skip_if("one dot product an element takes seconds beyond size 1024, and tells nothing new",
               [](const Params& params, std::string_view implementation) {
                 return implementation == "naive" && params.integer("size") > kLargestNaive;
               })
      .flops([](const Params& params) { return gemm::flops(problem_from(params)); })
      .bytes([](const Params& params) { return gemm::bytes(problem_from(params)); })
      .memory(predicted_bytes)
      .runs(run_case);
}
SYSLAB_EXPERIMENT(ceiling_gemm, describe);

}  // namespace
}  // namespace syslab::experiment_ceiling_gemm
