#include "ops/attention/flash_mma_backward.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>

#include "device/buffer.hpp"
#include "device/launch.hpp"
#include "ops/attention/flash_mma.hpp"
#include "ops/attention/flash_mma_backward_kernels.hpp"
#include "ops/attention/flash_mma_backward_run.hpp"
#include "ops/attention/require_gpu.hpp"

namespace syslab::attention {

namespace {

constexpr std::size_t kAlignment = 256;

// What memory is planned for, without asking a GPU, which a parent process must not: an H100 or H200.
constexpr Gpu kTypical{.multiprocessors = 132, .shared_bytes_per_block = 227 * 1024};

// Planning simulates the grid: worth keeping for the next call, which mostly has the same problem.
const BackwardPlan& planned(const Problem& problem, bool deterministic, const Gpu& gpu) {
  struct Kept {
    Problem problem;
    bool deterministic = false;
    int multiprocessors = 0, shared_limit = 0;
    BackwardPlan plan;
  };
  thread_local std::array<Kept, 8> kept;
  thread_local std::size_t next = 0;
  for (const Kept& one : kept) {
    if (one.multiprocessors == gpu.multiprocessors && one.shared_limit == gpu.shared_bytes_per_block &&
        one.deterministic == deterministic && one.problem == problem) {
      return one.plan;
    }
  }
  Kept& one = kept[next];
  next = (next + 1) % kept.size();
  one = {problem, deterministic, gpu.multiprocessors, gpu.shared_bytes_per_block,
         plan_backward(problem, deterministic, gpu.multiprocessors, gpu.shared_bytes_per_block)};
  return one.plan;
}

// A GPU whose plan needs more takes its own memory in the call.
std::size_t workspace_for(const Problem& problem, bool deterministic) {
  return planned(problem, deterministic, kTypical).workspace_bytes() + kAlignment - 1;  // to align it
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
  const Gpu gpu = require_gpu(name, stream, 80);
  const device::CurrentDevice current(gpu.place);
  const BackwardPlan& plan = planned(problem, deterministic, gpu);
  void* data = workspace.data;
  std::size_t space = workspace.bytes;
  device::Buffer own;
  if (data == nullptr || std::align(kAlignment, plan.workspace_bytes(), data, space) == nullptr) {
    own = device::Buffer(plan.workspace_bytes(), "flash_mma workspace", stream, device::MemoryCategory::workspace);
    data = own.data();
  }
  const int head_dim = kBackwardTiles[static_cast<std::size_t>(plan.tiles)].head_dim;
  const flash::BackwardLauncher launch = head_dim == 32    ? flash::launch_backward_32
                                         : head_dim == 64  ? flash::launch_backward_64
                                         : head_dim == 128 ? flash::launch_backward_128
                                                           : flash::launch_backward_256;
  flash::run_backward(plan, kBackwardTiles[static_cast<std::size_t>(plan.tiles)], launch, problem, args, data, stream);
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
