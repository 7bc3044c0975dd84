// The rungs of the matrix product, and what they share: for this folder alone.
#pragma once

#include <utility>

#include "ops/gemm/gemm.hpp"

namespace syslab::gemm {

Rung reference_rung();
Rung naive_rung();
Rung tiled_rung();
Rung openblas_rung();
Rung cublas_tf32_rung();
Rung cublas_rung();

// What a rung here answers: the dtypes it lists.
std::function<std::optional<std::string>(const Problem&)> supports_dtypes(const ops::RungInfo& info);

// Calls body.template operator()<T>() with the storage type of a dtype whose sums are carried in fp32.
template <typename Body>
void with_storage(DType dtype, Body&& body) {
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
  throw Error(ErrorKind::internal, "a matrix product in fp64 reached a rung that carries fp32");
}

}  // namespace syslab::gemm
