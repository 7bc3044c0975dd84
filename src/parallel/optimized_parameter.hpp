// A parameter as an optimizer is given it.
#pragma once

#include <string>

#include "core/tensor.hpp"

namespace syslab::parallel {

// Views of contiguous memory that the optimizer's stream works on. The gradient is as large as the weight and of its
// dtype; without memory the parameter is frozen: it is listed, and nothing touches it.
struct OptimizedParameter {
  std::string name;
  TensorView weight, gradient;

  bool frozen() const { return gradient.data == nullptr; }
};

}  // namespace syslab::parallel
