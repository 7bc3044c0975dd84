// Kernels of the product's oracle on a GPU, behind plain functions (cuda_kernels.cu).
#pragma once

#include "core/tensor.hpp"
#include "device/device.hpp"
#include "ops/gemm/gemm.hpp"

namespace syslab::gemm {

// A matrix of any dtype, rows any distance apart, as doubles one after another.
void widen(const ConstTensorView& from, double* to, device::Stream stream);
void make_absolute(double* values, std::int64_t count, device::Stream stream);
// bounds[i]: from the sum of the products' absolute values to what an element may be wrong by.
void bounds_from_magnitudes(const Problem& problem, double operand_unit, const double* values, double* bounds,
                            device::Stream stream);

}  // namespace syslab::gemm
