// `flash_fp32` and `flash_tf32`: the rungs that call the kernels, and what they refuse.
#include <fmt/format.h>

#include <algorithm>

#include "ops/attention/fp32/flash_fp32.hpp"
#include "ops/attention/fp32/plan.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

std::optional<std::string> flash_fp32_refusal(const Problem& problem, Pass) {
  if (auto reason = refuse_dtype({DType::f32}, problem)) return reason;
  if (problem.head_dim > 128) return fmt::format("takes a head_dim of at most 128, not {}", problem.head_dim);
  constexpr std::int64_t kMost = std::int64_t{1} << 29;  // positions are ints in the kernels
  if (std::max(problem.seq_q, problem.seq_k) > kMost) return fmt::format("takes sequences of at most {}", kMost);
  const std::int64_t tiles = problem.batch * problem.heads_q * (std::max(problem.seq_q, problem.seq_k) / 64 + 2);
  if (tiles > kMost / 32) return fmt::format("takes at most {} tiles of 64 rows, not {}", kMost / 32, tiles);
  return std::nullopt;
}

namespace {

Rung common(const char* name, const char* teaches) {
  Rung rung;
  rung.name = name;
  rung.teaches = teaches;
  rung.dtypes = {DType::f32};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = flash_fp32_refusal;
  for (const int columns : fp32::kColumnsOfPlanes) {
    rung.facts.push_back(forward_tile_fact(columns, fp32::forward_rows(columns), fp32::forward_keys(columns)));
  }
  return rung;
}

}  // namespace

Rung flash_tf32_rung() {
  Rung rung = common("flash_tf32", "one TF32 product for each of fp32: three decimal digits for speed, and says so");
  rung.tf32 = true;
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = flash_tf32_workspace_bytes;
    rung.forward = flash_tf32_forward;
    rung.backward = flash_tf32_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

Rung flash_fp32_rung() {
  Rung rung = common("flash_fp32", "fp32 accuracy from fp16 tensor cores: scaled values in two halves, three products");
  rung.facts.push_back({"works", "each number in two halves, multiplied in three products", ""});
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = flash_fp32_workspace_bytes;
    rung.forward = flash_fp32_forward;
    rung.backward = flash_fp32_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::attention
