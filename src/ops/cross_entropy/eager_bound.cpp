// What roundings between operations add to the oracle's bounds. With s = z − max, p the probabilities, k = scale /
// rows, and u the unit roundoff of the logits' dtype (nothing of the following four where that is fp32):
//
//   s      is rounded: e^s is off by e_c = exp(u|s_c|) − 1 of itself, their sum by E = Σ p_c e_c of itself.
//   lse    E / (1 − E)                        loss    the same and u|s_target|
//   dz     k·p_c·(e_c + E)/(1 − E) through exp; what arrives by exp and by gather is rounded: u·k·p_c and, at the
//   target, u·k
//
// and in every dtype the gradient of max, which is 0 exactly: minus the sum of the row as it was computed goes to its
// largest logit. That is at most the sum of all bounds of the row, and γ(classes)·Σ|dz| for adding them up.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rounding.hpp"
#include "ops/cross_entropy/eager.hpp"

namespace syslab::cross_entropy {
namespace {

struct Row {
  std::span<const double> logits;
  double lse = 0, largest = 0;

  double probability(std::size_t c) const { return std::exp(logits[c] - lse); }
};

// E and the bounds of what s's rounding does to the row's outputs.
double error_of_sum(const Row& row, double unit) {
  double error = 0;
  for (std::size_t c = 0; c < row.logits.size(); ++c) {
    error += row.probability(c) * std::expm1(unit * std::abs(row.logits[c] - row.largest));
  }
  return error;
}

}  // namespace

void eager_allow(const Problem& p, const ConstTensorView& logits, std::span<const std::int64_t> targets, double scale,
                 Oracle& expected) {
  const bool half = size_of(p.dtype) == 2;
  const double unit = half ? unit_roundoff(p.dtype) : 0, of_store = unit_roundoff(p.dtype);
  const double tiny = smallest_normal(p.dtype) * of_store, k = std::abs(scale) / static_cast<double>(p.rows);
  const double carrier = unit_roundoff(p.statistics());
  const double adding = std::min(gamma(p.classes, carrier), gamma_probable(p.classes, carrier));
  const std::vector<double> values = to_doubles(logits);
  const auto classes = static_cast<std::size_t>(p.classes);
  double of_mean = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.rows); ++i) {
    Row row{.logits = std::span(values).subspan(i * classes, classes), .lse = expected.lse.value[i]};
    const auto place = std::max_element(row.logits.begin(), row.logits.end());
    row.largest = *place;
    const double sum_error = error_of_sum(row, unit), of_log = sum_error / (1 - sum_error);
    if (targets[i] < 0 || targets[i] >= p.classes) continue;  // all of the row is NaN
    const auto target = static_cast<std::size_t>(targets[i]);
    const double of_loss = of_log + unit * std::abs(row.logits[target] - row.largest);
    expected.lse.tolerance[i] += of_log;
    expected.row_loss.tolerance[i] += of_loss;
    of_mean += of_loss / static_cast<double>(p.rows);

    double* tolerance = expected.dlogits.tolerance.data() + i * classes;
    const double* gradient = expected.dlogits.value.data() + i * classes;
    double all = 0, sizes = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const double probability = row.probability(c);
      const double of_exp = std::expm1(unit * std::abs(row.logits[c] - row.largest));
      tolerance[c] += k * probability * ((of_exp + sum_error) / (1 - sum_error) + 2 * unit);
      tolerance[c] += (c == target ? 2 * unit * k : 0) + (half ? 3 * tiny : 0);
      all += tolerance[c];
      sizes += std::abs(gradient[c]);
    }
    const double of_largest = (all + adding * (sizes + all)) * (1 + 2 * of_store);
    tolerance[static_cast<std::size_t>(place - row.logits.begin())] += of_largest + 2 * tiny;
  }
  expected.loss.tolerance[0] += of_mean;
}

}  // namespace syslab::cross_entropy
