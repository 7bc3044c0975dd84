// Numbers to communicate, and the view of them that operations take.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.hpp"

namespace syslab::comm {

using Floats = std::vector<float>;

// Of all, or of the first ones.
inline TensorView view(Floats& of, std::int64_t elements = -1) {
  return {of.data(), DType::f32, {elements < 0 ? static_cast<std::int64_t>(of.size()) : elements}};
}

}  // namespace syslab::comm
