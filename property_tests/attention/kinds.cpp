#include "property_tests/attention/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rounding.hpp"
#include "ops/attention/error_bound.hpp"
#include "property_tests/attention/suspects.hpp"

namespace syslab::attention {
namespace {

double longest_row(const std::vector<double>& rows, std::int64_t width) {
  double largest = 0;
  for (std::size_t at = 0; at + static_cast<std::size_t>(width) <= rows.size(); at += static_cast<std::size_t>(width)) {
    double squares = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(width); ++d) squares += rows[at + d] * rows[at + d];
    largest = std::max(largest, squares);
  }
  return std::sqrt(largest);
}

// By tensor, what rounding alone makes of an element that is a difference of large ones. A score is off by
// δ = λ·√(D + 6)·u·|scale|·‖q‖·‖k‖ (ops/attention/error_bound.hpp), and so is P, relative to itself, whatever P is
// divided by. The derived bounds are those of right results, whose P is at most 1: of a fault that makes P e^20, sums
// of several P·X may cancel to elements of order one. The terms of such a sum are taken to be as large as the tensor's
// largest element.
std::vector<double> roundings_of(const Trial& trial) {
  const Problem& p = trial.sample.problem;
  const double unit = ErrorModel::of(p.dtype, false).unit;
  const double score = gamma_probable(p.head_dim + 6, unit, kLambda) * std::abs(p.effective_scale()) *
                       longest_row(trial.sample.q, p.head_dim) * longest_row(trial.sample.k, p.head_dim);
  std::vector<double> roundings;
  for (const Judged& judged : trial.tensors) {
    double largest = 0;
    for (const double value : judged.found.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    roundings.push_back(score * largest);
  }
  return roundings;
}

bool explains(const Suspect& suspect, const Trial& trial, const std::vector<double>& roundings) {
  constexpr double kLeft = 1.0 / 16;  // of the squares of what is wrong
  double left = 0, wrong = 0;
  for (std::size_t t = 0; t < trial.tensors.size(); ++t) {
    const Judged& judged = trial.tensors[t];
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      const double found = judged.found.values[i], made = suspect.written[t].values[i], exact = judged.exact[i];
      if (!same(found, made, std::max(judged.derived[i], roundings[t]), judged.unit)) return false;
      if (!judged.wrong(i) || !std::isfinite(found) || !std::isfinite(exact)) continue;
      left += (found - made) * (found - made);
      wrong += (found - exact) * (found - exact);
    }
  }
  return left <= kLeft * wrong;
}

}  // namespace

std::string Kind::tiles_words() const {
  if (tiles.size() != 1 || *tiles.begin() < 2) return {};
  return fmt::format("tiles of {} keys, ", *tiles.begin());
}

Kinds explaining(const Trial& trial, Pass pass, const Kinds* among, std::span<const Mistake> more) {
  Kinds kinds;
  const auto tried = [among](const std::string& kind) { return among == nullptr || among->count(kind) > 0; };
  const std::vector<double> roundings = roundings_of(trial);
  const auto as_found = [&](std::size_t tensor, std::int64_t first, std::span<const double> values) {
    const Judged& judged = trial.tensors[tensor];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(first) + i;
      if (!same(judged.found.values[at], values[i], std::max(judged.derived[at], roundings[tensor]), judged.unit))
        return false;
    }
    return true;
  };
  for (const Suspect& suspect : suspects(trial.sample, pass, as_found, tried, more)) {
    // Of what is carried from tile to tile, one tile tells nothing.
    if (among == nullptr && suspect.carried && suspect.tile >= trial.sample.problem.seq_k) continue;
    if (!explains(suspect, trial, roundings)) continue;
    Kind& kind = kinds.try_emplace(suspect.kind, Kind{suspect.look_at, {}, suspect.subtle}).first->second;
    kind.tiles.insert(suspect.tile);
  }
  return kinds;
}

void keep_those_of(Kinds& kinds, const Trial& other, Pass pass, std::span<const Mistake> more) {
  if (kinds.empty()) return;
  const Kinds others = explaining(other, pass, &kinds, more);
  std::erase_if(kinds, [&](const auto& kind) { return others.count(kind.first) == 0; });
  for (auto& [name, kind] : kinds) {
    const std::set<std::int64_t>& tiles = others.at(name).tiles;
    std::erase_if(kind.tiles, [&](std::int64_t tile) { return tiles.count(tile) == 0; });
  }
}

}  // namespace syslab::attention
