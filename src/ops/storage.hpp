// From a dtype known at run time to a type known at compile time.
#pragma once

#include <utility>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace syslab::ops {

// Returns body.template operator()<T>() with the storage type of a dtype with fp32 arithmetic.
template <typename Body>
decltype(auto) with_storage(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return std::forward<Body>(body).template operator()<float>();
    case DType::f16:
      return std::forward<Body>(body).template operator()<f16>();
    case DType::bf16:
      return std::forward<Body>(body).template operator()<bf16>();
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::internal, "a tensor of fp64 reached a rung whose arithmetic is fp32");
}

// The same for any dtype.
template <typename Body>
decltype(auto) with_any_storage(DType dtype, Body&& body) {
  if (dtype == DType::f64) return std::forward<Body>(body).template operator()<double>();
  return with_storage(dtype, std::forward<Body>(body));
}

}  // namespace syslab::ops
