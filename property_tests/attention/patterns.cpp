#include "property_tests/attention/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace syslab::attention {
namespace {

// Whether a formula that gives `expected` leaves this element, which is wrong, as right as it was: then it explains
// nothing.
bool leaves_right(const Judged& judged, std::size_t i, double expected) {
  if (!judged.wrong(i) || !std::isfinite(expected)) return false;
  return check::Tally::ratio_of(check::Tally::error_of(expected, judged.exact[i]), judged.allowed[i]) <= 1;
}

// Every element of a wrong tensor is one multiple of what is right.
std::optional<Likeness> one_factor(const Trial& trial) {
  std::string text;
  for (const Judged& judged : trial.tensors) {
    if (!judged.wrong_anywhere()) continue;
    double along = 0, squares = 0;
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (!std::isfinite(judged.exact[i])) continue;
      along += judged.found.values[i] * judged.exact[i];
      squares += judged.exact[i] * judged.exact[i];
    }
    const double factor = along / squares;
    if (judged.exact.size() < 8 || !std::isfinite(factor)) return std::nullopt;
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      const double expected = factor * judged.exact[i];
      if (!same(judged.found.values[i], expected, std::abs(factor) * judged.derived[i], judged.unit))
        return std::nullopt;
      if (leaves_right(judged, i, expected)) return std::nullopt;
    }
    text += fmt::format("{}{} is {:.4g} ×", text.empty() ? "" : ", ", judged.found.name, factor);
  }
  if (text.empty()) return std::nullopt;
  return Likeness{"a factor that is wrong or missing", text + " what is right in every element"};
}

// The log-sum-exp alone is wrong, by as much everywhere.
std::optional<Likeness> one_summand(const Trial& trial) {
  double first = 0;
  std::size_t seen = 0;
  for (const Judged& judged : trial.tensors) {
    const bool is_lse = judged.found.name == std::string_view("lse");
    if (judged.wrong_anywhere() != is_lse) return std::nullopt;
    for (std::size_t i = 0; is_lse && i < judged.exact.size(); ++i) {
      if (!std::isfinite(judged.exact[i])) continue;
      const double more = judged.found.values[i] - judged.exact[i];
      if (seen++ == 0) first = more;
      if (!std::isfinite(first)) return std::nullopt;
      if (!same(judged.found.values[i], judged.exact[i] + first, judged.derived[i], judged.unit)) return std::nullopt;
      if (leaves_right(judged, i, judged.exact[i] + first)) return std::nullopt;
    }
  }
  if (seen < 8) return std::nullopt;
  return Likeness{"a summand that is wrong or missing",
                  fmt::format("lse is {:+.4g} off what is right in every element; look at L = m + log l", first)};
}

// By chance, of errors that do not depend on where they are, a pattern is this rare: then it is said.
constexpr double kChance = 1e-6;

// The rows of every head that are wrong, by the tensor that has most of them; nothing if a tensor has other rows than
// queries.
struct WrongRows {
  std::int64_t first = 0;           // of any head; as many as there are: none
  std::vector<std::int64_t> count;  // by row, of how many heads it is wrong
};
std::optional<WrongRows> wrong_rows(const Trial& trial) {
  const std::int64_t rows = trial.sample.problem.seq_q;
  WrongRows wrong{rows, std::vector<std::int64_t>(static_cast<std::size_t>(rows), 0)};
  for (const Judged& judged : trial.tensors) {
    if (judged.found.shape[2] != rows) return std::nullopt;
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    const std::int64_t heads = judged.found.shape[0] * judged.found.shape[1];
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t count = 0;
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto first = static_cast<std::size_t>((head * rows + row) * width);
        bool any = false;
        for (std::size_t d = 0; !any && d < static_cast<std::size_t>(width); ++d) any = judged.wrong(first + d);
        count += any ? 1 : 0;
      }
      std::int64_t& most = wrong.count[static_cast<std::size_t>(row)];
      most = std::max(most, count);
      if (count > 0) wrong.first = std::min(wrong.first, row);
    }
  }
  return wrong;
}

