#include "property_tests/attention/kinds.hpp"

#include <fmt/format.h>

#include <cmath>

#include "property_tests/attention/suspects.hpp"

namespace syslab::attention {
namespace {

bool explains(const Suspect& suspect, const Trial& trial) {
  constexpr double kLeft = 1.0 / 16;  // of the squares of what is wrong
  double left = 0, wrong = 0;
  for (std::size_t t = 0; t < trial.tensors.size(); ++t) {
    const Judged& judged = trial.tensors[t];
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      const double found = judged.found.values[i], made = suspect.written[t].values[i], exact = judged.exact[i];
      if (!same(found, made, judged.derived[i])) return false;
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
  const auto as_found = [&](std::size_t tensor, std::int64_t first, std::span<const double> values) {
    const Judged& judged = trial.tensors[tensor];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(first) + i;
      if (!same(judged.found.values[at], values[i], judged.derived[at])) return false;
    }
    return true;
  };
  for (const Suspect& suspect : suspects(trial.sample, pass, as_found, tried, more)) {
    // Of what is carried from tile to tile, one tile tells nothing.
    if (among == nullptr && suspect.carried && suspect.tile >= trial.sample.problem.seq_k) continue;
    if (!explains(suspect, trial)) continue;
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
