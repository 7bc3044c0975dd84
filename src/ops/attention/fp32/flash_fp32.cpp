// The host side of flash_fp32 and flash_tf32: what they support, the layout of their workspace, which kernels run.
#include "ops/attention/fp32/flash_fp32.hpp"

#include "device/cuda/launch.hpp"
#include "ops/attention/fp32/host.hpp"
#include "ops/attention/fp32/plan.hpp"

namespace syslab::attention {
namespace fp32 {
namespace {

struct ForwardMemory {
  Planes q, k, v;
  Split split;
  float* partial = nullptr;
  float* partial_lse = nullptr;
  std::size_t bytes = 0;

  ForwardMemory(const Problem& problem, const Shape& shape, void* base) {
    const Extents all(problem, shape);
    Carver carver(base);
    q = carver.planes(all.rows_q, all.columns);
    k = carver.planes(all.rows_k, all.columns);
    v = carver.planes(all.rows_k, all.columns);
    split = cut_over_keys(problem, forward_rows(all.columns), 2);
    if (split.chunks > 1) {
      partial = carver.take<float>(all.rows_q * split.chunks * all.columns);
      partial_lse = carver.take<float>(all.rows_q * split.chunks);
    }
    bytes = carver.used();
  }
};

template <class Arithmetic>
void forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace, device::Stream stream,
             std::string_view name) {
  demand_supported(problem, Pass::forward, stream, name);
  const device::CurrentDevice current(stream);
  const Shape shape = shape_of(problem);
  const Scratch scratch(workspace, ForwardMemory(problem, shape, nullptr).bytes, stream, name);
  const ForwardMemory memory(problem, shape, scratch.data());
  const int columns = columns_of(problem);

  PlaneMaker planes(problem, Pass::forward);
  planes.add(args.q, memory.q, shape.padded_q, sign_of(problem));
  planes.add(args.k, memory.k, shape.padded_k);
  planes.add(args.v, memory.v, shape.padded_k);
  planes.run<Arithmetic>(stream);

  ForwardParams params{};
  params.shape = shape;
  params.q = memory.q, params.k = memory.k, params.v = memory.v;
  params.out = rows_of<float>(args.out), params.lse = rows_of<float>(args.lse);
  params.pairs = aligned(params.out, 2);
  params.split = memory.split;
  params.partial = memory.partial, params.partial_lse = memory.partial_lse;
  const int rows = forward_rows(columns);
  const std::int64_t heads = problem.batch * problem.heads_q;
  launch_forward<Arithmetic>(columns, params, heads * ((shape.seq_q + rows - 1) / rows) * memory.split.chunks, stream);
  if (memory.split.chunks == 1) return;

  JoinParams join{};
  join.shape = shape;
  join.heads = static_cast<int>(heads), join.heads_of_batch = shape.heads_q;
  join.rows = shape.seq_q, join.padded_rows = shape.padded_q, join.columns = columns;
  join.split = memory.split;
  join.partial = memory.partial, join.partial_lse = memory.partial_lse;
  join.out = params.out, join.lse = params.lse;
  join.block_rows = rows;
  join_forward(join, stream);
}

}  // namespace
}  // namespace fp32

std::size_t flash_fp32_workspace_bytes(const Problem& problem, Pass pass) {
  fp32::demand_supported(problem, pass, "flash_fp32");  // positions are ints in what follows
  if (pass == Pass::backward) return fp32::backward_workspace_bytes(problem);
  return fp32::with_alignment(fp32::ForwardMemory(problem, fp32::shape_of(problem), nullptr).bytes);
}
void flash_fp32_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                        device::Stream stream) {
  fp32::forward<fp32::Half3>(problem, args, workspace, stream, "flash_fp32");
}
void flash_tf32_forward(const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                        device::Stream stream) {
  fp32::forward<fp32::Tf32>(problem, args, workspace, stream, "flash_tf32");
}
std::size_t flash_tf32_workspace_bytes(const Problem& problem, Pass pass) {
  return flash_fp32_workspace_bytes(problem, pass);
}

}  // namespace syslab::attention