bool has_tail(std::int64_t rows, std::int64_t tile) { return rows % tile != 0 && rows >= tile; }

// That every wrong row is behind the last whole tile, by chance; 1 where there is no such row; nothing where some wrong
// row is before it, or the tail is right although there is one.
std::optional<double> chance_of_tail(const WrongRows& wrong, std::int64_t rows, std::int64_t tile) {
  if (!has_tail(rows, tile)) return wrong.first == rows ? std::optional(1.0) : std::nullopt;
  const std::int64_t whole = rows / tile * tile;
  if (wrong.first < whole || wrong.first == rows) return std::nullopt;
  const auto rows_wrong = std::accumulate(wrong.count.begin(), wrong.count.end(), std::int64_t{0});
  return std::pow(static_cast<double>(rows - whole) / static_cast<double>(rows), static_cast<double>(rows_wrong));
}

// Wrong are only rows behind the last whole tile of queries, in both trials, and in more of them than chance has there.
std::optional<Likeness> tail_of_rows(const Trial& trial, const Trial* other) {
  const std::int64_t rows = trial.sample.problem.seq_q;
  const std::optional<WrongRows> here = wrong_rows(trial);
  const std::optional<WrongRows> there = other == nullptr ? std::nullopt : wrong_rows(*other);
  if (!here || (other != nullptr && !there)) return std::nullopt;
  for (const std::int64_t tile : {128, 64, 32, 16, 8}) {
    if (!has_tail(rows, tile)) continue;
    const std::optional<double> chance = chance_of_tail(*here, rows, tile);
    const std::optional<double> others =
        there ? chance_of_tail(*there, other->sample.problem.seq_q, tile) : std::optional(1.0);
    if (!chance || !others || *chance * *others > kChance) continue;
    return Likeness{"the last, partial tile of queries",
                    fmt::format("only rows from {} on are wrong, of {} (tiles of {})", here->first, rows, tile)};
  }
  return std::nullopt;
}

// Which places are counted: batch entries, heads of each, or heads of all.
enum class Place { batch_entry, head, head_of_all };

struct FirstAlone {
  std::int64_t first = 0, others = 0;  // matrices of wrong tensors that are right, and that are wrong
  std::int64_t first_rows = 0, other_rows = 0;
};

// Adds what a trial shows of the first place being right and of all others being wrong, in more than half of their
// rows; false where it shows something else. A trial of the first place alone shows nothing.
bool add_first_alone(FirstAlone& seen, const Trial& trial, Place place) {
  std::int64_t others = 0, first_wrong = 0;
  bool others_wrong = true;
  FirstAlone here;
  for (const Judged& judged : trial.tensors) {
    const std::int64_t batch = judged.found.shape[0], heads = judged.found.shape[1], rows = judged.found.shape[2];
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    const bool any = judged.wrong_anywhere();
    for (std::int64_t i = 0; i < batch * heads; ++i) {
      std::int64_t wrong = 0;
      for (std::int64_t row = i * rows; row < (i + 1) * rows; ++row) {
        bool is_wrong = false;
        for (std::int64_t at = row * width; !is_wrong && at < (row + 1) * width; ++at) {
          is_wrong = judged.wrong(static_cast<std::size_t>(at));
        }
        wrong += is_wrong ? 1 : 0;
      }
      const std::int64_t index = place == Place::batch_entry ? i / heads : place == Place::head ? i % heads : i;
      if (index == 0) {
        first_wrong += wrong;
      } else {
        ++others;
      }
      if (!any) continue;
      if (index == 0) {
        ++here.first;
        here.first_rows += rows;
      } else {
        ++here.others;
        here.other_rows += wrong;
        others_wrong = others_wrong && 2 * wrong > rows;  // mostly: not by chance
      }
    }
  }
  if (first_wrong > 0) return false;
  if (others == 0) return true;
  if (here.others == 0 || !others_wrong) return false;
  seen.first += here.first;
  seen.others += here.others;
  seen.first_rows += here.first_rows;
  seen.other_rows += here.other_rows;
  return true;
}

