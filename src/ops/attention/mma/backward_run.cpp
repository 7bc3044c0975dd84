#include "ops/attention/mma/backward_run.hpp"

#include <numbers>

#include "core/integers.hpp"

namespace syslab::attention::flash {

namespace {

template <typename Pointer>
BasicOperand<Pointer> operand(const BasicTensorView<Pointer>& view) {
  return {view.data, view.stride(0), view.stride(1), static_cast<int>(view.stride(2))};
}

BackwardParams params_of(const BackwardPlan& plan, const Problem& problem, const BackwardArgs& args, void* workspace) {
  BackwardParams p;
  p.q = operand(args.q), p.k = operand(args.k), p.v = operand(args.v);
  p.out = operand(args.out), p.dout = operand(args.dout);
  p.dq = operand(args.dq), p.dk = operand(args.dk), p.dv = operand(args.dv);
  p.lse = args.lse.as<float>();
  p.lse_batch = args.lse.stride(0), p.lse_head = args.lse.stride(1), p.lse_row = args.lse.stride(2);
  p.seen = seen_by(problem);
  p.batch = static_cast<int>(problem.batch), p.head_dim = static_cast<int>(problem.head_dim);
  p.heads_q = static_cast<int>(problem.heads_q), p.heads_kv = static_cast<int>(problem.heads_kv);
  p.scale = problem.effective_scale();
  p.scale_log2 = p.scale * std::numbers::log2e_v<float>;
  p.rows_q = round_up(p.seen.seq_q, kBackwardRowPad), p.rows_k = round_up(p.seen.seq_k, kBackwardRowPad);
  auto* bytes = static_cast<std::byte*>(workspace);
  p.statistics = reinterpret_cast<float*>(bytes);
  p.dq_parts = reinterpret_cast<float*>(bytes += plan.statistics_bytes);
  p.dk_parts = reinterpret_cast<float*>(bytes += plan.dq_bytes);
  p.dv_parts = reinterpret_cast<float*>(bytes + plan.dkv_bytes);
  p.keys_steps = plan.keys.steps, p.queries_steps = plan.queries.steps;
  return p;
}

// The gradient `to`, of queries or of keys, from its parts.
Sum sum_of(const BackwardParams& p, const float* parts, const Result& to, bool of_queries, int head_dim) {
  Sum sum;
  sum.parts = parts, sum.to = to;
  sum.heads = of_queries ? p.heads_q : p.heads_kv;
  sum.rows = of_queries ? p.seen.seq_q : p.seen.seq_k;
  sum.padded_rows = of_queries ? p.rows_q : p.rows_k;
  sum.part_stride = static_cast<std::int64_t>(p.batch) * sum.heads * sum.padded_rows * head_dim;
  sum.blocks = static_cast<int>((sum.part_stride / 8 + kSumThreads - 1) / kSumThreads);
  return sum;
}

}  // namespace

void run_backward(const BackwardPlan& plan, const BackwardTiles& tiles, BackwardLauncher launch, const Problem& problem,
                  const BackwardArgs& args, void* workspace, device::Stream stream) {
  BackwardParams p = params_of(plan, problem, args, workspace);
  const auto queue = [&](BackwardKernel kernel, std::int64_t blocks, int parts) {
    launch(kernel, plan.tiles, problem.dtype, p, {blocks, parts}, stream);
  };
  if (plan.deterministic) {
    queue(BackwardKernel::queries, plan.queries.tiles, plan.queries.parts);
    queue(BackwardKernel::keys, plan.keys.tiles, plan.keys.parts);
  } else {
    queue(BackwardKernel::statistics, problem.batch * problem.heads_q * (p.rows_q / kStatisticsRows), 1);
    queue(BackwardKernel::fused, plan.keys.tiles, plan.keys.parts);
  }

  std::size_t count = 0;
  if (plan.dq_bytes != 0) {
    Sum& dq = p.sums[count++] = sum_of(p, p.dq_parts, p.dq, true, tiles.head_dim);
    dq.scale = p.scale;
    dq.cut = plan.deterministic ? Sum::Cut::queries : Sum::Cut::one;
    dq.tile = tiles.queries.queries, dq.other_tile = tiles.queries.keys;
  }
  if (plan.dkv_bytes != 0) {
    const KeysTile& keys = plan.deterministic ? tiles.keys : tiles.fused;
    Sum& dk = p.sums[count++] = sum_of(p, p.dk_parts, p.dk, false, tiles.head_dim);
    dk.cut = Sum::Cut::keys;
    dk.tile = keys.keys, dk.other_tile = keys.queries;
    Sum& dv = p.sums[count++] = dk;
    dk.scale = p.scale;
    dv.parts = p.dv_parts, dv.to = p.dv;
  }
  std::int64_t blocks = 0;
  for (const Sum& sum : p.sums) blocks += sum.blocks;
  if (count != 0) queue(BackwardKernel::sum, blocks, 1);
}

}  // namespace syslab::attention::flash
