// DLPack tensors of the C interface as views, and views as DLPack tensors for a user's library.
#pragma once

#include <dlpack/dlpack.h>

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::capi {

// Whether a tensor must have memory: a workspace query only reads shapes.
enum class Memory { needed, unused };

// The common device of all tensors of a call; pinned host memory belongs to the CPU. Error(usage) naming the tensor
// that is NULL, on a device that is neither the CPU nor CUDA's, or on another than the first.
device::Place common_place(std::initializer_list<std::pair<std::string_view, const DLTensor*>> tensors);

// Error(usage) naming the tensor if its memory is not where its label says. Managed memory is wherever it is wanted;
// tensors without elements have none.
void require_memory_at(device::Place place,
                       std::initializer_list<std::pair<std::string_view, const DLTensor*>> tensors);

// (B, S, D) as (B, 1, S, D), or (B, H, S, D) as it is. Null strides mean row-major. Throws Error(usage) naming the
// tensor when it is not fp32, fp16 or bf16, misaligned, of another rank, or without a unit last stride.
TensorView read_matrix(std::string_view name, const DLTensor* tensor, Memory memory = Memory::needed);
// (B, S) as (B, 1, S), or (B, H, S) as it is; fp32. No stride need be one.
TensorView read_lse(const DLTensor* tensor);

// A view as a DLTensor that lives as long as this object and stays where it is. `drop_heads` leaves out dimension 1,
// which must be of size one: (B, 1, S, D) goes out as (B, S, D). `place`: where its memory is.
class OutgoingTensor {
 public:
  OutgoingTensor(const ConstTensorView& view, bool drop_heads, device::Place place);
  OutgoingTensor(const OutgoingTensor&) = delete;
  OutgoingTensor& operator=(const OutgoingTensor&) = delete;

  DLTensor* get() { return &tensor_; }

 private:
  std::array<std::int64_t, kMaxRank> shape_{}, strides_{};
  DLTensor tensor_{};
};

}  // namespace syslab::capi
