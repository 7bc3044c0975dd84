// An attention whose tensors a worker in another process is given, and what is asked of Python classes in
// tests/worker/mine.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "worker/judged/foreign.hpp"

namespace syslab::worker {

inline ForeignOptions mine(const std::string& file_and_class) {
  const auto colon = file_and_class.rfind(':');
  const std::string folder = std::getenv("SYSLAB_TEST_MINE");
  ForeignOptions options;
  const Submitted request =
      submitted_of("me", folder + "/" + file_and_class.substr(0, colon), file_and_class.substr(colon + 1));
  options.command = python_worker_command(request);
  options.implementation = implementation_of(request);
  return options;
}

struct Attention {
  static constexpr std::int64_t kBatch = 2, kHeads = 3, kQueries = 5, kDim = 4;
  const Shape shape{kBatch, kHeads, kQueries, kDim}, lse_shape{kBatch, kHeads, kQueries};
  std::vector<float> q = numbers(1), k = numbers(2), v = numbers(3), dout = numbers(4);
  std::vector<float> out = poisoned(shape), lse = poisoned(lse_shape);
  std::vector<float> dq = poisoned(shape), dk = poisoned(shape), dv = poisoned(shape);

  std::vector<float> numbers(unsigned seed) const {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = normal(generator);
    return values;
  }
  static std::vector<float> poisoned(const Shape& of) {
    return std::vector<float>(static_cast<std::size_t>(of.elements()), -777.0F);
  }
  ConstTensorView in(const std::vector<float>& data, const Shape& of) const { return {data.data(), DType::f32, of}; }
  TensorView to(std::vector<float>& data, const Shape& of) const { return {data.data(), DType::f32, of}; }

  Nanoseconds forward(CallChannel& channel, const Params& options) {
    const NamedInput inputs[] = {{"q", in(q, shape)}, {"k", in(k, shape)}, {"v", in(v, shape)}};
    const NamedOutput outputs[] = {{"out", to(out, shape)}, {"lse", to(lse, lse_shape)}};
    return channel.call("attention_forward", inputs, outputs, options);
  }
  Nanoseconds backward(CallChannel& channel, const Params& options) {
    const NamedInput inputs[] = {{"q", in(q, shape)},     {"k", in(k, shape)},         {"v", in(v, shape)},
                                 {"out", in(out, shape)}, {"lse", in(lse, lse_shape)}, {"dout", in(dout, shape)}};
    const NamedOutput outputs[] = {{"dq", to(dq, shape)}, {"dk", to(dk, shape)}, {"dv", to(dv, shape)}};
    return channel.call("attention_backward", inputs, outputs, options);
  }

  // Σ_i dO_i·O_i as a function of one changed element of Q, K or V: what the gradients are checked against.
  double objective(bool causal) const {
    double total = 0;
    for (std::int64_t head = 0; head < kBatch * kHeads; ++head) {
      for (std::int64_t i = 0; i < kQueries; ++i) {
        const std::vector<double> p = row(head, i, causal).first;
        for (std::int64_t j = 0; j < kQueries; ++j) {
          for (std::int64_t d = 0; d < kDim; ++d) total += p[idx(j)] * v[at(head, j, d)] * dout[at(head, i, d)];
        }
      }
    }
    return total;
  }
  // Probabilities of one query, and its log-sum-exp.
  std::pair<std::vector<double>, double> row(std::int64_t head, std::int64_t i, bool causal) const {
    std::vector<double> p(kQueries);
    double sum = 0;
    for (std::int64_t j = 0; j < kQueries; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < kDim; ++d) score += double{q[at(head, i, d)]} * k[at(head, j, d)];
      p[idx(j)] = causal && j > i ? 0.0 : std::exp(score / std::sqrt(double{kDim}));
      sum += p[idx(j)];
    }
    for (double& value : p) value /= sum;
    return {p, std::log(sum)};
  }
  static std::size_t idx(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::size_t at(std::int64_t head, std::int64_t i, std::int64_t d) {
    return idx((head * kQueries + i) * kDim + d);
  }
};

inline const Params kCausal{{"causal", std::int64_t{1}}, {"scale", 0.5}};
inline const Params kFull{{"causal", std::int64_t{0}}, {"scale", 0.0}};

inline std::string failure(const std::function<void()>& body, ErrorKind kind) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    return error.what();
  }
  return "no error";
}

}  // namespace syslab::worker
