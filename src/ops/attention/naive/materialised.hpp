// The rungs that save matrices of scores, listed by autograd.cpp.
#pragma once

#include "ops/attention/autograd.hpp"

namespace syslab::attention {

AutogradRung literal_rung();
AutogradRung fused_softmax_rung();
AutogradRung naive_cuda_literal_rung();
AutogradRung naive_cuda_autograd_rung();

}  // namespace syslab::attention
