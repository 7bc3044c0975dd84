// `reference_cuda`: the formulas in double precision on a GPU. The products are cuBLAS's DGEMM over blocks of query
// rows, so that a block's scores take at most 256 MiB and never S×S; between them a row of scores is a block of
// threads.
//
// Napkin maths: an H100 multiplies doubles at 60 TFLOP/s on tensor cores. One head of 16,384 tokens, D = 64, forward
// 4·S²·D = 69 GFLOP: 1.2 ms, and as much for the 2 GiB of scores that go through memory three times. Masked pairs are
// computed and set to zero.
#include <algorithm>
#include <vector>

#include "device/cuda/launch.hpp"
#include "ops/attention/group_products.hpp"
#include "ops/attention/packed.hpp"
#include "ops/attention/rungs.hpp"
#include "ops/attention/scores_cuda.hpp"
#include "ops/call_memory.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {
namespace {

constexpr std::int64_t kScoreBytes = std::int64_t{1} << 28;

// How much is done at once: several whole groups, or some rows of one group.
struct Extent {
  std::int64_t groups = 1, rows = 1;

  static Extent of(const Problem& p, Pass pass) {
    const std::int64_t matrices = pass == Pass::forward ? 1 : 2;
    const std::int64_t all_groups = p.batch * p.heads_kv, all_rows = GroupBlock::rows_of(p);
    const std::int64_t affordable = kScoreBytes / (matrices * p.seq_k * static_cast<std::int64_t>(sizeof(double)));
    const std::int64_t rows = std::clamp<std::int64_t>(affordable, 1, all_rows);
    return {rows < all_rows ? 1 : std::clamp<std::int64_t>(affordable / all_rows, 1, all_groups), rows};
  }
  std::int64_t scores(const Problem& p) const { return groups * rows * p.seq_k; }
};

std::size_t reference_cuda_workspace_bytes(const Problem& p, Pass pass) {
  const std::int64_t matrices = pass == Pass::forward ? 1 : 2;
  return static_cast<std::size_t>(matrices * Extent::of(p, pass).scores(p)) * sizeof(double);
}

// body(block, group, row) for each part of the problem: `block.groups` groups from `group`, `block.rows` rows of each
// from `row`.
template <typename Body>
void for_blocks(const Problem& p, const Extent& extent, const Body& body) {
  const std::int64_t all_groups = p.batch * p.heads_kv, all_rows = GroupBlock::rows_of(p);
  for (std::int64_t group = 0; group < all_groups; group += extent.groups) {
    for (std::int64_t row = 0; row < all_rows; row += extent.rows) {
      body(GroupBlock{std::min(extent.groups, all_groups - group), std::min(extent.rows, all_rows - row), p.seq_k,
                      p.head_dim},
           group, row);
    }
  }
}

class Scores {
 public:
  Scores(const ops::Workspace& lent, const Problem& p, Pass pass, device::Stream stream)
      : p_(p), memory_(lent, reference_cuda_workspace_bytes(p, pass), "attention scores", stream, 4 * sizeof(double)) {
    elements_ = Extent::of(p, pass).scores(p);
  }
  double* first() const { return static_cast<double*>(memory_.data()); }
  double* second() const { return first() + elements_; }
  scores::Rows rows(const GroupBlock& block, std::int64_t group, std::int64_t row) const {
    scores::Rows rows = scores::Rows::all(p_);
    rows.first = group * GroupBlock::rows_of(p_) + row;
    rows.rows = block.groups * block.rows;
    return rows;
  }

 private:
  const Problem& p_;
  ops::CallMemory memory_;  // read four at a time
  std::int64_t elements_ = 0;
};

const double* doubles(const PackedInput& input, std::int64_t at) {
  return static_cast<const double*>(input.data()) + at;
}
double* doubles(const PackedOutput& output, std::int64_t at) { return static_cast<double*>(output.data()) + at; }

void reference_cuda_forward(const Problem& p, const ForwardArgs& args, ops::Workspace workspace,
                            device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("reference_cuda", stream).place);
  const PackedForward tensors(args, stream);
  const Scores memory(workspace, p, Pass::forward, stream);
  const Matrix weights{memory.first(), DType::f64};
  for_blocks(p, Extent::of(p, Pass::forward), [&](const GroupBlock& block, std::int64_t group, std::int64_t row) {
    const std::int64_t queries = (group * GroupBlock::rows_of(p) + row) * p.head_dim,
                       keys = group * p.seq_k * p.head_dim;
    queries_times_keys(block, p.effective_scale(), {doubles(tensors.q, queries), DType::f64},
                       {doubles(tensors.k, keys), DType::f64}, weights, stream);
    scores::softmax(memory.rows(block, group, row), DType::f64, weights.data, DType::f64, weights.data, tensors.lse,
                    stream);
    weights_times_keys(block, 1, weights, {doubles(tensors.v, keys), DType::f64},
                       {doubles(tensors.out, queries), DType::f64}, stream);
  });
  tensors.finish();
}

void reference_cuda_backward(const Problem& p, const BackwardArgs& args, ops::Workspace workspace,
                             device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("reference_cuda", stream).place);
  const PackedBackward tensors(args, stream);
  const Scores memory(workspace, p, Pass::backward, stream);
  const Matrix weights{memory.first(), DType::f64}, ds{memory.second(), DType::f64};
  const double scale = p.effective_scale();
  for_blocks(p, Extent::of(p, Pass::backward), [&](const GroupBlock& block, std::int64_t group, std::int64_t row) {
    const std::int64_t queries = (group * GroupBlock::rows_of(p) + row) * p.head_dim,
                       keys = group * p.seq_k * p.head_dim;
    const ConstMatrix of_q(doubles(tensors.q, queries), DType::f64), of_k(doubles(tensors.k, keys), DType::f64),
        of_v(doubles(tensors.v, keys), DType::f64), of_dout(doubles(tensors.dout, queries), DType::f64);
    queries_times_keys(block, scale, of_q, of_k, weights, stream);
    queries_times_keys(block, 1, of_dout, of_v, ds, stream);
    scores::softmax_gradient_from_lse(memory.rows(block, group, row), DType::f64,
                                      {.scores = weights.data,
                                       .dp = ds.data,
                                       .weights = weights.data,
                                       .ds = ds.data,
                                       .out = doubles(tensors.out, queries),
                                       .dout = doubles(tensors.dout, queries),
                                       .head_dim = p.head_dim},
                                      tensors.lse, stream);
    weights_times_keys(block, scale, ds, of_k, {doubles(tensors.dq, queries), DType::f64}, stream);
    const double keep = row == 0 ? 0 : 1;
    turned_times_queries(block, 1, weights, of_dout, keep, {doubles(tensors.dv, keys), DType::f64}, stream);
    turned_times_queries(block, scale, ds, of_q, keep, {doubles(tensors.dk, keys), DType::f64}, stream);
  });
  tensors.finish();
}

}  // namespace

Rung reference_cuda_rung() {
  Rung rung;
  rung.name = "reference_cuda";
  rung.role = Role::gpu_reference;
  rung.teaches = "the formulas in double precision on a GPU: DGEMM over blocks of rows";
  rung.dtypes = {DType::f64};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Pass) { return refuse_dtype(dtypes, problem); };
  rung.workspace_bytes = reference_cuda_workspace_bytes;
  if constexpr (ops::kBuiltWithCuda) {
    rung.forward = reference_cuda_forward;
    rung.backward = reference_cuda_backward;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::attention
