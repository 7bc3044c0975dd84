// The rungs of the weighted sum, and what they share: for this folder alone.
#pragma once

#include <utility>

#include "ops/weighted_sum/weighted_sum.hpp"

namespace syslab::weighted_sum {

Rung reference_rung();
Rung naive_rung();
Rung tiled_rung();
Rung tiled_cuda_rung();

// What every rung here answers: the dtypes it lists, in both directions.
std::function<std::optional<std::string>(const Problem&, Direction)> supports_dtypes(const ops::RungInfo& info);

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
  throw Error(ErrorKind::internal, "a weighted sum in fp64 reached a rung that carries fp32");
}

}  // namespace syslab::weighted_sum
