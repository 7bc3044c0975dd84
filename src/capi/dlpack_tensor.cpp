#include "capi/dlpack_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::capi {
namespace {

[[noreturn]] void refuse(std::string_view name, const std::string& what) {
  throw Error(ErrorKind::usage, fmt::format("{} {}", name, what));
}

device::Place place_of_tensor(std::string_view name, const DLDevice& device) {
  // Pinned memory is host memory; its device type only says how it was allocated.
  if (device.device_type == kDLCPU || device.device_type == kDLCUDAHost) return {};
  if (device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged) {
    return {device::Kind::cuda, device.device_id};
  }
  refuse(name, fmt::format("is on a device of DLPack type {}; pass host memory (type 1) or CUDA memory (type 2)",
                           static_cast<int>(device.device_type)));
}

DType dtype_of_tensor(std::string_view name, const DLDataType& dtype) {
  if (dtype.lanes == 1) {
    if (dtype.code == kDLFloat && dtype.bits == 32) return DType::f32;
    if (dtype.code == kDLFloat && dtype.bits == 16) return DType::f16;
    if (dtype.code == kDLBfloat && dtype.bits == 16) return DType::bf16;
  }
  refuse(name, fmt::format("has DLPack type code {}, {} bits, {} lanes; fp32, fp16 and bf16 are accepted",
                           static_cast<int>(dtype.code), static_cast<int>(dtype.bits), static_cast<int>(dtype.lanes)));
}

// The tensor as it is, with rank, dtype, memory and strides checked; `layout` says what ranks mean.
TensorView read(std::string_view name, const DLTensor* tensor, int low_rank, std::string_view layout, Memory memory) {
  if (tensor == nullptr) refuse(name, "is NULL; it is needed");
  const DType dtype = dtype_of_tensor(name, tensor->dtype);
  if (tensor->ndim != low_rank && tensor->ndim != low_rank + 1) {
    refuse(name, fmt::format("has {} dimensions; it must be {}", tensor->ndim, layout));
  }
  if (tensor->shape == nullptr) refuse(name, "has no shape: the pointer is NULL");
  const auto rank = static_cast<std::size_t>(tensor->ndim);
  const Shape shape(std::span<const std::int64_t>(tensor->shape, rank));
  Strides strides = contiguous_strides(shape);
  if (tensor->strides != nullptr) {
    for (std::size_t dim = 0; dim < rank; ++dim) {
      // The stride of a dimension of one element is not used, and frameworks leave any number there.
      if (shape[static_cast<int>(dim)] != 1) strides[dim] = tensor->strides[dim];
    }
  }
  auto* data = static_cast<std::byte*>(tensor->data);
  if (memory == Memory::needed) {
    if (data == nullptr && shape.elements() > 0) refuse(name, "has no memory: its data pointer is NULL");
    data += tensor->byte_offset;
    if (reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) != 0) {
      refuse(name, fmt::format("begins at an address that is no multiple of {} bytes, the size of its {} elements",
                               size_of(dtype), to_string(dtype)));
    }
  }
  return TensorView(data, dtype, shape, strides);
}

// Puts a dimension of one head after the batch.
TensorView with_heads(const TensorView& view, int full_rank) {
  if (view.shape.rank() == full_rank) return view;
  std::vector<std::int64_t> sizes = view.shape.to_vector();
  sizes.insert(sizes.begin() + 1, 1);
  Strides strides = view.strides;
  std::copy_backward(view.strides.begin() + 1, view.strides.end() - 1, strides.end());
  return TensorView(view.data, view.dtype, Shape(sizes), strides);
}

}  // namespace

device::Place common_place(std::initializer_list<std::pair<std::string_view, const DLTensor*>> tensors) {
  std::optional<device::Place> common;
  for (const auto& [name, tensor] : tensors) {
    if (tensor == nullptr) refuse(name, "is NULL; it is needed");
    const device::Place place = place_of_tensor(name, tensor->device);
    if (!common) common = place;
    if (place != *common) {
      refuse(name, fmt::format("is on {}, {} is on {}; all tensors of a call must be on one device", to_string(place),
                               tensors.begin()->first, to_string(*common)));
    }
  }
  return common.value_or(device::Place{});
}

void require_memory_at(device::Place place,
                       std::initializer_list<std::pair<std::string_view, const DLTensor*>> tensors) {
  for (const auto& [name, tensor] : tensors) {
    const std::span<const std::int64_t> sizes(tensor->shape, static_cast<std::size_t>(tensor->ndim));
    if (std::ranges::count(sizes, 0) > 0) continue;
    const device::PointerInfo found =
        device::pointer_info(static_cast<const std::byte*>(tensor->data) + tensor->byte_offset);
    if (found.managed || found.place == place) continue;
    refuse(name,
           fmt::format("is labelled as memory of {} (DLPack type {}) and lies in memory of {}; label it as what it "
                       "is, or pass a copy",
                       to_string(place), static_cast<int>(tensor->device.device_type), to_string(found.place)));
  }
}

TensorView read_matrix(std::string_view name, const DLTensor* tensor, Memory memory) {
  return with_heads(read(name, tensor, 3, "(B, S, D) or (B, H, S, D)", memory), 4);
}

TensorView read_lse(const DLTensor* tensor) {
  const TensorView view = with_heads(read("lse", tensor, 2, "(B, S) or (B, H, S)", Memory::needed), 3);
  if (view.dtype != DType::f32) refuse("lse", fmt::format("is {}; it must be fp32", to_string(view.dtype)));
  return view;
}

OutgoingTensor::OutgoingTensor(const ConstTensorView& view, bool drop_heads, device::Place place) {
  int rank = 0;
  for (int dim = 0; dim < view.shape.rank(); ++dim) {
    if (drop_heads && dim == 1) continue;
    shape_[static_cast<std::size_t>(rank)] = view.size(dim);
    strides_[static_cast<std::size_t>(rank)] = view.stride(dim);
    ++rank;
  }
  tensor_.data = const_cast<void*>(view.data);  // DLPack has no pointer to const; the functions' signatures say it
  tensor_.device = {place.kind == device::Kind::cpu ? kDLCPU : kDLCUDA, place.index};
  tensor_.ndim = rank;
  const bool is_bfloat = view.dtype == DType::bf16;
  tensor_.dtype = {static_cast<std::uint8_t>(is_bfloat ? kDLBfloat : kDLFloat),
                   static_cast<std::uint8_t>(8 * size_of(view.dtype)), 1};
  tensor_.shape = shape_.data();
  tensor_.strides = strides_.data();
}

}  // namespace syslab::capi
