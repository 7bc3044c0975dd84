// Bytes of a tensor's elements.
#pragma once

#include "core/tensor.hpp"

namespace syslab::parallel {

inline std::size_t bytes_of(const ConstTensorView& view) {
  return static_cast<std::size_t>(view.elements()) * size_of(view.dtype);
}

}  // namespace syslab::parallel
