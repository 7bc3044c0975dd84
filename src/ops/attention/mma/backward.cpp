#include "ops/attention/mma/backward.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <utility>

#include "device/cuda/launch.hpp"
#include "ops/attention/mma/backward_kernels.hpp"
#include "ops/attention/mma/backward_run.hpp"
#include "ops/attention/mma/flash_mma.hpp"
#include "ops/call_memory.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

namespace {

constexpr std::size_t kBackwardAlignment = 256;

std::size_t workspace_for(const Problem& problem, bool deterministic) {
  return backward_bytes_to_lend(problem, deterministic) + kBackwardAlignment - 1;  // to align it
}

void backward(std::string_view name, const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
              device::Stream stream, bool deterministic) {
  const std::pair<std::string_view, ConstTensorView> tensors[] = {
      {"q", args.q},       {"k", args.k},   {"v", args.v},   {"out", args.out},
      {"dout", args.dout}, {"dq", args.dq}, {"dk", args.dk}, {"dv", args.dv}};
  for (const auto& [tensor, view] : tensors) {
    require_aligned_rows(name, tensor, view);
    if (std::abs(view.stride(2)) > std::numeric_limits<int>::max()) {
      throw Error(ErrorKind::usage, fmt::format("{}: rows of {} are {} elements apart; at most 2^31 − 1 are possible: "
                                                "make a contiguous copy, or use rung naive_cuda",
                                                name, tensor, view.stride(2)));
    }
  }
  const ops::Gpu gpu = ops::require_gpu(name, stream);
  const device::CurrentDevice current(gpu.place);
  const BackwardPlan plan =
      backward_plan_for_lent(problem, deterministic, gpu.multiprocessors, gpu.shared_bytes_per_block,
                             ops::aligned_bytes(workspace, kBackwardAlignment));
  const ops::CallMemory memory(workspace, plan.workspace_bytes(), "flash_mma workspace", stream, kBackwardAlignment);
  const int head_dim = kBackwardTiles[static_cast<std::size_t>(plan.tiles)].head_dim;
  const flash::BackwardLauncher launch = head_dim == 32    ? flash::launch_backward_32
                                         : head_dim == 64  ? flash::launch_backward_64
                                         : head_dim == 128 ? flash::launch_backward_128
                                                           : flash::launch_backward_256;
  flash::run_backward(plan, kBackwardTiles[static_cast<std::size_t>(plan.tiles)], launch, problem, args, memory.data(),
                      stream);
}

}  // namespace

std::size_t flash_mma_backward_workspace(const Problem& problem) { return workspace_for(problem, false); }

void flash_mma_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                        device::Stream stream) {
  backward("flash_mma backward", problem, args, workspace, stream, false);
}

std::size_t flash_mma_deterministic_backward_workspace(const Problem& problem) { return workspace_for(problem, true); }

void flash_mma_deterministic_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                                      device::Stream stream) {
  backward("flash_mma_deterministic backward", problem, args, workspace, stream, true);
}

}  // namespace syslab::attention
