// What both passes of flash_wgmma ask of the host.
#pragma once

#include <string_view>

#include "device/cuda/tensor_map.hpp"
#include "ops/attention/attention.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention::wgmma {

// Boxes of `rows` rows of a tensor that the copy engine can walk. Error(usage), which `operation` begins, naming tensor
// and stride where it cannot.
device::TensorMap map_of(std::string_view operation, std::string_view name, const ConstTensorView& view, int rows,
                         device::Swizzle swizzle);

// The stream's GPU. Error(device) unless it is of compute capability 9.0.
ops::Gpu require_hopper(std::string_view operation, device::Stream stream);

// Row r sees keys j ≤ r + shift.
int shift_of(const Problem& problem);

}  // namespace syslab::attention::wgmma
