#include "ops/attention/wgmma/flash_wgmma.hpp"

#include <cmath>
#include <numbers>

#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "ops/attention/combine.hpp"
#include "ops/attention/wgmma/host.hpp"
#include "ops/attention/wgmma/kernels.hpp"
#include "ops/attention/wgmma/plan.hpp"
#include "ops/call_memory.hpp"

namespace syslab::attention {
namespace {

constexpr std::string_view kName = "flash_wgmma forward";
constexpr std::size_t kAlignment = ops::CallMemory::kAlignment;

void combine(const Problem& problem, const wgmma::ForwardPlan& plan, const ForwardArgs& args,
             const wgmma::ForwardParams& params, device::Stream stream) {
  const wgmma::ForwardTileShape& shape = wgmma::kForwardTiles[static_cast<std::size_t>(plan.tile)];
  flash::CombineParams combined;
  combined.out = args.out.data;
  combined.lse = params.lse;
  combined.partial_out = params.partial_out;
  combined.partial_lse = params.partial_lse;
  combined.out_stride = {args.out.stride(0), args.out.stride(1), args.out.stride(2)};
  combined.lse_stride = {params.lse_batch, params.lse_head, params.lse_row};
  combined.seq_q = params.seq_q, combined.seq_k = params.seq_k, combined.head_dim = params.head_dim;
  combined.heads = params.heads, combined.heads_q = params.heads_q;
  combined.shift = params.shift;
  combined.rows_of_block = shape.rows();
  combined.keys_of_split = params.blocks_of_split * shape.keys;
  flash::launch_combine(problem.dtype, combined, stream);
}

}  // namespace

std::size_t flash_wgmma_forward_workspace(const Problem& problem) {
  const std::size_t bytes = wgmma::forward_bytes_to_lend(problem);
  return bytes == 0 ? 0 : bytes + kAlignment - 1;  // wherever it begins
}

void flash_wgmma_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                         device::Stream stream) {
  const ops::Gpu gpu = wgmma::require_hopper(kName, stream);
  const device::CurrentDevice current(gpu.place);
  const std::size_t lent = ops::aligned_bytes(workspace, kAlignment);
  const wgmma::ForwardPlan plan = wgmma::forward_plan_for_lent(problem, gpu.multiprocessors, lent);
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
  params.heads = static_cast<int>(problem.batch * problem.heads_q);
  params.head_dim = static_cast<int>(problem.head_dim);
  params.row_blocks = static_cast<int>(plan.row_blocks);
  params.items_of_head = static_cast<int>(plan.items_of_head);
  params.blocks_of_split = static_cast<int>(plan.blocks_of_split);
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
  const std::size_t partial = wgmma::partial_bytes(problem, plan);  // a multiple of what a counter is aligned to
  // Memory of its own, if partial results need that, has room for a counter too.
  const bool counted = plan.drawn && (lent >= partial + sizeof(unsigned) || lent < partial);
  const ops::CallMemory memory(workspace, partial + (counted ? sizeof(unsigned) : 0), "flash_wgmma workspace", stream,
                               kAlignment);
  if (partial > 0) {
    params.partial_out = static_cast<float*>(memory.data());
    params.partial_lse = params.partial_out + plan.splits * params.heads * problem.seq_q * problem.head_dim;
  }
  if (counted) {
    params.counter = reinterpret_cast<unsigned*>(static_cast<std::byte*>(memory.data()) + partial);
    device::fill_bytes(params.counter, 0, sizeof(unsigned), stream);
  } else if (plan.drawn) {
    grid = plan.items;  // without a counter the GPU schedules them, one block an item
  }
  launch(plan.tile, problem.dtype, params, static_cast<int>(grid), stream);
  if (plan.splits > 1) combine(problem, plan, args, params, stream);
}

}  // namespace syslab::attention
