#include "ops/attention/wgmma/flash_wgmma.hpp"

#include <cmath>
#include <numbers>

#include "device/launch.hpp"
#include "device/memory.hpp"
#include "ops/attention/wgmma/host.hpp"
#include "ops/attention/wgmma/kernels.hpp"
#include "ops/attention/wgmma/plan.hpp"
#include "ops/call_memory.hpp"

namespace syslab::attention {
namespace {

constexpr std::string_view kName = "flash_wgmma forward";

}  // namespace

std::size_t flash_wgmma_forward_workspace(const Problem& problem) {
  return problem.mask == Mask::none ? 0 : 2 * sizeof(unsigned) - 1;  // wherever it begins
}

void flash_wgmma_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                         device::Stream stream) {
  const ops::Gpu gpu = wgmma::require_hopper(kName, stream);
  const device::CurrentDevice current(gpu.place);
  const wgmma::ForwardPlan plan = wgmma::plan_forward(problem, gpu.multiprocessors);
  const wgmma::ForwardTileShape& shape = wgmma::kForwardTiles[static_cast<std::size_t>(plan.tile)];
  const device::Swizzle swizzle = shape.head_dim % 64 == 0 ? device::Swizzle::bytes_128 : device::Swizzle::bytes_64;

  wgmma::ForwardParams params;
  params.q = wgmma::map_of(kName, "q", args.q, 64, swizzle);
  params.k = wgmma::map_of(kName, "k", args.k, shape.keys, swizzle);
  params.v = wgmma::map_of(kName, "v", args.v, shape.keys, swizzle);
  params.out = wgmma::map_of(kName, "out", args.out, 64, swizzle);
  params.lse = args.lse.as<float>();
  params.lse_batch = args.lse.stride(0), params.lse_head = args.lse.stride(1), params.lse_row = args.lse.stride(2);
  params.seq_q = static_cast<int>(problem.seq_q);
  params.seq_k = static_cast<int>(problem.seq_k);
  params.heads_q = static_cast<int>(problem.heads_q);
  params.heads_of_kv = static_cast<int>(problem.heads_q / problem.heads_kv);
  params.shift = wgmma::shift_of(problem);
  params.row_blocks = static_cast<int>(plan.row_blocks);
  params.items = static_cast<int>(plan.items);
  params.section_heads = plan.section_heads;
  params.negative = problem.effective_scale() < 0 ? 1 : 0;
  params.scale_log2 = std::abs(problem.effective_scale()) * std::numbers::log2e_v<float>;

  const auto launch = shape.head_dim == 64    ? wgmma::launch_forward_64
                      : shape.head_dim == 96  ? wgmma::launch_forward_96
                      : shape.head_dim == 128 ? wgmma::launch_forward_128
                      : shape.head_dim == 192 ? wgmma::launch_forward_192
                                              : wgmma::launch_forward_256;
  std::int64_t grid = plan.grid;
  if (plan.drawn) {
    if (ops::aligned_bytes(workspace, sizeof(unsigned)) < sizeof(unsigned)) {
      grid = plan.items;  // without a counter the GPU schedules them, one block an item
    } else {
      const ops::CallMemory memory(workspace, sizeof(unsigned), "flash_wgmma counter", stream, alignof(unsigned));
      params.counter = static_cast<unsigned*>(memory.data());
      device::fill_bytes(params.counter, 0, sizeof(unsigned), stream);
    }
  }
  launch(plan.tile, problem.dtype, params, static_cast<int>(grid), stream);
}

}  // namespace syslab::attention
