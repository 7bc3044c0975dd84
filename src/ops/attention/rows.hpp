// Addresses inside attention's four-dimensional views.
#pragma once

#include "core/tensor.hpp"

namespace syslab::attention {

// First element of row (batch, head, position): the last stride is 1, so the row is contiguous.
template <typename T, typename View>
auto* row_of(const View& view, std::int64_t batch, std::int64_t head, std::int64_t position) {
  return view.template as<T>() + batch * view.stride(0) + head * view.stride(1) + position * view.stride(2);
}

// Element (batch, head, position) of lse.
template <typename T, typename View>
auto& element_of(const View& view, std::int64_t batch, std::int64_t head, std::int64_t position) {
  return *row_of<T>(view, batch, head, position);
}

// Calls function(T{}) with the storage type of `dtype`.
template <typename Function>
void with_storage(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f64:
      return function(double{});
    case DType::f32:
      return function(float{});
    case DType::f16:
      return function(f16{});
    case DType::bf16:
      return function(bf16{});
  }
}

}  // namespace syslab::attention
