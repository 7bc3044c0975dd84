// An operator's operation (the workload's ops::Operation) as a case of the lab. A template, because this tower does not
// know that one: it takes anything with the members it reads.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/naive_error.hpp"
#include "worker/operator_case.hpp"

namespace syslab::worker {

// What an oracle of the workload says, an output each.
template <typename Expected>
std::vector<Expectation> expectations(std::vector<Expected> said) {
  std::vector<Expectation> made;
  for (Expected& one : said) {
    made.push_back({std::move(one.value),
                    std::move(one.tolerance),
                    one.fraction,
                    {one.value_there, one.tolerance_there, one.tolerances_there, std::move(one.owner)}});
  }
  return made;
}

template <typename Operation>
OperatorCase operator_case_of(const Operation& operation) {
  OperatorCase made;
  made.device = operation.device;
  for (const TensorSpec& input : operation.inputs) {
    made.inputs.push_back({input});
    made.inputs.back().prepared = std::ranges::count(operation.prepared, input.name) > 0;
  }
  for (const TensorSpec& output : operation.outputs) made.outputs.push_back({output});
  made.prepare = operation.prepare;
  made.call = [call = operation.call](const Tensors& tensors) {
    call(tensors.inputs, tensors.outputs, tensors.stream);
  };
  made.expect = [expect = operation.expect](const Tensors& tensors) { return expectations(expect(tensors.inputs)); };
  if (operation.expect_there) {
    made.expect_there = [expect = operation.expect_there](const Tensors& tensors) {
      return expectations(expect(tensors.inputs, tensors.stream));
    };
  }
  if (operation.naive) {
    made.naive_error = error_of(
        [naive = operation.naive](const Tensors& tensors) { naive(tensors.inputs, tensors.outputs, tensors.stream); });
  }
  made.self_time = operation.self_time;
  made.flops = operation.flops;
  made.bytes = operation.bytes;
  return made;
}

// One pass of an operator, checked and measured with an implementation; Unsupported with the reason where it cannot
// take the problem. `refusal(rung, problem, phase)` and `operation(problem, phase, rung, seed)` are the operator's own,
// found beside its Problem.
template <typename Problem, typename Phase, typename Rung>
void run_pass(CaseContext& context, const Problem& problem, Phase phase, const Rung& rung) {
  if (const auto reason = refusal(rung, problem, phase)) throw Unsupported(*reason);
  run_operator_case(context, operator_case_of(operation(problem, phase, rung, context.request().seed)));
}

}  // namespace syslab::worker
