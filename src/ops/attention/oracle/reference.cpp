#include "ops/attention/oracle/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/parallel.hpp"
#include "ops/attention/rows.hpp"

namespace syslab::attention {

namespace {

using Row = std::vector<double>;

double dot(const double* a, const double* b, std::int64_t length) {
  double sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum += a[d] * b[d];
  return sum;
}

void add_scaled(double* to, double factor, const double* from, std::int64_t length) {
  for (std::int64_t d = 0; d < length; ++d) to[d] += factor * from[d];
}

}  // namespace

void reference_forward(const Problem& p, const ForwardArgs& args) {
  const double scale = p.effective_scale();
  device::parallel_for(p.batch * p.heads_q * p.seq_q, [&](std::int64_t index, int) {
    const std::int64_t i = index % p.seq_q, h = index / p.seq_q % p.heads_q, b = index / p.seq_q / p.heads_q;
    const std::int64_t group = h / (p.heads_q / p.heads_kv), visible = p.visible_keys(i);
    double* out = row_of<double>(args.out, b, h, i);
    double& lse = element_of<double>(args.lse, b, h, i);
    std::fill(out, out + p.head_dim, 0.0);
    lse = -std::numeric_limits<double>::infinity();
    if (visible == 0) return;

    Row score(static_cast<std::size_t>(visible));
    const double* q = row_of<double>(args.q, b, h, i);
    for (std::int64_t j = 0; j < visible; ++j) {
      score[static_cast<std::size_t>(j)] = scale * dot(q, row_of<double>(args.k, b, group, j), p.head_dim);
    }
    const double largest = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (double& s : score) sum += s = std::exp(s - largest);
    lse = largest + std::log(sum);
    for (std::int64_t j = 0; j < visible; ++j) {
      add_scaled(out, score[static_cast<std::size_t>(j)] / sum, row_of<double>(args.v, b, group, j), p.head_dim);
    }
  });
}

void reference_backward(const Problem& p, const BackwardArgs& args) {
  const double scale = p.effective_scale();
  const std::int64_t heads_per_group = p.heads_q / p.heads_kv;
  // A group owns its dK and dV, and the dQ of its query heads: no two threads write the same element.
  device::parallel_for(p.batch * p.heads_kv, [&](std::int64_t index, int) {
    const std::int64_t b = index / p.heads_kv, group = index % p.heads_kv;
    for (std::int64_t j = 0; j < p.seq_k; ++j) {
      std::fill_n(row_of<double>(args.dk, b, group, j), p.head_dim, 0.0);
      std::fill_n(row_of<double>(args.dv, b, group, j), p.head_dim, 0.0);
    }
    for (std::int64_t h = group * heads_per_group; h < (group + 1) * heads_per_group; ++h) {
      for (std::int64_t i = 0; i < p.seq_q; ++i) {
        const double* q = row_of<double>(args.q, b, h, i);
        const double* dout = row_of<double>(args.dout, b, h, i);
        const double lse = element_of<double>(args.lse, b, h, i);
        const double row_dot = dot(row_of<double>(args.out, b, h, i), dout, p.head_dim);
        double* dq = row_of<double>(args.dq, b, h, i);
        std::fill_n(dq, p.head_dim, 0.0);
        for (std::int64_t j = 0; j < p.visible_keys(i); ++j) {
          const double* k = row_of<double>(args.k, b, group, j);
          const double probability = std::exp(scale * dot(q, k, p.head_dim) - lse);
          const double dp = dot(dout, row_of<double>(args.v, b, group, j), p.head_dim);
          const double ds = probability * (dp - row_dot);
          add_scaled(row_of<double>(args.dv, b, group, j), probability, dout, p.head_dim);
          add_scaled(dq, scale * ds, k, p.head_dim);
          add_scaled(row_of<double>(args.dk, b, group, j), scale * ds, q, p.head_dim);
        }
      }
    }
  });
}

}  // namespace syslab::attention
