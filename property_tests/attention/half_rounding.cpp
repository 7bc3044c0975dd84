#include "property_tests/attention/half_rounding.hpp"

#include <algorithm>
#include <cmath>

namespace syslab::attention {
namespace {

using Doubles = std::vector<double>;

std::size_t slot(std::int64_t index) { return static_cast<std::size_t>(index); }
double square(double x) { return x * x; }

double dot(const double* a, const double* b, std::int64_t length) {
  double sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum += a[d] * b[d];
  return sum;
}

// Three times the variance of one rounding to half precision.
class Roundings {
 public:
  explicit Roundings(DType dtype) : unit_(unit_roundoff(dtype)), tiny_(dtype == DType::f16 ? 0x1p-25 : 0.0) {}
  double operator()(double x) const { return square(std::max(unit_ * std::abs(x), tiny_)); }  // c²
  double of_output(double x) const {                                                          // s²
    return square(std::max(x == 0 ? 0.0 : unit_ * std::exp2(std::ilogb(x)), tiny_));
  }

 private:
  double unit_, tiny_;
};

// Calls visit(query row, first key row of its head, visible keys) for each row of queries; both count rows of the whole
// tensor.
template <typename Visit>
void for_each_row(const Problem& p, const Visit& visit) {
  for (std::int64_t head = 0; head < p.batch * p.heads_q; ++head) {
    const std::int64_t group = p.heads_q / p.heads_kv;
    const std::int64_t key_head = head / p.heads_q * p.heads_kv + head % p.heads_q / group;
    for (std::int64_t i = 0; i < p.seq_q; ++i) visit(head * p.seq_q + i, key_head * p.seq_k, p.visible_keys(i));
  }
}

Doubles weights_of(const Problem& p, const double* q, const double* k, std::int64_t visible) {
  Doubles weights(slot(visible));
  if (visible == 0) return weights;
  for (std::int64_t j = 0; j < visible; ++j) {
    weights[slot(j)] = p.effective_scale() * dot(q, k + j * p.head_dim, p.head_dim);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Sums of variances, times three, until they are deviations.
struct Sums {
  explicit Sums(const Doubles& exact, const Roundings& rounding) : elements(exact.size()) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      elements[i] = rounding.of_output(exact[i]);
      along += elements[i] * square(exact[i]);
    }
  }
  HalfRounding deviations() && {
    for (double& element : elements) element = std::sqrt(element / 3);
    return {std::move(elements), std::sqrt(along / 3), independent};
  }
  // A row whose errors are sums of `terms` roundings.
  void add_row(std::int64_t terms, std::int64_t width) {
    independent += std::clamp(static_cast<double>(terms) / 4, 1.0, static_cast<double>(width));
  }
  Doubles elements;
  double along = 0, independent = 0;
};

}  // namespace

HalfRounding rounding_of_output(const Sample& sample, const ForwardOracle& exact) {
  const Problem& p = sample.problem;
  const std::int64_t dim = p.head_dim;
  const Roundings rounding(p.dtype);
  Sums out(exact.out.value, rounding);
  for_each_row(p, [&](std::int64_t row, std::int64_t keys, std::int64_t visible) {
    const Doubles weights = weights_of(p, sample.q.data() + row * dim, sample.k.data() + keys * dim, visible);
    const double* o = exact.out.value.data() + row * dim;
    out.add_row(visible, dim);
    for (std::int64_t j = 0; j < visible; ++j) {
      const double* v = sample.v.data() + (keys + j) * dim;
      const double moved = rounding(weights[slot(j)]);
      double straight = 0, shifted = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        out.elements[slot(row * dim + d)] += moved * std::max(square(v[d]), square(v[d] - o[d]));
        straight += v[d] * o[d];
        shifted += (v[d] - o[d]) * o[d];
      }
      out.along += moved * std::max(square(straight), square(shifted));
    }
  });
  return std::move(out).deviations();
}

