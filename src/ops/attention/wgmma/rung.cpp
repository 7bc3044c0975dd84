// `flash_wgmma`: the rung in front of the kernels, and what it refuses.
#include <fmt/format.h>

#include <algorithm>

#include "ops/attention/rungs.hpp"
#include "ops/attention/wgmma/flash_wgmma.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

std::optional<std::string> flash_wgmma_refusal(const Problem& problem, Direction direction) {
  if (direction == Direction::backward) return "has no backward pass yet; flash_mma has one, from the same O and L";
  if (auto reason = refuse_dtype({DType::bf16, DType::f16}, problem)) return reason;
  if (problem.head_dim % 8 != 0) {
    return fmt::format("takes a head_dim that is a multiple of 8 up to 256, not {}", problem.head_dim);
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 29;  // positions and numbers of blocks are ints in the kernels
  if (std::max(problem.seq_q, problem.seq_k) > kMost) return fmt::format("takes sequences of at most {}", kMost);
  const std::int64_t blocks = problem.batch * problem.heads_q * ((problem.seq_q + 127) / 128);
  if (blocks > kMost) return fmt::format("takes at most {} blocks of 128 rows, not {}", kMost, blocks);
  return std::nullopt;
}

Rung flash_wgmma_rung() {
  Rung rung;
  rung.name = "flash_wgmma";
  rung.teaches = "Hopper's own instructions: a loading thread, rings of barriers, products that run behind the softmax";
  rung.dtypes = {DType::bf16, DType::f16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = 90;
  rung.supports = flash_wgmma_refusal;
  if constexpr (!ops::kBuiltWithCuda) {
    return ops::without_cuda(rung);
  } else if constexpr (!ops::kBuiltForHopper) {
    rung.unavailable = "needs machine code for compute capability 9.0, which this build has not (Meson: gpu_archs)";
    return rung;
  } else {
    rung.workspace_bytes = [](const Problem& problem, Direction) { return flash_wgmma_forward_workspace(problem); };
    rung.forward = flash_wgmma_forward;
    rung.backward = [](const Problem& problem, const BackwardArgs&, ops::Workspace, device::Stream) {
      throw Error(ErrorKind::usage, fmt::format("flash_wgmma {}", *flash_wgmma_refusal(problem, Direction::backward)));
    };
    return rung;
  }
}

}  // namespace syslab::attention
