#include "ops/attention/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace syslab::attention {

std::string_view to_string(Mask mask) {
  switch (mask) {
    case Mask::none:
      return "none";
    case Mask::top_left:
      return "top_left";
    case Mask::bottom_right:
      return "bottom_right";
  }
  return "?";
}

float Problem::effective_scale() const {
  return scale != 0.0F ? scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::int64_t Problem::visible_keys(std::int64_t row) const {
  switch (mask) {
    case Mask::none:
      return seq_k;
    case Mask::top_left:
      return std::clamp<std::int64_t>(row + 1, 0, seq_k);
    case Mask::bottom_right:
      return std::clamp<std::int64_t>(row + 1 + seq_k - seq_q, 0, seq_k);
  }
  return 0;
}

std::int64_t Problem::visible_pairs() const {
  if (mask == Mask::none) return seq_q * seq_k;
  // Row r sees clamp(r + 1 + shift, 0, seq_k) keys: first none, then 1, 2, 3, …, then all.
  const std::int64_t shift = mask == Mask::bottom_right ? seq_k - seq_q : 0;
  const std::int64_t first = std::clamp<std::int64_t>(-shift, 0, seq_q);                // first row that sees a key
  const std::int64_t full = std::clamp<std::int64_t>(seq_k - 1 - shift, first, seq_q);  // first row that sees all
  const std::int64_t ramp = full - first;
  const std::int64_t begins_with = first + 1 + shift;  // keys that row `first` sees
  return ramp * begins_with + ramp * (ramp - 1) / 2 + (seq_q - full) * seq_k;
}

std::string to_string(const Problem& problem) {
  return fmt::format("batch {}, heads {}/{}, seq {}×{}, head_dim {}, mask {}, scale {:.6g}, {}{}", problem.batch,
                     problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_k, problem.head_dim,
                     to_string(problem.mask), problem.effective_scale(), to_string(problem.dtype),
                     problem.repeatable ? ", deterministic = 1" : "");
}

namespace {

double elements_q(const Problem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.heads_q) * static_cast<double>(p.seq_q) *
         static_cast<double>(p.head_dim);
}

double elements_kv(const Problem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.heads_kv) * static_cast<double>(p.seq_k) *
         static_cast<double>(p.head_dim);
}

double lse_bytes(const Problem& p) {
  return elements_q(p) / static_cast<double>(p.head_dim) * (p.dtype == DType::f64 ? 8.0 : 4.0);
}

}  // namespace

double forward_flops(const Problem& problem) {
  return 4.0 * static_cast<double>(problem.batch) * static_cast<double>(problem.heads_q) *
         static_cast<double>(problem.visible_pairs()) * static_cast<double>(problem.head_dim);
}

double backward_flops(const Problem& problem) { return 2.5 * forward_flops(problem); }

double forward_bytes(const Problem& problem) {
  const auto size = static_cast<double>(size_of(problem.dtype));
  return size * (2.0 * elements_q(problem) + 2.0 * elements_kv(problem)) + lse_bytes(problem);
}

double backward_bytes(const Problem& problem) {
  const auto size = static_cast<double>(size_of(problem.dtype));
  return size * (4.0 * elements_q(problem) + 4.0 * elements_kv(problem)) + lse_bytes(problem);
}

}  // namespace syslab::attention
