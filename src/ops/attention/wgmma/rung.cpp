// `flash_wgmma` and `flash_wgmma_deterministic`: the rungs that call the kernels, and what they refuse.
#include <fmt/format.h>

#include <algorithm>

#include "ops/attention/rungs.hpp"
#include "ops/attention/wgmma/backward.hpp"
#include "ops/attention/wgmma/flash_wgmma.hpp"
#include "ops/attention/wgmma/plan.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

std::optional<std::string> flash_wgmma_refusal(const Problem& problem, Pass pass) {
  if (auto reason = refuse_dtype({DType::bf16, DType::f16}, problem)) return reason;
  const int most = pass == Pass::forward ? wgmma::kForwardTiles.back().head_dim : wgmma::kBackwardTiles.back().head_dim;
  if (problem.head_dim % 8 != 0 || problem.head_dim > most) {
    return fmt::format("takes a head_dim that is a multiple of 8 up to {} in the {} pass, not {}", most,
                       to_string(pass), problem.head_dim);
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 29;  // positions and numbers of blocks are ints in the kernels
  if (std::max(problem.seq_q, problem.seq_k) > kMost) return fmt::format("takes sequences of at most {}", kMost);
  const std::int64_t blocks = problem.batch * problem.heads_q * ((std::max(problem.seq_q, problem.seq_k) + 127) / 128);
  if (blocks > kMost) return fmt::format("takes at most {} blocks of 128 rows, not {}", kMost, blocks);
  return std::nullopt;
}

Rung flash_wgmma_rung() {
  Rung rung;
  rung.name = "flash_wgmma";
  rung.teaches = "Hopper's own instructions: a loading thread, rings of barriers, products that run behind the softmax";
  rung.dtypes = {DType::bf16, DType::f16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = rung.maximum_sm = 90;
  rung.deterministic = false;
  rung.facts = forward_tile_facts(wgmma::kForwardTiles);
  rung.supports = flash_wgmma_refusal;
  if constexpr (!ops::kBuiltWithCuda) {
    return ops::without_cuda(rung);
  } else if constexpr (!ops::kBuiltForHopper) {
    rung.unavailable = "needs machine code for compute capability 9.0, which this build has not (Meson: gpu_archs)";
    return rung;
  } else {
    rung.workspace_bytes = [](const Problem& problem, Pass pass) {
      return pass == Pass::forward ? flash_wgmma_forward_workspace(problem) : flash_wgmma_backward_workspace(problem);
    };
    rung.forward = flash_wgmma_forward;
    rung.backward = flash_wgmma_backward;
    return rung;
  }
}

Rung flash_wgmma_deterministic_rung() {
  Rung rung = flash_wgmma_rung();
  rung.name = "flash_wgmma_deterministic";
  rung.teaches =
      "flash_wgmma whose blocks wait for their turn to add to dQ, and begin in an order that makes waits short";
  rung.deterministic = true;
  rung.facts.push_back({"variant_of", "flash_wgmma", ""});
  if constexpr (ops::kBuiltWithCuda && ops::kBuiltForHopper) rung.backward = flash_wgmma_deterministic_backward;
  return rung;
}

}  // namespace syslab::attention
