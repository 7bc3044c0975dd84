#include "ops/attention/naive/materialised_cuda.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/attention/rungs.hpp"

namespace syslab::attention {

const std::vector<DType>& matrix_dtypes() {
  static const std::vector<DType> dtypes{DType::f32, DType::bf16, DType::f16};
  return dtypes;
}

std::optional<std::string> refuse_matrices(const Problem& problem, Pass) {
  if (auto reason = refuse_dtype(matrix_dtypes(), problem)) return reason;
  // A row of scores is a block of threads, and the library counts rows and keys of a product in ints.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (problem.seq_k > kMost) return fmt::format("takes at most {} keys, not {}", kMost, problem.seq_k);
  if (score_rows(problem) > kMost) {
    return fmt::format("takes at most {} queries in all heads and batches, not {}", kMost, score_rows(problem));
  }
  return std::nullopt;
}

}  // namespace syslab::attention
