#include "property_tests/attention/hidden_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "property_tests/attention/kinds.hpp"

namespace syslab::attention {
namespace {

// Log-sum-exp of the scores of a row that it must not see.
double hidden_lse(const Sample& sample, std::int64_t head, std::int64_t row) {
  const Problem& p = sample.problem;
  const std::int64_t key_head = head / p.heads_q * p.heads_kv + head % p.heads_q / (p.heads_q / p.heads_kv);
  const double* const query = sample.q.data() + (head * p.seq_q + row) * p.head_dim;
  std::vector<double> scores;
  for (std::int64_t j = p.visible_keys(row); j < p.seq_k; ++j) {
    const double* const key = sample.k.data() + (key_head * p.seq_k + j) * p.head_dim;
    scores.push_back(p.effective_scale() * std::inner_product(query, query + p.head_dim, key, 0.0));
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

// The number that hidden scores are, or that is added to them, from the row where they have most of the sum.
std::vector<Mistake> read_off(const Trial& trial) {
  constexpr double kLeast = 0.05;  // numbers nearer to 0 are a product with the mask, or none at all
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
  const char* const look_at = "what the mask puts in: float('-inf'), or a number far below every score";
  std::vector<Mistake> mistakes;
  if (std::abs(score) > kLeast) {
    mistakes.push_back({.kind = fmt::format("masked scores of {:.3g} in place of −∞", score),
                        .look_at = look_at,
                        .no_mask = true,
                        .hidden_score = score});
  }
  if (std::abs(summand) > kLeast) {
    mistakes.push_back({.kind = fmt::format("a mask that adds {:.3g} to scores in place of −∞", summand),
                        .look_at = look_at,
                        .no_mask = true,
                        .hidden_summand = summand});
  }
  return mistakes;
}

}  // namespace

std::optional<std::string> of_hidden_scores(const Subject& subject, const Trial& here, const Trial* larger) {
  Sample sample = larger != nullptr ? larger->sample : here.sample;
  const Problem& p = sample.problem;
  if (p.mask == Mask::none) return std::nullopt;
  for (const double size : {8.0, 32.0, 128.0, 1024.0, 16384.0, 65536.0}) {
    if (size > 128 && p.dtype == DType::f16) break;
    const double usual = std::abs(p.effective_scale()) * std::sqrt(static_cast<double>(p.head_dim));
    sample.q = query_values(sample, "stretched q", static_cast<float>(size / usual));
    const Trial stretched = tried(subject, sample, Pass::forward);
    if (!stretched.wrong()) continue;
    const std::vector<Mistake> numbers = read_off(stretched);
    Kinds kinds;
    for (const Mistake& mistake : numbers) kinds.try_emplace(mistake.kind, Kind{mistake.look_at, {}, false});
    keep_those_of(kinds, stretched, Pass::forward, numbers);
    if (kinds.empty()) continue;
    kinds = explaining(stretched, Pass::forward, nullptr, numbers);
    keep_those_of(kinds, here, Pass::forward, numbers);
    if (larger != nullptr) keep_those_of(kinds, *larger, Pass::forward, numbers);
    if (kinds.size() != 1) continue;
    const auto& [name, kind] = *kinds.begin();
    std::size_t elements = 0;
    for (const Judged& judged : stretched.tensors) elements += judged.exact.size();
    return fmt::format(
        "{}: that alone gives all {} elements as found where scores are {} times as large (S={}×{}); look at {}", name,
        elements, size, p.seq_q, p.seq_k, kind.look_at);
  }
  return std::nullopt;
}

}  // namespace syslab::attention
