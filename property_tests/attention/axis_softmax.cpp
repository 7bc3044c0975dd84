#include "property_tests/attention/axis_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace syslab::attention {
namespace {

constexpr double kNoSum = -std::numeric_limits<double>::infinity();  // the logarithm of 0

// log(e^a + e^b)
double log_of_both(double a, double b) {
  const double most = std::max(a, b);
  return most == kNoSum ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

}  // namespace

bool AxisSoftmax::is_small_enough(const Problem& p) {
  constexpr std::int64_t kMost = 1 << 20;  // scores
  return p.batch * p.heads_q * p.seq_q * p.seq_k <= kMost;
}

AxisSoftmax::AxisSoftmax(const Sample& sample, const Mistake& mistake) : s_(sample), p_(sample.problem), m_(mistake) {
  const std::int64_t heads = p_.batch * p_.heads_q;
  const auto all = static_cast<std::size_t>(heads * p_.seq_q * p_.seq_k);
  scores_.assign(all, kNoSum);
  logarithms_.assign(all, kNoSum);  // there are fewer groups than that
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < p_.seq_q; ++i) {
      const double* const query = s_.q.data() + (head * p_.seq_q + i) * p_.head_dim;
      for (std::int64_t j = 0; j < p_.visible_keys(i); ++j) {
        const double* const key = s_.k.data() + (key_head_of(p_, head) * p_.seq_k + j) * p_.head_dim;
        double dot = 0;
        for (std::int64_t d = 0; d < p_.head_dim; ++d) dot += query[d] * key[d];
        const double score = dot * p_.effective_scale();
        scores_[static_cast<std::size_t>((head * p_.seq_q + i) * p_.seq_k + j)] = score;
        double& logarithm = logarithms_[group_of(head, i, j)];
        logarithm = log_of_both(logarithm, score);
      }
    }
  }
}

std::size_t AxisSoftmax::group_of(std::int64_t head, std::int64_t i, std::int64_t j) const {
  std::int64_t batch = head / p_.heads_q, of_batch = head % p_.heads_q;
  switch (m_.over) {
    case Over::keys:
      j = 0;
      break;
    case Over::queries:
      i = 0;
      break;
    case Over::heads:
      of_batch = 0;
      break;
    case Over::batch_entries:
      batch = 0;
      break;
    case Over::matrices:
      batch = of_batch = 0;
      break;
    case Over::whole_matrix:
      i = j = 0;
      break;
  }
  return static_cast<std::size_t>(((batch * p_.heads_q + of_batch) * p_.seq_q + i) * p_.seq_k + j);
}

AxisSoftmax::Row AxisSoftmax::row(std::int64_t row) const {
  const std::int64_t head = row / p_.seq_q, i = row % p_.seq_q;
  Row result{std::vector<double>(static_cast<std::size_t>(p_.head_dim), 0.0), kNoSum};
  for (std::int64_t j = 0; j < p_.seq_k; ++j) {
    const double score = scores_[static_cast<std::size_t>(row * p_.seq_k + j)];
    const double logarithm = logarithms_[group_of(head, i, j)];
    result.lse = log_of_both(result.lse, score);
    // e^(−∞ − −∞) where all of a group are hidden.
    const double nothing = m_.nan_over ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    const double weight = logarithm == kNoSum ? nothing : std::exp(score - logarithm);
    const double* const value = s_.v.data() + (key_head_of(p_, head) * p_.seq_k + j) * p_.head_dim;
    for (std::int64_t d = 0; d < p_.head_dim; ++d) result.out[static_cast<std::size_t>(d)] += weight * value[d];
  }
  if (m_.lse_over) result.lse = logarithms_[group_of(head, 0, i)];  // as many queries as keys
  return result;
}

}  // namespace syslab::attention
