#include "property_tests/attention/hidden_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "property_tests/attention/kinds.hpp"

namespace syslab::attention {
namespace {

constexpr double kNoNumber = -std::numeric_limits<double>::infinity();
constexpr double kLeast = 0.05;  // numbers nearer to 0 are a product with the mask, or none at all

// The scores of a row of a query head, of the keys that it must not see.
std::vector<double> hidden_scores(const Sample& sample, std::int64_t head, std::int64_t row) {
  const Problem& p = sample.problem;
  const double* const query = sample.q.data() + (head * p.seq_q + row) * p.head_dim;
  std::vector<double> scores;
  for (std::int64_t j = p.visible_keys(row); j < p.seq_k; ++j) {
    const double* const key = sample.k.data() + (key_head_of(p, head) * p.seq_k + j) * p.head_dim;
    scores.push_back(p.effective_scale() * std::inner_product(query, query + p.head_dim, key, 0.0));
  }
  return scores;
}

double hidden_lse(const Sample& sample, std::int64_t head, std::int64_t row) {
  const std::vector<double> scores = hidden_scores(sample, head, row);
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

// Hidden scores that are `score`, and such to which `summand` is added.
std::vector<Mistake> of_numbers(double score, double summand, const char* where) {
  const char* const look_at = "what the mask puts in: float('-inf'), or a number far below every score";
  std::vector<Mistake> mistakes;
  if (std::abs(score) > kLeast && std::isfinite(score)) {
    mistakes.push_back({.kind = fmt::format("masked scores of {:.3g} in place of −∞{}", score, where),
                        .look_at = look_at,
                        .no_mask = true,
                        .hidden_score = score});
  }
  if (std::abs(summand) > kLeast && std::isfinite(summand)) {
    mistakes.push_back({.kind = fmt::format("a mask that adds {:.3g} to scores in place of −∞{}", summand, where),
                        .look_at = look_at,
                        .no_mask = true,
                        .hidden_summand = summand});
  }
  return mistakes;
}

// From the row where hidden scores have most of the sum.
std::vector<Mistake> read_off_lse(const Trial& trial) {
  const Problem& p = trial.sample.problem;
  const Judged& lse = trial.tensors[1];
  double most = 0.01, of_hidden = 0;
  std::int64_t at = -1;
  for (std::int64_t row = 0; row < p.batch * p.heads_q * p.seq_q; ++row) {
    const double found = lse.found.values[static_cast<std::size_t>(row)];
    const double exact = lse.exact[static_cast<std::size_t>(row)];
    if (p.visible_keys(row % p.seq_q) == p.seq_k || !std::isfinite(found) || !(found - exact > most)) continue;
    most = found - exact;
    of_hidden = found + std::log1p(-std::exp(exact - found));
    at = row;
  }
  if (at < 0) return {};
  const auto hidden = static_cast<double>(p.seq_k - p.visible_keys(at % p.seq_q));
  const double score = of_hidden - std::log(hidden);
  const double summand = of_hidden - hidden_lse(trial.sample, at / p.seq_q, at % p.seq_q);
  return of_numbers(score, summand, "");
}

// The number c by which dV is off, where hidden keys of row i have P = e^(e_i + c): by least squares, over all keys,
// between what is too much in dV and Σ e^(e_i) dO_i. kNoNumber where these point apart.
template <typename ExponentOf>
double fitted_to_dv(const Trial& trial, const ExponentOf& exponent_of) {
  const Sample& sample = trial.sample;
  const Problem& p = sample.problem;
  const Judged& dv = trial.tensors[2];
  std::vector<double> made(dv.exact.size(), 0.0);
  double largest = kNoNumber;  // of all e_i: what is summed is relative to it
  const auto each = [&](const auto& take) {
    for (std::int64_t row = 0; row < p.batch * p.heads_q * p.seq_q; ++row) {
      const std::vector<double> exponents = exponent_of(row);
      for (std::size_t n = 0; n < exponents.size(); ++n) {
        take(row, p.visible_keys(row % p.seq_q) + static_cast<std::int64_t>(n), exponents[n]);
      }
    }
  };
  each([&](std::int64_t, std::int64_t, double exponent) { largest = std::max(largest, exponent); });
  if (!std::isfinite(largest)) return kNoNumber;
  each([&](std::int64_t row, std::int64_t key, double exponent) {
    const double* const dout = sample.dout.data() + row * p.head_dim;
    const std::int64_t at = (key_head_of(p, row / p.seq_q) * p.seq_k + key) * p.head_dim;
    const double weight = std::exp(exponent - largest);
    for (std::int64_t d = 0; d < p.head_dim; ++d) made[static_cast<std::size_t>(at + d)] += weight * dout[d];
  });
  double along = 0, squares = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    along += (dv.found.values[i] - dv.exact[i]) * made[i];
    squares += made[i] * made[i];
  }
  return along > 0 ? std::log(along / squares) - largest : kNoNumber;
}

// P of a hidden key is e^(c − L), or e^(S + c − L), with the right L of the row.
std::vector<Mistake> read_off_dv(const Trial& trial) {
  const Sample& sample = trial.sample;
  const Problem& p = sample.problem;
  const auto less_lse = [&](std::int64_t row, std::vector<double> scores) {
    for (double& score : scores) score -= trial.given[1].exact[static_cast<std::size_t>(row)];
    return scores;
  };
  const double score = fitted_to_dv(trial, [&](std::int64_t row) {
    return less_lse(row, std::vector<double>(static_cast<std::size_t>(p.seq_k - p.visible_keys(row % p.seq_q)), 0.0));
  });
  const double summand = fitted_to_dv(
      trial, [&](std::int64_t row) { return less_lse(row, hidden_scores(sample, row / p.seq_q, row % p.seq_q)); });
  return of_numbers(score, summand, " in the backward pass");
}

// Hidden keys take part where those that a row sees have scores far below 0, and the first row sees one: of both signs
// of the queries, the one by which some head's score there is lowest.
void turn_downwards(Sample& sample) {
  const Problem& p = sample.problem;
  double lowest = 0, highest = 0;
  for (std::int64_t head = 0; head < p.batch * p.heads_q; ++head) {
    const double* const query = sample.q.data() + head * p.seq_q * p.head_dim;
    const double* const key = sample.k.data() + key_head_of(p, head) * p.seq_k * p.head_dim;
    const double score = p.effective_scale() * std::inner_product(query, query + p.head_dim, key, 0.0);
    lowest = std::min(lowest, score);
    highest = std::max(highest, score);
  }
  if (highest <= -lowest) return;
  for (double& value : sample.q) value = -value;
}

// Whether some row must not see some key.
bool hides_keys(const Problem& p) { return p.visible_keys(0) < p.seq_k; }

// The same sample with every score far below any number that hidden scores have by `mistake`: hidden keys then have
// nearly all of the weight, and a row that sees every key has none of that. A clamp of all scores, or of visible ones
// alone, gives other sums there.
Sample with_scores_below(Sample sample, const Mistake& mistake) {
  constexpr double kBelow = 20;  // e^−20 is nothing beside 1
  const double scale = sample.problem.effective_scale();
  const double number = mistake.hidden_score.value_or(mistake.hidden_summand.value_or(0));
  // Powers of two, which every dtype represents.
  const int product = static_cast<int>(std::ceil(std::log2((std::abs(number) + kBelow) / std::abs(scale))));
  const double query = std::exp2(product / 2), key = std::copysign(std::exp2(product - product / 2), -scale);
  const auto width = static_cast<std::size_t>(sample.problem.head_dim);
  for (std::size_t i = 0; i < sample.q.size(); i += width) sample.q[i] = query;
  for (std::size_t i = 0; i < sample.k.size(); i += width) sample.k[i] = key;
  return sample;
}

}  // namespace

std::optional<Likeness> of_hidden_scores(const Subject& subject, const Trial& here, const Trial* larger, Pass pass) {
  Sample sample = larger != nullptr ? larger->sample : here.sample;
  const Problem& p = sample.problem;
  if (!hides_keys(here.sample.problem) || !hides_keys(p)) return std::nullopt;
  const Sample drawn = sample;
  const double usual = std::abs(p.effective_scale()) * std::sqrt(static_cast<double>(p.head_dim));
  for (const double size : {8.0, 32.0, 128.0, 1024.0, 16384.0, 65536.0}) {
    // Numbers that only longer scores than these meet make no gradient of a drawn sample wrong.
    if (size > 128 && (p.dtype == DType::f16 || pass == Pass::backward)) break;
    sample.q = query_values(sample, "stretched q", static_cast<float>(size / usual));
    turn_downwards(sample);
    const Trial stretched = tried(subject, sample, pass, pass == Pass::backward);
    if (!wrong_given(stretched).empty()) return std::nullopt;
    if (!stretched.wrong()) continue;
    const std::vector<Mistake> numbers = pass == Pass::forward ? read_off_lse(stretched) : read_off_dv(stretched);
    Kinds kinds;
    for (const Mistake& mistake : numbers) kinds.try_emplace(mistake.kind, Kind{mistake.look_at, {}, false});
    keep_those_of(kinds, stretched, pass, numbers);
    // Where scores are this large, bounds are wide and other faults give nearly as much.
    std::erase_if(kinds, [&](const auto& kind) {
      const auto mistake = std::ranges::find(numbers, kind.first, &Mistake::kind);
      Kinds alone{kind};
      keep_those_of(alone, tried(subject, with_scores_below(drawn, *mistake), pass), pass, numbers);
      return alone.empty();
    });
    if (kinds.empty()) continue;
    kinds = explaining(stretched, pass, nullptr, numbers);
    keep_those_of(kinds, here, pass, numbers);
    if (larger != nullptr) keep_those_of(kinds, *larger, pass, numbers);
    if (kinds.size() != 1) continue;
    const auto& [name, kind] = *kinds.begin();
    std::size_t elements = 0;
    for (const Judged& judged : stretched.tensors) elements += judged.exact.size();
    return Likeness{
        name, fmt::format(
                  "that alone gives all {} elements as found where scores are {} times as large (S={}×{}); look at {}",
                  elements, size, p.seq_q, p.seq_k, kind.look_at)};
  }
  return std::nullopt;
}

}  // namespace syslab::attention
