// What is said of an attention that a test plants a fault in.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "property_tests/attention/explain.hpp"
#include "property_tests/attention/laws.hpp"

namespace syslab::attention {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Somebody's softmax over the scores of a row, each with whether it is visible: the weights, which are then divided by
// nothing, and the log-sum-exp.
struct Row {
  std::vector<double> weights;
  double lse;
};
using Softmax = std::function<Row(const std::vector<double>& scores, const std::vector<bool>& visible)>;

inline Row subtracting(const std::vector<double>& scores, const std::vector<bool>& visible, double largest) {
  Row row{scores, 0};
  float sum = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    row.weights[j] = visible[j] ? std::exp(static_cast<float>(scores[j] - largest)) : 0.0F;
    sum += static_cast<float>(row.weights[j]);
  }
  for (double& weight : row.weights) weight /= sum;
  row.lse = largest + std::log(sum);
  return row;
}

inline double largest_of(const std::vector<double>& scores, const std::vector<bool>& visible,
                         double largest = -kInfinite) {
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (visible[j]) largest = std::max(largest, scores[j]);
  }
  return largest;
}

inline Row right(const std::vector<double>& scores, const std::vector<bool>& visible) {
  return subtracting(scores, visible, largest_of(scores, visible));
}

// In contiguous memory.
inline Candidate with_softmax(const Softmax& softmax) {
  Candidate rung{find_rung("naive"), Domain{}};
  rung.name = "hers";
  rung.forward = [softmax](const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream) {
    const auto *q = args.q.as<float>(), *k = args.k.as<float>(), *v = args.v.as<float>();
    auto *out = args.out.as<float>(), *lse = args.lse.as<float>();
    const auto keys = static_cast<std::size_t>(p.seq_k);
    for (std::int64_t i = 0; i < p.batch * p.heads_q * p.seq_q; ++i) {
      const std::int64_t first = i / p.seq_q * p.seq_k;
      std::vector<double> scores(keys);
      std::vector<bool> visible(keys);
      for (std::int64_t j = 0; j < p.seq_k; ++j) {
        double dot = 0;
        for (std::int64_t d = 0; d < p.head_dim; ++d) {
          dot += static_cast<double>(q[i * p.head_dim + d]) * k[(first + j) * p.head_dim + d];
        }
        scores[static_cast<std::size_t>(j)] = dot * p.effective_scale();
        visible[static_cast<std::size_t>(j)] = j < p.visible_keys(i % p.seq_q);
      }
      const Row row = softmax(scores, visible);
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        double sum = 0;
        for (std::size_t j = 0; j < keys; ++j) {
          sum += row.weights[j] * v[(first + static_cast<std::int64_t>(j)) * p.head_dim + d];
        }
        out[i * p.head_dim + d] = static_cast<float>(sum);
      }
      lse[i] = static_cast<float>(row.lse);
    }
  };
  return rung;
}

inline Sample sample_of(std::int64_t queries, std::int64_t keys, Mask mask = Mask::none) {
  Sample sample;
  sample.problem = {.seq_q = queries, .seq_k = keys, .head_dim = 16, .mask = mask};
  sample.q = query_values(sample, "q");
  sample.k = key_values(sample, "k");
  sample.v = key_values(sample, "v");
  sample.dout = query_values(sample, "dout");
  return sample;
}

inline std::string explained(const Candidate& rung, Pass pass, const Sample& sample) {
  Wants wants;
  wants.pass = pass;
  const MenuOrReason choice = menu_for(rung, check::Contract::full, wants);
  return explain({rung, check::Contract::full, choice.menu.value(), pass}, "attention.any", sample, pass, false).lines;
}

}  // namespace syslab::attention
