// What a kernel in half precision is held against: the naive kernel of the same dtype on the same inputs.
#pragma once

#include <functional>

#include "worker/operator_case.hpp"

namespace syslab::worker {

// An OperatorCase::naive_error that calls `naive` (which overwrites the outputs) and gives each output's largest error.
std::function<std::vector<double>(const Tensors&, const std::vector<Expectation>&)> error_of(
    std::function<void(const Tensors&)> naive);

}  // namespace syslab::worker
