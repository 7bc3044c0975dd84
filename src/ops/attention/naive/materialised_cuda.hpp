// What the rungs share that hold matrices of scores of the whole batch on a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/attention/attention.hpp"
#include "ops/call_memory.hpp"

namespace syslab::attention {

inline std::int64_t score_rows(const Problem& p) { return p.batch * p.heads_q * p.seq_q; }
inline std::size_t matrix_bytes(const Problem& p, DType dtype) {
  return ops::CallMemory::part_bytes(static_cast<std::size_t>(score_rows(p) * p.seq_k) * size_of(dtype));
}
inline std::size_t row_bytes(const Problem& p) {
  return ops::CallMemory::part_bytes(static_cast<std::size_t>(score_rows(p)) * sizeof(float));
}

inline void* take_matrix(ops::CallMemory& memory, const Problem& p, DType dtype) {
  return memory.take_bytes(matrix_bytes(p, dtype));
}
inline float* take_floats(ops::CallMemory& memory, const Problem& p) {
  return reinterpret_cast<float*>(memory.take_bytes(matrix_bytes(p, DType::f32)));
}
inline float* take_rows(ops::CallMemory& memory, const Problem& p) {
  return reinterpret_cast<float*>(memory.take_bytes(row_bytes(p)));
}

// Why such a rung cannot take the problem; nothing when it can.
std::optional<std::string> refuse_matrices(const Problem& problem, Direction direction);
// f32, bf16 and f16.
const std::vector<DType>& matrix_dtypes();

}  // namespace syslab::attention
