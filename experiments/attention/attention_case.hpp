// What the experiments on attention share: a pass of it as a case.
#pragma once

#include <string>

#include "contract/pass.hpp"
#include "ops/attention/autograd.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab {

// Checks and measures one pass, or both, with an implementation. Unsupported with the reason where it cannot take the
// problem; otherwise throws as worker::run_operator_case().
void run_attention(worker::CaseContext& context, const attention::Problem& problem, Pass pass,
                   const attention::Rung& rung);
void run_attention(worker::CaseContext& context, const attention::Problem& problem, Pass pass,
                   const attention::AutogradRung& rung);

// What the case's axes say; a library is asked for equal bits where it declares them.
attention::Problem attention_problem(worker::CaseContext& context);

// An experiment on the passes as autograd runs them, over axis "pass": implementations, laws, and the cost of a case
// are there; all else is to be added.
registry::Builder autograd_experiment(std::string id);
// Its case, where there is nothing more to tell.
void run_autograd_case(worker::CaseContext& context);

}  // namespace syslab
