// `flash_mma` and `flash_mma_deterministic`: the rungs that call the kernels, and what they refuse.
#include <fmt/format.h>

#include <limits>

#include "ops/attention/mma/backward.hpp"
#include "ops/attention/mma/flash_mma.hpp"
#include "ops/attention/mma/plan.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 4;

std::optional<std::string> refuse_lengths(const Problem& problem) {
  if (problem.seq_q > kMost || problem.seq_k > kMost) return fmt::format("takes sequences of at most {}", kMost);
  return std::nullopt;
}

}  // namespace

void require_lengths(std::string_view operation, const Problem& problem) {
  if (const auto reason = refuse_lengths(problem)) {
    throw Error(ErrorKind::usage, fmt::format("{} {}, not {}", operation, *reason, to_string(problem)));
  }
}

std::optional<std::string> flash_mma_refusal(const Problem& problem) {
  if (auto reason = refuse_dtype({DType::bf16, DType::f16}, problem)) return reason;
  if (problem.head_dim % 8 != 0 || problem.head_dim < 16 || problem.head_dim > 256) {
    return fmt::format("takes a head_dim that is a multiple of 8 from 16 to 256, not {}", problem.head_dim);
  }
  constexpr std::int64_t kMostOfGrid = 65535;
  if (problem.batch > kMostOfGrid || problem.heads_q > kMostOfGrid) {
    return fmt::format("takes at most {} batches and as many heads", kMostOfGrid);
  }
  if (auto reason = refuse_lengths(problem)) return reason;
  const std::int64_t blocks = problem.batch * problem.heads_q * ((problem.seq_q + 63) / 64);
  if (blocks > kMost) return fmt::format("takes at most {} tiles of 64 rows, not {}", kMost, blocks);
  return std::nullopt;
}

Rung flash_mma_rung() {
  Rung rung;
  rung.name = "flash_mma";
  rung.teaches = "FlashAttention-2 on tensor cores: fragments in registers, copies under way behind the products";
  rung.dtypes = {DType::bf16, DType::f16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.deterministic = false;
  rung.facts = forward_tile_facts(kForwardTiles);
  rung.supports = [](const Problem& problem, Pass) { return flash_mma_refusal(problem); };
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = [](const Problem& problem, Pass pass) {
      return pass == Pass::forward ? flash_mma_forward_workspace(problem) : flash_mma_backward_workspace(problem);
    };
    rung.forward = flash_mma_forward;
    rung.backward = flash_mma_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

Rung flash_mma_deterministic_rung() {
  Rung rung = flash_mma_rung();
  rung.name = "flash_mma_deterministic";
  rung.teaches =
      "flash_mma whose backward pass computes scores twice, for dQ and for dK and dV, and adds nothing by atomics";
  rung.deterministic = true;
  rung.facts.push_back({"variant_of", "flash_mma", ""});
  if constexpr (ops::kBuiltWithCuda) {
    rung.workspace_bytes = [](const Problem& problem, Pass pass) {
      return pass == Pass::forward ? flash_mma_forward_workspace(problem)
                                   : flash_mma_deterministic_backward_workspace(problem);
    };
    rung.backward = flash_mma_deterministic_backward;
  }
  return rung;
}

}  // namespace syslab::attention
