#include "ops/attention/wgmma/backward.hpp"

#include <array>
#include <numbers>

#include "core/integers.hpp"
#include "device/cuda/launch.hpp"
#include "ops/attention/mma/flash_mma.hpp"
#include "ops/attention/wgmma/backward_kernels.hpp"
#include "ops/attention/wgmma/host.hpp"
#include "ops/attention/wgmma/plan.hpp"
#include "ops/call_memory.hpp"

namespace syslab::attention {
namespace wgmma {
namespace {

// TMA reads statistics of rows and adds parts of dQ in contiguous pieces, which begin where tiles do.
constexpr std::size_t kAlignment = 256;

struct Sizes {
  std::size_t tiles = 0;  // of queries, of all heads
  std::size_t sums_bytes = 0, rows_bytes = 0, turns_bytes = 0;

  std::size_t all() const { return sums_bytes + 2 * rows_bytes + turns_bytes; }
};

Sizes sizes_of(const Problem& problem) {
  const auto padded =
      static_cast<std::size_t>(kBackwardTiles[static_cast<std::size_t>(backward_tile_of(problem))].head_dim);
  constexpr std::size_t kRows = kBackwardQueries;
  Sizes sizes;
  sizes.tiles = static_cast<std::size_t>(problem.batch * problem.heads_q *
                                         ceil_div<std::int64_t>(problem.seq_q, kBackwardQueries));
  sizes.sums_bytes = sizes.tiles * kRows * padded * sizeof(float);
  sizes.rows_bytes = sizes.tiles * kRows * sizeof(float);
  sizes.turns_bytes = (sizes.tiles + 1) * sizeof(unsigned);
  return sizes;
}

template <typename Pointer>
BasicRows<Pointer> rows_of(std::string_view operation, std::string_view name, const BasicTensorView<Pointer>& view) {
  require_aligned_rows(operation, name, ConstTensorView(view.data, view.dtype, view.shape, view.strides));
  return {view.data, view.stride(0), view.stride(1), view.stride(2)};
}

void backward(std::string_view name, const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
              device::Stream stream, bool in_order) {
  const ops::Gpu gpu = require_hopper(name, stream);
  const device::CurrentDevice current(gpu.place);
  const int tile = backward_tile_of(problem);
  const BackwardTileShape shape = kBackwardTiles[static_cast<std::size_t>(tile)];
  const auto map_of = [&](std::string_view tensor, const ConstTensorView& view, int rows) {
    return wgmma::map_of(name, tensor, view, rows, device::Swizzle::bytes_128);
  };

  BackwardParams params;
  params.q = map_of("q", args.q, kBackwardQueries);
  params.dout = map_of("dout", args.dout, kBackwardQueries);
  params.k = map_of("k", args.k, shape.keys());
  params.v = map_of("v", args.v, shape.keys());
  params.dk = map_of("dk", args.dk, 64);
  params.dv = map_of("dv", args.dv, 64);
  params.out_rows = rows_of(name, "out", args.out);
  params.dout_rows = rows_of(name, "dout", args.dout);
  params.dq_rows = rows_of(name, "dq", args.dq);
  params.lse = args.lse.as<float>();
  params.lse_batch = args.lse.stride(0), params.lse_head = args.lse.stride(1), params.lse_row = args.lse.stride(2);
  params.seq_q = static_cast<int>(problem.seq_q);
  params.seq_k = static_cast<int>(problem.seq_k);
  params.batch = static_cast<int>(problem.batch);
  params.heads_q = static_cast<int>(problem.heads_q);
  params.heads_kv = static_cast<int>(problem.heads_kv);
  params.heads_of_kv = params.heads_q / params.heads_kv;
  params.head_dim = static_cast<int>(problem.head_dim);
  params.shift = shift_of(problem);
  params.query_tiles = ceil_div(params.seq_q, kBackwardQueries);
  params.key_tiles = ceil_div(params.seq_k, shape.keys());
  params.section_heads = backward_section(problem, gpu.multiprocessors);
  params.scale = problem.effective_scale();
  params.scale_log2 = params.scale * std::numbers::log2e_v<float>;

  const Sizes sizes = sizes_of(problem);
  const ops::CallMemory memory(workspace, sizes.all(), "flash_wgmma workspace", stream, kAlignment);
  auto* bytes = static_cast<std::byte*>(memory.data());
  params.dq_sums = reinterpret_cast<float*>(bytes);
  params.negated_lse = reinterpret_cast<float*>(bytes += sizes.sums_bytes);
  params.negated_delta = reinterpret_cast<float*>(bytes += sizes.rows_bytes);
  if (in_order) params.turns = reinterpret_cast<unsigned*>(bytes + sizes.rows_bytes);

  constexpr std::array<BackwardLauncher, kBackwardTiles.size()> kLaunchers{launch_backward_64, launch_backward_128,
                                                                           launch_backward_192, launch_backward_256};
  const BackwardLauncher launch = kLaunchers[static_cast<std::size_t>(tile)];
  for (const BackwardKernel kernel : {BackwardKernel::statistics, BackwardKernel::products, BackwardKernel::gradient}) {
    launch(kernel, tile, problem.dtype, params, stream);
  }
}

}  // namespace
}  // namespace wgmma

std::size_t flash_wgmma_backward_workspace(const Problem& problem) {
  return wgmma::sizes_of(problem).all() + wgmma::kAlignment - 1;  // to align it
}

void flash_wgmma_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                          device::Stream stream) {
  wgmma::backward("flash_wgmma backward", problem, args, workspace, stream, false);
}

void flash_wgmma_deterministic_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                                        device::Stream stream) {
  wgmma::backward("flash_wgmma_deterministic backward", problem, args, workspace, stream, true);
}

}  // namespace syslab::attention
