// The fp32 rungs of attention on tensor cores (sm_80 and later): flash_fp32, as exact as fp32 arithmetic, and
// flash_tf32, which rounds every factor of a product to eleven bits.
//
// head_dim 1 … 128, any lengths, any strides and alignments, grouped-query heads, the three masks with tiles that
// nobody sees skipped. Deterministic: backward is two passes without atomics, and split ranges are joined in order.
//
// Preconditions: validate() passed; fp32 tensors on the current device, which is that of the stream. `workspace` has
// the bytes asked for, or is empty: then it is taken from and given back to the device's pool in the stream's order.
// Error(usage): another head_dim or dtype, a device before sm_80. Error(device): a failed launch.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

std::optional<std::string> flash_fp32_refusal(const Problem& problem, Direction direction);
std::size_t flash_fp32_workspace_bytes(const Problem& problem, Direction direction);
void flash_fp32_forward(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream);
void flash_fp32_backward(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream);

std::size_t flash_tf32_workspace_bytes(const Problem& problem, Direction direction);
void flash_tf32_forward(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream);
void flash_tf32_backward(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream);

}  // namespace syslab::attention