// Right is the first batch entry, or the first head of each, or the first head of all, and nothing behind it, in both
// trials: of so many heads and rows that errors in some of all rows, or in every second head, would show.
std::optional<Likeness> only_the_first(const Trial& trial, const Trial* other) {
  constexpr std::int64_t kLeastMatrices = 4, kLeastRows = 8;
  const std::pair<Place, const char*> all[] = {{Place::batch_entry, "batch entry"},
                                               {Place::head, "head"},
                                               {Place::head_of_all, "head of the first batch entry"}};
  for (const auto& [place, name] : all) {
    FirstAlone seen;
    if (!add_first_alone(seen, trial, place)) continue;
    if (other != nullptr && !add_first_alone(seen, *other, place)) continue;
    if (seen.others < 2 || seen.first + seen.others < kLeastMatrices) continue;
    if (seen.first_rows < kLeastRows || seen.other_rows < kLeastRows) continue;
    return Likeness{
        fmt::format("the first {} alone", name),
        "it is right, and all others are wrong; look at how batch and head come into every index, and at loops "
        "that end with the first"};
  }
  return std::nullopt;
}

// The scores of a row of a query head, of the keys that it sees.
std::vector<double> scores_of(const Sample& sample, std::int64_t head, std::int64_t row) {
  const Problem& p = sample.problem;
  const double* const query = sample.q.data() + (head * p.seq_q + row) * p.head_dim;
  const double* const keys = sample.k.data() + key_head_of(p, head) * p.seq_k * p.head_dim;
  std::vector<double> scores(static_cast<std::size_t>(p.visible_keys(row)));
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double* const key = keys + static_cast<std::int64_t>(j) * p.head_dim;
    scores[j] = p.effective_scale() * std::inner_product(query, query + p.head_dim, key, 0.0);
  }
  return scores;
}

// Whether any tensor differs from what is right in this row, counted through heads; nothing if one has no such rows.
std::optional<bool> differs_in(const Trial& trial, std::int64_t row) {
  const Problem& p = trial.sample.problem;
  for (const Judged& judged : trial.tensors) {
    if (judged.found.shape[1] != p.heads_q || judged.found.shape[2] != p.seq_q) return std::nullopt;
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!same(judged.found.values[at], judged.exact[at], judged.derived[at], judged.unit)) return true;
    }
  }
  return false;
}

