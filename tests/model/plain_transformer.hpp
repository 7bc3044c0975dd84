// The model of the hand-out once more, written straight down in double precision: no views, no operators, one loop
// nest a formula, logits and loss only. What the model of src/model is held against.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/config.hpp"

namespace syslab::model::plain {

using Matrix = std::vector<std::vector<double>>;
// The weights of a parameter by name, row-major.
using Weights = std::function<const std::vector<double>&(const std::string& name)>;

inline std::vector<double> linear(const std::vector<double>& x, const std::vector<double>& w) {
  std::vector<double> y(w.size() / x.size());
  for (std::size_t o = 0; o < y.size(); ++o) {
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
  }
  return y;
}

inline std::vector<double> norm(const std::vector<double>& x, const std::vector<double>& w) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double rms = std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = w[i] * x[i] / rms;
  return y;
}

// Pair k of a head at a position, turned in place: interleaved pairs, which give the scores of either layout.
inline void rotate(std::vector<double>& row, std::size_t head, std::size_t dim, std::size_t position, double theta) {
  for (std::size_t k = 0; k < dim / 2; ++k) {
    const double angle =
        static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(k) / static_cast<double>(dim));
    double& first = row[head * dim + 2 * k];
    double& second = row[head * dim + 2 * k + 1];
    const double a = first, b = second;
    first = std::cos(angle) * a - std::sin(angle) * b;
    second = std::sin(angle) * a + std::cos(angle) * b;
  }
}

// One sequence's attention: rows of q, k, v hold heads side by side.
inline Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v, std::size_t heads) {
  const std::size_t width = q.front().size(), dim = width / heads;
  // Attention's problem holds its scale as a float: part of what is computed, in fp64 too.
  const double scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  Matrix out(q.size(), std::vector<double>(width));
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < q.size(); ++i) {
      std::vector<double> weight(i + 1);
      double sum = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::size_t c = 0; c < dim; ++c) score += q[i][h * dim + c] * k[j][h * dim + c];
        sum += weight[j] = std::exp(score * scale);
      }
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t c = 0; c < dim; ++c) out[i][h * dim + c] += weight[j] / sum * v[j][h * dim + c];
      }
    }
  }
  return out;
}

// Logits of one sequence, a row a token.
inline Matrix logits(const ModelConfig& config, const Weights& weights, const std::vector<std::int64_t>& ids) {
  const auto d = static_cast<std::size_t>(config.d_model), heads = static_cast<std::size_t>(config.heads);
  const std::vector<double>& table = weights("token_embeddings.weight");
  Matrix x;
  for (const std::int64_t id : ids) {
    const auto first = table.begin() + id * config.d_model;
    x.emplace_back(first, first + config.d_model);
  }
  const auto each = [](const Matrix& rows, const auto& function) {
    Matrix made;
    for (const auto& row : rows) made.push_back(function(row));
    return made;
  };
  const auto add = [](Matrix& to, const Matrix& what) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      for (std::size_t c = 0; c < to[i].size(); ++c) to[i][c] += what[i][c];
    }
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    const auto through = [&](const Matrix& rows, const std::string& which) {
      const std::vector<double>& w = weights(name + which);
      return each(rows, [&w](const auto& row) { return linear(row, w); });
    };
    const auto normed = [&](const std::string& which) {
      const std::vector<double>& w = weights(name + which);
      return each(x, [&w](const auto& row) { return norm(row, w); });
    };
    const Matrix y = normed(".ln1.weight");
    Matrix q = through(y, ".attn.q_proj.weight"), k = through(y, ".attn.k_proj.weight");
    if (config.rope_theta) {
      for (std::size_t t = 0; t < ids.size(); ++t) {
        for (std::size_t h = 0; h < heads; ++h) {
          rotate(q[t], h, d / heads, t, *config.rope_theta);
          rotate(k[t], h, d / heads, t, *config.rope_theta);
        }
      }
    }
    add(x, through(attention(q, k, through(y, ".attn.v_proj.weight"), heads), ".attn.output_proj.weight"));

    const Matrix z = normed(".ln2.weight");
    Matrix gate = through(z, ".ffn.w1.weight");
    const Matrix up = through(z, ".ffn.w3.weight");
    for (std::size_t t = 0; t < gate.size(); ++t) {
      for (std::size_t c = 0; c < gate[t].size(); ++c) gate[t][c] *= up[t][c] / (1 + std::exp(-gate[t][c]));
    }
    add(x, through(gate, ".ffn.w2.weight"));
  }
  const std::vector<double>&last = weights("ln_final.weight"), &head = weights("lm_head.weight");
  return each(x, [&](const auto& row) { return linear(norm(row, last), head); });
}

// Mean over positions of −log softmax(logits)[target].
inline double loss(const Matrix& logits, const std::vector<std::int64_t>& targets) {
  double total = 0;
  for (std::size_t t = 0; t < logits.size(); ++t) {
    double sum = 0;
    for (const double z : logits[t]) sum += std::exp(z);
    total += std::log(sum) - logits[t][static_cast<std::size_t>(targets[t])];
  }
  return total / static_cast<double>(logits.size());
}

}  // namespace syslab::model::plain
