// An operator's operation (the workload's ops::Operation) as a case of the lab. A template, because this tower does not
// know that one: it takes anything with the members it reads.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/naive_error.hpp"
#include "worker/operator_case.hpp"

namespace syslab::worker {

template <typename Operation>
OperatorCase operator_case_of(const Operation& operation) {
  OperatorCase made;
  for (const TensorSpec& input : operation.inputs) {
    made.inputs.push_back({input});
    made.inputs.back().prepared = std::ranges::count(operation.prepared, input.name) > 0;
  }
  for (const TensorSpec& output : operation.outputs) made.outputs.push_back({output});
  made.prepare = operation.prepare;
  made.call = [call = operation.call](const Tensors& tensors) { call(tensors.inputs, tensors.outputs); };
  made.expect = [expect = operation.expect](const Tensors& tensors) {
    std::vector<Expectation> expected;
    for (auto& one : expect(tensors.inputs)) {
      expected.push_back({std::move(one.value), std::move(one.tolerance), one.fraction});
    }
    return expected;
  };
  if (operation.naive) {
    made.naive_error =
        error_of([naive = operation.naive](const Tensors& tensors) { naive(tensors.inputs, tensors.outputs); });
  }
  made.self_time = operation.self_time;
  made.flops = operation.flops;
  made.bytes = operation.bytes;
  return made;
}

}  // namespace syslab::worker
