#include "device/cuda/tensor_map.hpp"

#include <cuda.h>
#include <cstring>
#include <string>

#include "device/cuda/cuda.cuh"

namespace syslab::device {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
static_assert(alignof(TensorMap) >= alignof(CUtensorMap));

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function, looked up by name, since we do not link with the driver.
Encode encode_function() {
  static const Encode function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
          "find cuTensorMapEncodeTiled in the driver", "cudaGetDriverEntryPointByVersion");
    if (found == nullptr || result != cudaDriverEntryPointSuccess) {
      throw Error(ErrorKind::device,
                  "the driver has no cuTensorMapEncodeTiled, which copies by tensor maps need: "
                  "install a driver for CUDA 12.0 or later");
    }
    return reinterpret_cast<Encode>(found);
  }();
  return function;
}

}  // namespace

TensorMap make_tensor_map(const ConstTensorView& view, int rows, Swizzle swizzle) {
  constexpr cuuint64_t kElementBytes = 2;
  const int span = swizzle == Swizzle::bytes_64 ? 64 : 128;
  cuuint64_t sizes[4], strides[3];
  for (int dim = 0; dim < 4; ++dim) sizes[dim] = static_cast<cuuint64_t>(view.size(3 - dim));
  for (int dim = 0; dim < 3; ++dim) {
    // The stride of a dimension of one element is never used.
    strides[dim] = view.size(2 - dim) == 1 ? 16 : static_cast<cuuint64_t>(view.stride(2 - dim)) * kElementBytes;
  }
  const cuuint32_t box[4] = {static_cast<cuuint32_t>(span / kElementBytes), static_cast<cuuint32_t>(rows), 1, 1};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result = encode_function()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(view.data),
                                            sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                            span == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
                                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::string text;  // fmt's checked format strings are beyond nvcc 13.0
    for (int dim = 0; dim < 4; ++dim) text += (dim > 0 ? " × " : "") + std::to_string(view.size(dim));
    text += " elements with strides of ";
    for (int dim = 0; dim < 4; ++dim) text += (dim > 0 ? ", " : "") + std::to_string(view.stride(dim));
    throw Error(ErrorKind::device, "the driver refuses to map a tensor of " + text +
                                       " for copies: cuTensorMapEncodeTiled gives error " + std::to_string(result));
  }
  TensorMap made;
  std::memcpy(made.data.data(), &map, sizeof(map));
  return made;
}

}  // namespace syslab::device
