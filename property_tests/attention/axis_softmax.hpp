// Attention whose softmax is not over the keys of a row: over queries, heads, batch entries, or over several of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "property_tests/attention/mistakes.hpp"
#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

class AxisSoftmax {
 public:
  // All scores are kept.
  static bool is_small_enough(const Problem& p);

  // Of a mistake that has `over`, `lse_over` and `nan_over`. Keeps references to both.
  AxisSoftmax(const Sample& sample, const Mistake& mistake);

  struct Row {
    std::vector<double> out;
    double lse;
  };
  // Rows are counted through heads and batch entries.
  Row row(std::int64_t row) const;

 private:
  std::size_t group_of(std::int64_t head, std::int64_t i, std::int64_t j) const;

  const Sample& s_;
  const Problem& p_;
  const Mistake& m_;
  std::vector<double> scores_;      // (batch, query heads, queries, keys); −∞ where a key is hidden
  std::vector<double> logarithms_;  // of the sum of e^score, of each group that is normalised together
};

}  // namespace syslab::attention
