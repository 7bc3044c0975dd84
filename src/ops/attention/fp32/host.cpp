#include "ops/attention/fp32/host.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "core/integers.hpp"
#include "ops/attention/fp32/flash_fp32.hpp"
#include "ops/attention/fp32/plan.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention::fp32 {
namespace {

constexpr std::size_t kAlignment = 256;

// The multiplications and additions of a block with one tile, divided by how many a block does in a microsecond when
// several share the GPU.
double tile_us(const Problem& problem, int rows, int products) {
  constexpr double kFlopsOfASlot = 110e12 / kPlannedBlocks / 1e6;
  return 2.0 * products * rows * kTileRows * columns_of(problem) / kFlopsOfASlot;
}

}  // namespace

Shape shape_of(const Problem& problem) {
  Shape shape{};
  shape.batch = static_cast<int>(problem.batch);
  shape.heads_q = static_cast<int>(problem.heads_q);
  shape.heads_kv = static_cast<int>(problem.heads_kv);
  shape.group = shape.heads_q / shape.heads_kv;
  shape.seq_q = static_cast<int>(problem.seq_q);
  shape.seq_k = static_cast<int>(problem.seq_k);
  shape.head_dim = static_cast<int>(problem.head_dim);
  shape.padded_q = static_cast<int>(round_up(problem.seq_q, kRowPadding));
  shape.padded_k = static_cast<int>(round_up(problem.seq_k, kRowPadding));
  shape.causal = problem.mask != Mask::none;
  shape.offset = problem.mask == Mask::bottom_right ? shape.seq_k - shape.seq_q : 0;
  shape.signed_scale = problem.effective_scale();
  shape.scale = std::abs(shape.signed_scale);
  shape.scale_log2 = static_cast<float>(shape.scale * std::numbers::log2e);
  return shape;
}

Split cut_over_keys(const Problem& problem, int rows, int products) {
  const Shape shape = shape_of(problem);
  std::vector<int> lengths;
  for (int row = 0; row < shape.seq_q; row += rows) lengths.push_back(keys_of(shape, row, rows).end);
  const double left_bytes = 4.0 * rows * columns_of(problem);
  const Cut found = cut(lengths, problem.batch * problem.heads_q, tile_us(problem, rows, products), left_bytes);
  return {found.tiles, found.chunks};
}

Split cut_over_queries(const Problem& problem, int rows, int products) {
  const Shape shape = shape_of(problem);
  std::vector<int> lengths;
  for (int row = 0; row < shape.seq_k; row += rows) {
    const Range queries = queries_of(shape, row);
    lengths.push_back((queries.end - queries.begin) * shape.group);
  }
  const double left_bytes = 8.0 * rows * columns_of(problem);
  const Cut found = cut(lengths, problem.batch * problem.heads_kv, tile_us(problem, rows, products), left_bytes);
  return {found.tiles, found.chunks};
}

void* Carver::take_bytes(std::int64_t bytes) {
  char* const at = base_ == nullptr ? nullptr : base_ + used_;
  used_ += static_cast<std::size_t>(round_up(bytes, kAlignment));
  return at;
}

Extents::Extents(const Problem& problem, const Shape& shape)
    : heads_q(problem.batch * problem.heads_q),
      heads_kv(problem.batch * problem.heads_kv),
      rows_q(heads_q * shape.padded_q),
      rows_k(heads_kv * shape.padded_k),
      columns(columns_of(problem)) {}

PlaneMaker::PlaneMaker(const Problem& problem, Pass pass) : columns_(columns_of(problem)) {
  jobs_.norms = pass == Pass::backward;
  jobs_.head_dim = static_cast<int>(problem.head_dim);
}

void PlaneMaker::add(const ConstTensorView& view, const Planes& to, int padded_rows, float sign) {
  PlaneJob& job = jobs_.job[jobs_.count++];
  job.from = rows_of<const float>(view);
  job.to = to;
  job.heads = static_cast<int>(view.size(1));
  job.rows = static_cast<int>(view.size(2));
  job.padded_rows = padded_rows;
  job.first_block = static_cast<int>(blocks_);
  job.sign = sign;
  job.vectors = aligned(job.from, plane_vector(columns_));
  blocks_ += view.size(0) * view.size(1) * (padded_rows / kTileRows);
}

float sign_of(const Problem& problem) { return problem.effective_scale() < 0 ? -1.0F : 1.0F; }

std::size_t with_alignment(std::size_t bytes) { return bytes + kAlignment - 1; }

Scratch::Scratch(const ops::Workspace& lent, std::size_t bytes, device::Stream stream, std::string_view name) {
  std::size_t space = lent.bytes;
  data_ = lent.data;
  if (data_ == nullptr) {
    own_ = device::Buffer(with_alignment(bytes), name, stream, device::MemoryCategory::workspace);
    data_ = own_.data();
    space = own_.bytes();
  }
  if (std::align(kAlignment, bytes, data_, space) == nullptr) {
    throw Error(ErrorKind::usage, fmt::format("{}: the workspace has {} bytes and {} are needed: ask workspace_bytes() "
                                              "for the same problem and direction",
                                              name, lent.bytes, with_alignment(bytes)));
  }
}

void demand_supported(const Problem& problem, Pass pass, std::string_view name) {
  if (const auto reason = flash_fp32_refusal(problem, pass)) {
    throw Error(ErrorKind::usage, fmt::format("{} {}", name, *reason));
  }
}

void demand_supported(const Problem& problem, Pass pass, device::Stream stream, std::string_view name) {
  demand_supported(problem, pass, name);
  ops::require_gpu(name, stream);
}

}  // namespace syslab::attention::fp32
