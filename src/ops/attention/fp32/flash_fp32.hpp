// The fp32 rungs of attention on tensor cores (sm_80 and later): flash_fp32, as accurate as fp32 arithmetic, and
// flash_tf32, which rounds every factor of a product to eleven bits.
//
// head_dim 1 … 128, any lengths, any strides and alignments, grouped-query heads, the three masks; fully masked tiles
// are skipped. Deterministic: backward runs two passes without atomics, and split ranges are joined in order.
//
// Preconditions: validate() passed; fp32 tensors on the current device, which is that of the stream. `workspace` has
// the required bytes, or is empty: then memory is taken from the device's pool in stream order. Error(usage): another
// head_dim or dtype, a device before sm_80. Error(device): a failed launch.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

std::optional<std::string> flash_fp32_refusal(const Problem& problem, Pass pass);
std::size_t flash_fp32_workspace_bytes(const Problem& problem, Pass pass);
void flash_fp32_forward(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream);
void flash_fp32_backward(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream);

std::size_t flash_tf32_workspace_bytes(const Problem& problem, Pass pass);
void flash_tf32_forward(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream);
void flash_tf32_backward(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream);

}  // namespace syslab::attention
