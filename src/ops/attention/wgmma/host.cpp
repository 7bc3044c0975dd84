#include "ops/attention/wgmma/host.hpp"

#include <fmt/format.h>

#include "ops/attention/mma/flash_mma.hpp"

namespace syslab::attention::wgmma {

device::TensorMap map_of(std::string_view operation, std::string_view name, const ConstTensorView& view, int rows,
                         device::Swizzle swizzle) {
  require_aligned_rows(operation, name, view);
  for (int dim = 0; dim < 3; ++dim) {
    if (view.size(dim) > 1 && view.stride(dim) <= 0) {
      throw Error(ErrorKind::usage, fmt::format("{}: {} has stride {} in dimension {}; the copy engine takes positive "
                                                "ones: make a contiguous copy, or use rung flash_mma",
                                                operation, name, view.stride(dim), dim));
    }
  }
  return device::make_tensor_map(view, rows, swizzle);
}

ops::Gpu require_hopper(std::string_view operation, device::Stream stream) {
  const ops::Gpu gpu = ops::require_gpu(operation, stream);
  if (gpu.sm != 90) {
    throw Error(ErrorKind::device, fmt::format("{} runs on GPUs of compute capability 9.0 alone; GPU {} has {}.{}: use "
                                               "rung flash_mma",
                                               operation, gpu.place.index, gpu.sm / 10, gpu.sm % 10));
  }
  return gpu;
}

int shift_of(const Problem& problem) {
  switch (problem.mask) {
    case Mask::none:
      return static_cast<int>(problem.seq_k);
    case Mask::top_left:
      return 0;
    case Mask::bottom_right:
      return static_cast<int>(problem.seq_k - problem.seq_q);
  }
  return 0;
}

}  // namespace syslab::attention::wgmma
