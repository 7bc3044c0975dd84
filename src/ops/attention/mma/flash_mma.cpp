#include "ops/attention/mma/flash_mma.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "device/cuda/launch.hpp"
#include "ops/attention/mma/kernels.hpp"
#include "ops/attention/mma/plan.hpp"
#include "ops/call_memory.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {

namespace {

constexpr std::size_t kForwardAlignment = 16;

flash::RowStrides strides_of(const ConstTensorView& view) { return {view.stride(0), view.stride(1), view.stride(2)}; }

// All but the memory for partial results.
flash::ForwardParams forward_params(const Problem& problem, const ForwardArgs& args, const ForwardPlan& plan) {
  flash::ForwardParams params;
  params.q = args.q.data;
  params.k = args.k.data;
  params.v = args.v.data;
  params.out = args.out.data;
  params.lse = args.lse.as<float>();
  params.q_stride = strides_of(args.q);
  params.k_stride = strides_of(args.k);
  params.v_stride = strides_of(args.v);
  params.out_stride = strides_of(args.out);
  params.lse_stride = strides_of(args.lse);
  params.seq_q = static_cast<int>(problem.seq_q);
  params.seq_k = static_cast<int>(problem.seq_k);
  params.head_dim = static_cast<int>(problem.head_dim);
  params.heads = static_cast<int>(problem.batch * problem.heads_q);
  params.heads_q = static_cast<int>(problem.heads_q);
  params.heads_of_kv = static_cast<int>(problem.heads_q / problem.heads_kv);
  params.shift = problem.mask == Mask::none       ? params.seq_k
                 : problem.mask == Mask::top_left ? 0
                                                  : params.seq_k - params.seq_q;
  params.row_blocks = static_cast<int>(plan.row_blocks);
  params.splits = static_cast<int>(plan.splits);
  params.keys_of_split = static_cast<int>(plan.keys_of_split);
  params.scale_log2 = problem.effective_scale() * std::numbers::log2e_v<float>;
  params.hidden_score = std::copysign(std::numeric_limits<float>::infinity(), -params.scale_log2);
  return params;
}

flash::CombineParams combine_params(const flash::ForwardParams& params, const ForwardTileShape& shape) {
  flash::CombineParams combine;
  combine.out = params.out;
  combine.lse = params.lse;
  combine.partial_out = params.partial_out;
  combine.partial_lse = params.partial_lse;
  combine.out_stride = params.out_stride;
  combine.lse_stride = params.lse_stride;
  combine.seq_q = params.seq_q, combine.seq_k = params.seq_k, combine.head_dim = params.head_dim;
  combine.heads = params.heads, combine.heads_q = params.heads_q;
  combine.shift = params.shift;
  combine.rows_of_block = shape.rows();
  combine.keys_of_split = params.keys_of_split;
  return combine;
}

}  // namespace

void require_aligned_rows(std::string_view operation, std::string_view name, const ConstTensorView& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  if (address % 16 != 0) {
    throw Error(ErrorKind::usage, fmt::format("{}: {} begins at address {:#x}, which is not a multiple of 16: make a "
                                              "contiguous copy, or use rung naive_cuda",
                                              operation, name, address));
  }
  const auto per_16_bytes = static_cast<std::int64_t>(16 / size_of(view.dtype));
  for (int dim = 0; dim < 3; ++dim) {
    if (view.size(dim) > 1 && view.stride(dim) % per_16_bytes != 0) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: {} has stride {} in dimension {}; rows must begin at multiples of 16 bytes, {} "
                              "elements: make a contiguous copy, or use rung naive_cuda",
                              operation, name, view.stride(dim), dim, per_16_bytes));
    }
  }
}

std::size_t flash_mma_forward_workspace(const Problem& problem) {
  const std::size_t bytes = forward_bytes_to_lend(problem);
  return bytes == 0 ? 0 : bytes + kForwardAlignment - 1;  // to align them
}

void flash_mma_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                       device::Stream stream) {
  constexpr std::string_view kName = "flash_mma forward";
  require_aligned_rows(kName, "q", args.q);
  require_aligned_rows(kName, "k", args.k);
  require_aligned_rows(kName, "v", args.v);
  require_aligned_rows(kName, "out", args.out);
  const ops::Gpu gpu = ops::require_gpu(kName, stream);
  const device::CurrentDevice current(gpu.place);
  const ForwardPlan plan =
      forward_plan_for_lent(problem, gpu.multiprocessors, ops::aligned_bytes(workspace, kForwardAlignment));
  const ForwardTileShape& shape = kForwardTiles[static_cast<std::size_t>(plan.tile)];

  flash::ForwardParams params = forward_params(problem, args, plan);
  const ops::CallMemory partial(workspace, partial_bytes(problem, plan), "flash_mma workspace", stream,
                                kForwardAlignment);
  params.partial_out = static_cast<float*>(partial.data());
  if (plan.splits > 1) {
    params.partial_lse = params.partial_out + plan.splits * params.heads * problem.seq_q * problem.head_dim;
  }
  const auto launch = shape.head_dim == 32    ? flash::launch_forward_32
                      : shape.head_dim == 64  ? flash::launch_forward_64
                      : shape.head_dim == 128 ? flash::launch_forward_128
                                              : flash::launch_forward_256;
  launch(plan.tile, problem.dtype, params, stream);
  if (plan.splits == 1) return;
  flash::launch_combine(problem.dtype, combine_params(params, shape), stream);
}

}  // namespace syslab::attention
