#include "model/tensor.hpp"

#include "device/memory.hpp"

namespace syslab::model {

std::vector<double> values_of(const ConstTensorView& tensor, device::Stream stream) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(extent_elements(tensor.shape, tensor.strides)) *
                               size_of(tensor.dtype));
  device::copy_now(bytes.data(), tensor.data, bytes.size(), stream);
  return to_doubles({bytes.data(), tensor.dtype, tensor.shape, tensor.strides});
}

}  // namespace syslab::model