GradientRounding rounding_of_gradients(const Sample& sample, const BackwardOracle& exact) {
  const Problem& p = sample.problem;
  const std::int64_t dim = p.head_dim;
  const double scale = p.effective_scale();
  const Roundings rounding(p.dtype);
  Sums dq(exact.dq.value, rounding), dk(exact.dk.value, rounding), dv(exact.dv.value, rounding);
  for_each_row(p, [&](std::int64_t row, std::int64_t keys, std::int64_t visible) {
    const auto query = [&](const Doubles& tensor) { return tensor.data() + row * dim; };
    const auto key = [&](const Doubles& tensor, std::int64_t j) { return tensor.data() + (keys + j) * dim; };
    const double *q = query(sample.q), *dout = query(sample.dout), *x_q = query(exact.dq.value);
    const Doubles weights = weights_of(p, q, key(sample.k, 0), visible);
    Doubles out(slot(dim), 0.0), mean_key(slot(dim), 0.0), dp(slot(visible));
    for (std::int64_t j = 0; j < visible; ++j) {
      const double *k = key(sample.k, j), *v = key(sample.v, j);
      for (std::int64_t d = 0; d < dim; ++d) {
        out[slot(d)] += weights[slot(j)] * v[d];
        mean_key[slot(d)] += weights[slot(j)] * k[d];
      }
      dp[slot(j)] = dot(dout, v, dim);
    }
    const double row_term = dot(out.data(), dout, dim);
    double of_row_term = 0;  // D_i above
    for (std::int64_t d = 0; d < dim; ++d) of_row_term += rounding.of_output(out[slot(d)]) * square(dout[d]);
    for (std::int64_t j = 0; j < visible; ++j) {
      of_row_term += rounding(weights[slot(j)]) * std::max(square(dp[slot(j)]), square(dp[slot(j)] - row_term));
    }

    dq.add_row(visible, dim);
    double weighted_queries = 0;  // Σ_j P·(Q_i·x_j)
    for (std::int64_t j = 0; j < visible; ++j) {
      const double weight = weights[slot(j)], x = dp[slot(j)] - row_term;
      const double cast = rounding(weight), factor = cast * square(x) + rounding(weight * x);
      const double *k = key(sample.k, j), *x_k = key(exact.dk.value, j), *x_v = key(exact.dv.value, j);
      for (std::int64_t d = 0; d < dim; ++d) {
        dq.elements[slot(row * dim + d)] += square(scale * k[d]) * factor;
        dk.elements[slot((keys + j) * dim + d)] += square(scale * q[d]) * (factor + of_row_term * square(weight));
        dv.elements[slot((keys + j) * dim + d)] += square(dout[d]) * cast;
      }
      const double along_k = dot(q, x_k, dim);
      dq.along += square(scale * dot(k, x_q, dim)) * factor;
      dk.along += square(scale * along_k) * factor;
      dv.along += square(dot(dout, x_v, dim)) * cast;
      weighted_queries += weight * along_k;
    }
    for (std::int64_t d = 0; d < dim; ++d) {
      dq.elements[slot(row * dim + d)] += square(scale * mean_key[slot(d)]) * of_row_term;
    }
    dq.along += square(scale * dot(mean_key.data(), x_q, dim)) * of_row_term;
    dk.along += square(scale * weighted_queries) * of_row_term;
  });
  for (std::int64_t key_head = 0; key_head < p.batch * p.heads_kv; ++key_head) {
    std::vector<std::int64_t> seen(slot(p.seq_k), 0);
    for (std::int64_t i = 0; i < p.seq_q; ++i) {
      for (std::int64_t j = 0; j < p.visible_keys(i); ++j) seen[slot(j)] += p.heads_q / p.heads_kv;
    }
    for (const std::int64_t queries : seen) {
      dk.add_row(queries, dim);
      dv.add_row(queries, dim);
    }
  }
  return {std::move(dq).deviations(), std::move(dk).deviations(), std::move(dv).deviations()};
}

}  // namespace syslab::attention
