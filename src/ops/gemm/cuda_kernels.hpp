// Kernels of the GPU oracle of matrix products, behind plain functions (cuda_kernels.cu).
#pragma once

#include "core/tensor.hpp"
#include "device/device.hpp"
#include "ops/gemm/gemm.hpp"

namespace syslab::gemm {

// A matrix of any dtype and row stride as contiguous doubles.
void widen(const ConstTensorView& from, double* to, device::Stream stream);
void make_absolute(double* values, std::int64_t count, device::Stream stream);
// bounds[i]: turns the sum of the products' absolute values into an element's error bound.
void bounds_from_magnitudes(const Problem& problem, double operand_unit, const double* values, double* bounds,
                            device::Stream stream);

}  // namespace syslab::gemm
