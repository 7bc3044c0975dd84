// A backward pass by the formulas, of terms that a test plants a fault in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

// What the gradients are made of, and how.
struct Terms {
  std::vector<float> q, k, v, dout;
  double scale = 0;
  // The score that a key has in P, of what it is by Q Kᵀ.
  std::function<double(double score, bool visible)> masked = [](double score, bool visible) {
    return visible ? score : -std::numeric_limits<double>::infinity();
  };
  bool own_softmax = false;              // P of these scores alone, without L
  bool own_row_term = false;             // D = rowsum(P ∘ dP), without O
  bool row_term_is_dp = false;           // dS is 0
  bool ds_of_visible = false;            // dS is 0 of hidden keys, whatever P is
  bool dv_of_visible = false;            // … and dV
  bool dq = true, dk = true, dv = true;  // whether each is written, or 0
};

// In contiguous memory, as many heads of keys as of queries. `fault` changes the right terms.
inline Candidate with_gradients(const std::function<void(Terms&)>& fault) {
  Candidate rung{find_rung("naive"), Domain{}};
  rung.name = "hers";
  rung.backward = [fault](const Problem& p, const BackwardArgs& args, ops::Workspace, device::Stream) {
    const auto taken = [](const ConstTensorView& view) {
      const auto* first = view.as<float>();
      return std::vector<float>(first, first + view.elements());
    };
    Terms t{.q = taken(args.q), .k = taken(args.k), .v = taken(args.v), .dout = taken(args.dout)};
    t.scale = p.effective_scale();
    fault(t);
    const auto *out = args.out.as<float>(), *lse = args.lse.as<float>();
    std::vector<double> dq(t.q.size()), dk(t.k.size()), dv(t.v.size());
    const auto dot = [&](const float* a, const float* b) {
      double sum = 0;
      for (std::int64_t d = 0; d < p.head_dim; ++d) sum += static_cast<double>(a[d]) * b[d];
      return sum;
    };
    std::vector<double> weights(static_cast<std::size_t>(p.seq_k)), dp(weights);
    for (std::int64_t i = 0; i < p.batch * p.heads_q * p.seq_q; ++i) {
      const std::int64_t row = i * p.head_dim, first_key = i / p.seq_q * p.seq_k * p.head_dim;
      const std::int64_t seen = p.visible_keys(i % p.seq_q);
      double sum = 0, row_term = dot(out + row, t.dout.data() + row);
      for (std::int64_t j = 0; j < p.seq_k; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const std::int64_t key = first_key + j * p.head_dim;
        const double score = t.masked(t.scale * dot(t.q.data() + row, t.k.data() + key), j < seen);
        sum += weights[at] = std::exp(t.own_softmax ? score : score - lse[i]);
        dp[at] = dot(t.dout.data() + row, t.v.data() + key);
      }
      for (double& weight : weights) weight /= t.own_softmax ? sum : 1;
      if (t.own_row_term) {
        row_term = 0;
        for (std::size_t j = 0; j < weights.size(); ++j) row_term += weights[j] * dp[j];
      }
      for (std::int64_t j = 0; j < p.seq_k; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const std::int64_t key = first_key + j * p.head_dim;
        const bool no_ds = (t.ds_of_visible && j >= seen) || t.row_term_is_dp, no_dv = t.dv_of_visible && j >= seen;
        const double ds = no_ds ? 0.0 : t.scale * weights[at] * (dp[at] - row_term);
        for (std::int64_t d = 0; d < p.head_dim; ++d) {
          const auto at_row = static_cast<std::size_t>(row + d), at_key = static_cast<std::size_t>(key + d);
          if (t.dq) dq[at_row] += ds * t.k[at_key];
          if (t.dk) dk[at_key] += ds * t.q[at_row];
          if (t.dv && !no_dv) dv[at_key] += weights[at] * t.dout[at_row];
        }
      }
    }
    std::copy(dq.begin(), dq.end(), args.dq.as<float>());
    std::copy(dk.begin(), dk.end(), args.dk.as<float>());
    std::copy(dv.begin(), dv.end(), args.dv.as<float>());
  };
  return rung;
}

}  // namespace syslab::attention
