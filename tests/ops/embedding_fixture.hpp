// An embedding with random ids, rows and gradients, and how far its outputs are from the oracle.
#pragma once

#include <vector>

#include "ops/embedding/oracle.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::embedding {

struct Instance {
  Problem problem;
  ops::Tensor table, x, dx, dtable;
  std::vector<std::int64_t> ids;

  explicit Instance(const Problem& p, unsigned seed = 1, std::int64_t gap = 0)
      : problem(p),
        table(ops::Tensor::matrix(p.table_dtype, p.vocab, p.dim, gap)),
        x(ops::Tensor::matrix(p.x_dtype, p.rows, p.dim, gap)),
        dx(ops::Tensor::matrix(p.x_dtype, p.rows, p.dim, gap)),
        dtable(ops::Tensor::matrix(p.gradient(), p.vocab, p.dim, gap)) {
    std::mt19937 random(seed);
    table.fill_normal(random);
    dx.fill_normal(random);
    for (std::int64_t i = 0; i < p.rows; ++i) ids.push_back(random() % static_cast<unsigned>(p.vocab));
  }

  void forward(const Rung& rung) {
    const ForwardArgs args{ids.data(), table.view(), x.view()};
    validate(problem, args);
    rung.forward(problem, args, {}, {});
  }
  void backward(const Rung& rung, bool accumulate = false) {
    const BackwardArgs args{ids.data(), dx.view(), dtable.view(), accumulate};
    validate(problem, args);
    std::vector<std::byte> memory(rung.workspace_bytes(problem, Pass::backward));
    rung.backward(problem, args, {memory.data(), memory.size()}, {});
  }

  // Largest error over its bound in x and dtable, rows of no id left out. Exact elements must be exact.
  double worst() const {
    const auto of = [](const ops::Tensor& found, const Expected& expected) {
      const std::vector<double> values = found.values();
      double ratio = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(expected.value[i])) continue;
        const double error = std::abs(values[i] - expected.value[i]);
        if (!(error <= expected.tolerance[i])) ratio = INFINITY;
        if (error > 0) ratio = std::max(ratio, error / expected.tolerance[i]);
      }
      return ratio;
    };
    return std::max(of(x, forward_oracle(problem, ids, table.view())),
                    of(dtable, backward_oracle(problem, ids, dx.view())));
  }
};

}  // namespace syslab::embedding
