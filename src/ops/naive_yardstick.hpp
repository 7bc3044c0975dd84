// Which rungs are compared with the naive rung.
#pragma once

#include "core/dtype.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// Whether Operation::naive is set for a rung with outputs of that dtype: in half precision, if the rung "naive" can
// read the same tensors. It runs on the CPU, so GPU rungs are excluded.
inline bool held_against_naive(const RungInfo& rung, DType dtype) {
  return size_of(dtype) == 2 && rung.device == device::Kind::cpu && rung.name != "naive";
}

}  // namespace syslab::ops
