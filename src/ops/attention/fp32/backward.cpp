// The host side of the backward pass of flash_fp32 and flash_tf32.
#include "ops/attention/fp32/flash_fp32.hpp"

#include <algorithm>

#include "device/cuda/launch.hpp"
#include "ops/attention/fp32/host.hpp"
#include "ops/attention/fp32/plan.hpp"

namespace syslab::attention {
namespace fp32 {
namespace {

struct BackwardMemory {
  Planes q, k, v, dout;
  float* shift;
  float* rest;
  float* delta;
  int* delta_scale;
  Split over_queries, over_keys;
  float* partial = nullptr;  // first of dK and dV, then of dQ: one after the other in the stream
  std::size_t bytes = 0;

  BackwardMemory(const Problem& problem, const Shape& shape, void* base) {
    const Extents all(problem, shape);
    Carver carver(base);
    q = carver.planes(all.rows_q, all.columns);
    k = carver.planes(all.rows_k, all.columns);
    v = carver.planes(all.rows_k, all.columns);
    dout = carver.planes(all.rows_q, all.columns);
    shift = carver.take<float>(all.rows_q);
    rest = carver.take<float>(all.rows_q);
    delta = carver.take<float>(all.rows_q);
    delta_scale = carver.take<int>(all.rows_q / kTileRows);
    over_queries = cut_over_queries(problem, kGradientRows, 4);
    over_keys = cut_over_keys(problem, kGradientRows, 3);
    const std::int64_t keys = over_queries.chunks > 1 ? 2 * all.rows_k * over_queries.chunks : 0;
    const std::int64_t queries = over_keys.chunks > 1 ? all.rows_q * over_keys.chunks : 0;
    partial = carver.take<float>(std::max(keys, queries) * all.columns);
    bytes = carver.used();
  }
};

void join(const Shape& shape, const Rows<float>& first, const Rows<float>& second, bool keys, int columns,
          const Split& split, const float* partial, int block_rows, device::Stream stream) {
  GradientJoinParams params{};
  params.shape = shape;
  params.first = first, params.second = second;
  params.keys = keys;
  params.heads_of_batch = keys ? shape.heads_kv : shape.heads_q;
  params.heads = shape.batch * params.heads_of_batch;
  params.rows = keys ? shape.seq_k : shape.seq_q;
  params.padded_rows = keys ? shape.padded_k : shape.padded_q;
  params.columns = columns;
  params.block_rows = block_rows;
  params.split = split;
  params.partial = partial;
  join_gradients(params, stream);
}

template <class Arithmetic>
void backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream stream,
              std::string_view name) {
  demand_supported(problem, Pass::backward, stream, name);
  const device::CurrentDevice current(stream);
  const Shape shape = shape_of(problem);
  const Scratch scratch(workspace, BackwardMemory(problem, shape, nullptr).bytes, stream, name);
  const BackwardMemory memory(problem, shape, scratch.data());
  const int columns = columns_of(problem);

  PlaneMaker planes(problem, Pass::backward);
  planes.add(args.q, memory.q, shape.padded_q, sign_of(problem));
  planes.add(args.k, memory.k, shape.padded_k);
  planes.add(args.v, memory.v, shape.padded_k);
  planes.add(args.dout, memory.dout, shape.padded_q);
  planes.run<Arithmetic>(stream);

  const std::int64_t heads_q = problem.batch * problem.heads_q, heads_kv = problem.batch * problem.heads_kv;
  StatisticsParams statistics{};
  statistics.shape = shape;
  statistics.out = rows_of<const float>(args.out), statistics.dout = rows_of<const float>(args.dout);
  statistics.lse = rows_of<const float>(args.lse);
  statistics.shift = memory.shift, statistics.rest = memory.rest, statistics.delta = memory.delta,
  statistics.delta_scale = memory.delta_scale;
  make_statistics(statistics, stream);

  BackwardParams params{};
  params.shape = shape;
  params.q = memory.q, params.k = memory.k, params.v = memory.v, params.dout = memory.dout;
  params.shift = memory.shift, params.rest = memory.rest, params.delta = memory.delta,
  params.delta_scale = memory.delta_scale;
  params.partial = memory.partial;

  params.first = rows_of<float>(args.dk), params.second = rows_of<float>(args.dv);
  params.pairs_first = aligned(params.first, 2), params.pairs_second = aligned(params.second, 2);
  params.split = memory.over_queries;
  launch_key_gradients<Arithmetic>(
      columns, params, heads_kv * ((shape.seq_k + kGradientRows - 1) / kGradientRows) * params.split.chunks, stream);
  if (params.split.chunks > 1) {
    join(shape, params.first, params.second, true, columns, params.split, memory.partial, kGradientRows, stream);
  }

  params.first = rows_of<float>(args.dq);
  params.pairs_first = aligned(params.first, 2);
  params.split = memory.over_keys;
  launch_query_gradients<Arithmetic>(
      columns, params, heads_q * ((shape.seq_q + kGradientRows - 1) / kGradientRows) * params.split.chunks, stream);
  if (params.split.chunks > 1) {
    join(shape, params.first, params.first, false, columns, params.split, memory.partial, kGradientRows, stream);
  }
}

}  // namespace

std::size_t backward_workspace_bytes(const Problem& problem) {
  return with_alignment(BackwardMemory(problem, shape_of(problem), nullptr).bytes);
}

}  // namespace fp32

void flash_fp32_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                         device::Stream stream) {
  fp32::backward<fp32::Half3>(problem, args, workspace, stream, "flash_fp32");
}
void flash_tf32_backward(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                         device::Stream stream) {
  fp32::backward<fp32::Tf32>(problem, args, workspace, stream, "flash_tf32");
}

}  // namespace syslab::attention
