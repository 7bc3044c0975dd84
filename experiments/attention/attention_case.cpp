#include "experiments/attention/attention_case.hpp"

#include <utility>

#include "capi/declared_domain.hpp"
#include "capi/implementation.hpp"
#include "ops/attention/handout_tolerance.hpp"
#include "ops/attention/operation.hpp"
#include "ops/attention/params.hpp"
#include "property_tests/attention/laws.hpp"
#include "registry/ladder.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab {
namespace {

template <typename AnyRung>
void run(worker::CaseContext& context, const attention::Problem& problem, Pass pass, const AnyRung& rung) {
  if (const auto reason = attention::refusal(rung, problem, pass)) throw worker::Unsupported(*reason);
  Operation operation = attention::operation(problem, pass, rung, worker::unforeseeable_seed(context.request()));
  // A user's own implementation is compared with the bound that `check` uses for it.
  if (context.request().mine) operation = attention::at_handout_tolerance(std::move(operation));
  worker::run_operator_case(context, operation);
}

}  // namespace

void run_attention(worker::CaseContext& context, const attention::Problem& problem, Pass pass,
                   const attention::Rung& rung) {
  run(context, problem, pass, rung);
}

void run_attention(worker::CaseContext& context, const attention::Problem& problem, Pass pass,
                   const attention::AutogradRung& rung) {
  run(context, problem, pass, rung);
}

attention::Problem attention_problem(worker::CaseContext& context) {
  attention::Problem problem = attention::problem_from(context.params());
  const auto declared = capi::declared_domain(context);
  problem.repeatable = declared && declared->deterministic;
  return problem;
}

registry::Builder autograd_experiment(std::string id) {
  return registry::experiment(std::move(id))
      .implementations(registry::implementations_of(attention::autograd_ladder()))
      .laws(attention::law_list())
      .accepts_mine()
      .oom_is_an_answer()
      .flops([](const Params& params) { return attention::flops(attention::problem_from(params), pass_from(params)); })
      .bytes([](const Params& params) { return attention::bytes(attention::problem_from(params), pass_from(params)); })
      .memory([](const Params& params, std::string_view implementation) {
        return attention::predicted_bytes(attention::problem_from(params), pass_from(params), implementation);
      });
}

void run_autograd_case(worker::CaseContext& context) {
  const attention::AutogradRung rung = capi::autograd_implementation(context);
  if (context.is_law()) return worker::run_law(context, attention::laws(attention::as_rung(rung)));
  run_attention(context, attention_problem(context), pass_from(context.params()), rung);
}

}  // namespace syslab