// Of a forward pass: right are the rows whose largest score is in their first tile of keys, wrong are others alone, and
// that by more than chance, by which the largest score may be anywhere.
std::optional<Likeness> rises_late(const Trial& trial) {
  constexpr std::int64_t kLeast = 12;                 // rows
  constexpr double kBehind = 0.05;                    // of a row's weight; that it is none
  const std::int64_t tiles[] = {128, 64, 32, 16, 8};  // the largest that fits
  const Problem& p = trial.sample.problem;
  struct Rows {
    std::int64_t early = 0, early_wrong = 0, late = 0, late_wrong = 0;
    double chance = 1;  // that no wrong row is an early one
  };
  Rows by_tile[std::size(tiles)];
  for (std::int64_t row = 0; row < p.batch * p.heads_q * p.seq_q; ++row) {
    const std::optional<bool> wrong = differs_in(trial, row);
    if (!wrong) return std::nullopt;
    std::vector<double> weights = scores_of(trial.sample, row / p.seq_q, row % p.seq_q);
    if (weights.empty()) continue;
    const auto largest = std::max_element(weights.begin(), weights.end());
    const auto place = largest - weights.begin(), visible = static_cast<std::ptrdiff_t>(weights.size());
    const double top = *largest;
    for (double& weight : weights) weight = std::exp(weight - top);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t t = 0; t < std::size(tiles); ++t) {
      const std::ptrdiff_t tile = tiles[t];
      Rows& rows = by_tile[t];
      if (place >= tile) {
        ++rows.late;
        rows.late_wrong += *wrong ? 1 : 0;
        if (*wrong) rows.chance *= 1 - static_cast<double>(tile) / static_cast<double>(visible);
        continue;
      }
      rows.early_wrong += *wrong ? 1 : 0;
      // Of the others nothing follows: what comes behind the tile may be left out, and nobody sees it.
      const double behind = visible <= tile ? 0.0 : std::accumulate(weights.begin() + tile, weights.end(), 0.0);
      rows.early += behind > kBehind * sum ? 1 : 0;
    }
  }
  for (std::size_t t = 0; t < std::size(tiles); ++t) {
    const Rows& rows = by_tile[t];
    if (rows.early_wrong > 0 || rows.early < kLeast || rows.late_wrong < kLeast || rows.chance > kChance) continue;
    return Likeness{
        "a wrong rescale where the running maximum grows",
        fmt::format(
            "all {} rows are right whose largest score stands among the first {} keys, {} of {} are wrong where it "
            "stands behind them (S={}×{}); look at m, and at what e^(m − m′) multiplies",
            rows.early, tiles[t], rows.late_wrong, rows.late, p.seq_q, p.seq_k)};
  }
  return std::nullopt;
}

std::optional<Likeness> nothing_seen(const Trial& trial) {
  const Problem& p = trial.sample.problem;
  bool any = false, divided = false;
  for (const Judged& judged : trial.tensors) {
    if (judged.found.shape[2] != p.seq_q) continue;
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (!judged.wrong(i)) continue;
      if (p.visible_keys(static_cast<std::int64_t>(i) / width % p.seq_q) > 0) return std::nullopt;
      any = true;
      divided = divided || std::isnan(judged.found.values[i]);
    }
  }
  if (!any) return std::nullopt;
  return Likeness{divided ? "a division by nothing" : "keys that take part in rows that see none",
                  "only rows that see no key are wrong; their output is 0 and their log-sum-exp −inf"};
}

}  // namespace

std::optional<std::string> rows_of_every_tile(const Trial& trial) {
  for (const Judged& judged : trial.tensors) {
    if (!judged.wrong_anywhere()) continue;
    const std::int64_t rows = judged.found.shape[2];
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    std::vector<bool> wrong(static_cast<std::size_t>(rows), false);
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (judged.wrong(i)) wrong[i / static_cast<std::size_t>(width) % wrong.size()] = true;
    }
    for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
      if (rows < 2 * tile) break;
      std::int64_t first = tile, last = -1;
      for (std::int64_t row = 0; row < rows; ++row) {
        if (!wrong[static_cast<std::size_t>(row)]) continue;
        first = std::min(first, row % tile);
        last = std::max(last, row % tile);
      }
      bool all = last - first + 1 < tile;
      for (std::int64_t row = 0; all && row < rows; ++row) {
        const bool within = row % tile >= first && row % tile <= last;
        all = within == wrong[static_cast<std::size_t>(row)];
      }
      if (all) return fmt::format("wrong rows {}..{} of every {} of {}", first, last, tile, judged.found.name);
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Likeness> pattern_of_errors(const Trial& trial, const Trial* other, Pass pass) {
  std::vector<Likeness> patterns;
  for (const auto& pattern :
       {one_factor(trial), one_summand(trial), tail_of_rows(trial, other), only_the_first(trial, other),
        nothing_seen(trial), pass == Pass::forward ? rises_late(trial) : std::nullopt}) {
    if (pattern) patterns.push_back(*pattern);
  }
  return patterns.size() == 1 ? std::optional(patterns.front()) : std::nullopt;
}

}  // namespace syslab::attention
