#include "property_tests/attention/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "check/tally.hpp"
#include "property_tests/attention/contrasts.hpp"
#include "property_tests/attention/suspects.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {
namespace {

using check::Tally;

// The same problem where mistakes of masks, tiles and heads differ from each other: longer, with several of everything.
std::optional<Sample> enlarged(const Subject& subject, const Sample& sample, Pass pass) {
  constexpr std::int64_t kLongest = 199;  // no multiple of any tile, nor is the number of queries
  const Menu& menu = subject.menu;
  const auto largest = [](const std::vector<std::int64_t>& sizes, std::int64_t most) {
    std::int64_t chosen = sizes.front();
    for (const std::int64_t size : sizes) chosen = size <= most ? size : chosen;
    return chosen;
  };
  Sample larger = sample;
  Problem& p = larger.problem;
  p.seq_k = largest(menu.seq_k, kLongest);
  p.seq_q = menu.square ? p.seq_k : largest(menu.seq_q, kLongest - 20);
  p.head_dim = std::min<std::int64_t>(p.head_dim, largest(menu.head_dim, 16));
  if (std::find(menu.head_dim.begin(), menu.head_dim.end(), p.head_dim) == menu.head_dim.end()) {
    p.head_dim = sample.problem.head_dim;
  }
  p.batch = largest(menu.batch, 2);
  p.heads_kv = largest(menu.heads_kv, 2);
  p.heads_q = p.heads_kv * (sample.problem.heads_q / sample.problem.heads_kv);
  if (subject.rung.supports(p, pass)) return std::nullopt;
  larger.q = query_values(larger, "q");
  larger.k = key_values(larger, "k");
  larger.v = key_values(larger, "v");
  if (pass == Pass::backward) larger.dout = query_values(larger, "dout");
  return larger;
}

bool same(double found, double expected, double derived) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;  // a share of infinity allows everything
  return Tally::error_of(found, expected) <= std::max(4 * derived, 1e-3 * (1 + std::abs(expected)));
}

bool explains(const Suspect& suspect, const Trial& trial) {
  for (std::size_t t = 0; t < trial.tensors.size(); ++t) {
    const Judged& judged = trial.tensors[t];
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (!same(judged.found.values[i], suspect.written[t].values[i], judged.derived[i])) return false;
    }
  }
  return true;
}

// The kinds of mistakes that explain a trial whole, with where to look.
std::map<std::string, std::string> explaining(const Trial& trial, Pass pass) {
  std::map<std::string, std::string> kinds;
  const auto as_found = [&](std::size_t tensor, std::int64_t first, std::span<const double> values) {
    const Judged& judged = trial.tensors[tensor];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(first) + i;
      if (!same(judged.found.values[at], values[i], judged.derived[at])) return false;
    }
    return true;
  };
  for (const Suspect& suspect : suspects(trial.sample, pass, as_found)) {
    if (explains(suspect, trial)) kinds[suspect.kind] = suspect.look_at;
  }
  return kinds;
}

// Every element of a wrong tensor is one multiple of what is right.
std::optional<std::string> one_factor(const Trial& trial) {
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
      if (!same(judged.found.values[i], factor * judged.exact[i], std::abs(factor) * judged.derived[i]))
        return std::nullopt;
    }
    text += fmt::format("{}{} is {:.4g} ×", text.empty() ? "" : ", ", judged.found.name, factor);
  }
  if (text.empty()) return std::nullopt;
  return fmt::format("a factor that is wrong or missing: {} what is right in every element", text);
}

// The log-sum-exp alone is wrong, by as much everywhere.
std::optional<std::string> one_summand(const Trial& trial) {
  double first = 0;
  std::size_t seen = 0;
  for (const Judged& judged : trial.tensors) {
    const bool is_lse = judged.found.name == std::string_view("lse");
    if (judged.wrong_anywhere() != is_lse) return std::nullopt;
    for (std::size_t i = 0; is_lse && i < judged.exact.size(); ++i) {
      if (!std::isfinite(judged.exact[i])) continue;
      const double more = judged.found.values[i] - judged.exact[i];
      if (seen++ == 0) first = more;
      if (!same(judged.found.values[i], judged.exact[i] + first, judged.derived[i])) return std::nullopt;
    }
  }
  if (seen < 8) return std::nullopt;
  return fmt::format(
      "a summand that is wrong or missing: lse is {:+.4g} off what is right in every element; look at L = m + log l",
      first);
}

// Wrong are only rows behind the last whole tile of queries.
std::optional<std::string> tail_of_rows(const Trial& trial) {
  const std::int64_t rows = trial.sample.problem.seq_q;
  std::int64_t first = rows;
  for (const Judged& judged : trial.tensors) {
    if (judged.found.shape[2] != rows) return std::nullopt;
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (judged.wrong(i)) first = std::min(first, static_cast<std::int64_t>(i) / width % rows);
    }
  }
  for (const std::int64_t tile : {128, 64, 32, 16, 8}) {
    if (rows % tile == 0 || first == rows || rows < tile || first < rows / tile * tile) continue;
    return fmt::format("the last, partial tile of queries: only rows from {} on are wrong, of {} (tiles of {})", first,
                       rows, tile);
  }
  return std::nullopt;
}

// "wrong rows 16..63 of every 64": a part of each tile of rows, of the first wrong tensor, whatever the head.
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

// Right is the first batch entry, or the first head of each, or the first head of all, and nothing behind it.
std::optional<std::string> only_the_first(const Trial& trial) {
  const char* const all[] = {"batch entry", "head", "head of the first batch entry"};
  for (const int dim : {0, 1, 2}) {
    bool first_right = true, others_wrong = true;
    std::int64_t others = 0;
    for (const Judged& judged : trial.tensors) {
      if (!judged.wrong_anywhere()) continue;
      const std::int64_t batch = judged.found.shape[0], heads = judged.found.shape[1];
      const std::int64_t each = static_cast<std::int64_t>(judged.exact.size()) / (batch * heads);
      std::vector<std::int64_t> wrong(static_cast<std::size_t>(batch * heads), 0);
      for (std::size_t i = 0; i < judged.exact.size(); ++i)
        wrong[i / static_cast<std::size_t>(each)] += judged.wrong(i);
      for (std::int64_t i = 0; i < batch * heads; ++i) {
        const std::int64_t place = dim == 0   ? i / heads
                                   : dim == 1 ? i % heads
                                              : i,
                           count = wrong[static_cast<std::size_t>(i)];
        if (place == 0) {
          first_right = first_right && count == 0;
        } else {
          others_wrong = others_wrong && 2 * count > each;  // mostly: not by chance
          ++others;
        }
      }
    }
    if (!first_right || !others_wrong || others == 0) continue;
    return fmt::format(
        "the first {} alone: it is right, and all others are wrong; look at how batch and head come into every index, "
        "and at loops that end with the first",
        all[dim]);
  }
  return std::nullopt;
}

std::optional<std::string> nothing_seen(const Trial& trial) {
  const Problem& p = trial.sample.problem;
  bool any = false;
  for (const Judged& judged : trial.tensors) {
    if (judged.found.shape[2] != p.seq_q) continue;
    const std::int64_t width = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (!judged.wrong(i)) continue;
      if (p.visible_keys(static_cast<std::int64_t>(i) / width % p.seq_q) > 0) return std::nullopt;
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return "a division by nothing: only rows that see no key are wrong; their output is 0 and their log-sum-exp −inf";
}

std::optional<std::string> looks_like(const Trial& here, const std::optional<Trial>& larger, Pass pass) {
  const Trial& trial = larger && larger->wrong() ? *larger : here;
  std::map<std::string, std::string> kinds = explaining(trial, pass);
  // Both must be explained, the larger one where it is right, too: there the mistake would be seen if it were made.
  if (larger && !kinds.empty()) {
    const std::map<std::string, std::string> others = explaining(&trial == &here ? *larger : here, pass);
    std::erase_if(kinds, [&](const auto& kind) { return others.count(kind.first) == 0; });
  }
  if (kinds.size() == 1) {
    std::int64_t elements = 0;
    for (const Judged& judged : trial.tensors) elements += static_cast<std::int64_t>(judged.exact.size());
    return fmt::format("{}: that alone gives all {} elements as found (S={}×{}); look at {}", kinds.begin()->first,
                       elements, trial.sample.problem.seq_q, trial.sample.problem.seq_k, kinds.begin()->second);
  }
  if (!kinds.empty()) return std::nullopt;
  std::vector<std::string> patterns;
  for (const auto& pattern :
       {one_factor(trial), one_summand(trial), tail_of_rows(trial), only_the_first(trial), nothing_seen(trial)}) {
    if (pattern) patterns.push_back(*pattern);
  }
  return patterns.size() == 1 ? std::optional(patterns.front()) : std::nullopt;
}

std::string input_words(const Sample& sample) {
  const Problem& p = sample.problem;
  std::ostringstream layouts;
  showValue(sample.layout_in, layouts);
  layouts << " in, ";
  showValue(sample.layout_out, layouts);
  layouts << " out";
  const std::string heads =
      p.heads_q == p.heads_kv ? fmt::format("{}", p.heads_q) : fmt::format("{} ({} of keys)", p.heads_q, p.heads_kv);
  const std::string length =
      p.seq_q == p.seq_k ? fmt::format("{}", p.seq_q) : fmt::format("{} queries × {} keys", p.seq_q, p.seq_k);
  const bool plain = sample.layout_in == property::Layout::contiguous && sample.layout_out == sample.layout_in;
  return fmt::format("input: B={} H={} S={} D={} {}, mask {}, {}{}, seed {}", p.batch, heads, length, p.head_dim,
                     to_string(p.dtype), to_string(p.mask), plain ? "contiguous" : layouts.str(),
                     p.scale == 0 ? "" : fmt::format(", scale {}", p.scale), sample.seed);
}

// Where a fault can be, by which tensors are right: a pass makes one of another.
std::string narrowed_by(const std::string& wrong, Pass pass) {
  static const std::map<std::string, const char*> forward{
      {"10", "lse is right, so scores, mask and row sums are: look at P V and at the division"},
      {"01", "out is right: look at L = m + log l alone"}};
  static const std::map<std::string, const char*> backward{
      {"001", "dQ and dK are right: look at dV = Pᵀ dO alone"},
      {"100", "dK and dV are right: look at dQ = dS K, and how it is added up, alone"},
      {"010", "dQ and dV are right: look at dK = dSᵀ Q, and how it is added up, alone"},
      {"110", "dV is right, so P and the mask are: look at dP = dO Vᵀ, D and dS"}};
  const auto& known = pass == Pass::forward ? forward : backward;
  const auto found = known.find(wrong);
  return found == known.end() ? "" : found->second;
}

// In place of that, of a backward pass: its formulas are of O and L, and say nothing of itself where these are wrong.
std::string wrong_before(const std::string& given) {
  return fmt::format("{} of the forward pass {} wrong already on this input: look there first", given,
                     given.size() > 1 ? "are" : "is");
}

// On both inputs, where both are wrong: a small one may hide what a tensor has wrong.
std::string narrowed(const Trial& here, const std::optional<Trial>& larger, Pass pass) {
  const bool both = here.wrong() && larger && larger->wrong();
  if (const std::string given = wrong_given(here); !given.empty()) return wrong_before(given);
  if (larger && !wrong_given(*larger).empty()) return "";
  const std::string where = narrowed_by(wrong_tensors(here.wrong() || !larger ? here : *larger), pass);
  return both && narrowed_by(wrong_tensors(*larger), pass) != where ? "" : where;
}

// "first wrong: out[0, 0, 64, 3] (row 0 of tile 1 of 64): found …, expected … ± …; 16 of 64 elements wrong"
std::string first_wrong(const Trial& trial) {
  for (const Judged& judged : trial.tensors) {
    std::int64_t first = -1, wrong = 0;
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      if (!judged.wrong(i)) continue;
      if (wrong++ == 0) first = static_cast<std::int64_t>(i);
    }
    if (wrong == 0) continue;
    std::string where;
    std::int64_t rest = first, row = 0;
    for (int dim = judged.found.shape.rank() - 1; dim >= 0; --dim) {
      const std::int64_t index = rest % judged.found.shape[dim];
      if (dim == 2) row = index;
      where = fmt::format("{}{}{}", index, where.empty() ? "" : ", ", where);
      rest /= judged.found.shape[dim];
    }
    std::string tile;
    for (const std::int64_t size : {128, 64, 32, 16}) {
      if (row < size) continue;
      tile = fmt::format(", row {} of tile {} of {}", row % size, row / size, size);
      break;
    }
    const auto at = static_cast<std::size_t>(first);
    return fmt::format("first wrong: {}[{}]{}: found {:.6g}, expected {:.6g} ± {:.2g}; {} of {} elements",
                       judged.found.name, where, tile, judged.found.values[at], judged.exact[at], judged.allowed[at],
                       wrong, judged.exact.size());
  }
  return {};
}

std::string listed(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) text += fmt::format("{}{}", text.size() == 1 ? "" : ",", value);
  return text + "]";
}

// The call itself, where the hand-out's form (q, k, v, is_causal) has a place for it and it is small enough to be read:
// `,"call":{…}`, for a test that needs nothing of ours. Or nothing.
std::string call_json(const Sample& sample, Pass pass) {
  constexpr std::size_t kMostNumbers = 20'000;
  const Problem& p = sample.problem;
  const bool plain = p.heads_q == p.heads_kv && p.scale == 0 && p.mask != Mask::bottom_right;
  if (!plain || sample.q.size() + sample.k.size() > kMostNumbers / 2) return {};
  for (const double value : sample.q) {
    if (!std::isfinite(value)) return {};
  }
  // Drawn for a forward pass, too: the test tells gradients of what is right.
  const std::vector<double> dout = sample.dout.empty() ? query_values(sample, "dout") : sample.dout;
  return fmt::format(
      R"(,"call":{{"pass":"{}","causal":{},"dtype":"{}","batch":{},"queries":{},"keys":{},"dim":{},"q":{},"k":{},"v":{},"dout":{}}})",
      pass == Pass::forward ? "forward" : "backward", p.mask == Mask::top_left, to_string(p.dtype), p.batch * p.heads_q,
      p.seq_q, p.seq_k, p.head_dim, listed(sample.q), listed(sample.k), listed(sample.v), listed(dout));
}

// Of the first wrong tensor, all batches and heads over each other: at most 48 × 64 cells.
std::string error_map(const Trial& trial, Pass pass) {
  constexpr std::int64_t kRows = 48, kColumns = 64;
  constexpr double kMost = 1e9;
  for (const Judged& judged : trial.tensors) {
    if (!judged.wrong_anywhere()) continue;
    const std::int64_t rows = judged.found.shape[2];
    const std::int64_t columns = judged.found.shape.rank() == 4 ? judged.found.shape[3] : 1;
    const std::int64_t down = std::min(rows, kRows), across = std::min(columns, kColumns);
    std::vector<double> cells(static_cast<std::size_t>(down * across), 0.0);
    for (std::size_t i = 0; i < judged.exact.size(); ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) / columns % rows,
                         column = static_cast<std::int64_t>(i) % columns;
      double& cell = cells[static_cast<std::size_t>(row * down / rows * across + column * across / columns)];
      cell = std::max(cell, std::min(kMost, Tally::ratio_of(Tally::error_of(judged.found.values[i], judged.exact[i]),
                                                            judged.allowed[i])));
    }
    std::string json =
        fmt::format(R"({{"tensor":"{}","rows":{},"columns":{},"cells":[)", judged.found.name, rows, columns);
    for (std::int64_t row = 0; row < down; ++row) {
      json += row == 0 ? "[" : ",[";
      for (std::int64_t column = 0; column < across; ++column) {
        json += fmt::format("{}{:.3g}", column == 0 ? "" : ",", cells[static_cast<std::size_t>(row * across + column)]);
      }
      json += "]";
    }
    return json + "]" + call_json(trial.sample, pass) + "}";
  }
  return {};
}

}  // namespace

Explanation explain(const Subject& subject, std::string_view law, const Sample& sample, Pass pass, bool seldom) {
  constexpr std::chrono::seconds kBrief{2};  // whose call hangs is not asked for more
  Explanation said{input_words(sample), {}};
  const auto add = [&](const std::string& line) { said.lines += line.empty() ? "" : "\n" + line; };
  if (sample.long_both()) return said;  // asking on, and every suspect, would take many times as long
  const auto begin = std::chrono::steady_clock::now();
  try {
    const bool backward = pass == Pass::backward;
    const Trial here = tried(subject, sample, pass, backward);
    const AskedAgain again = asked_again(subject, here, pass);
    if (here.wrong()) said.error_map = error_map(here, pass);
    if (seldom || again.differs) {  // what it wrote once says nothing of its formulas
      add(first_wrong(here));
      add(again.line());
      if (again.differs) add(again.given.empty() ? narrowed_by(again.wrong, pass) : wrong_before(again.given));
      return said;
    }
    if (const std::string kept = of_a_fresh_process(subject, again, sample, pass); !kept.empty()) {
      add(first_wrong(here));
      add(kept);
      return said;
    }
    std::optional<Trial> larger;
    if (const auto more = enlarged(subject, sample, pass)) larger = tried(subject, *more, pass, backward);
    const bool larger_wrong = larger && larger->wrong();
    add(first_wrong(here));
    if (larger_wrong && !here.wrong()) said.error_map = error_map(*larger, pass);
    if (here.wrong() || larger_wrong) {
      const auto mistake = looks_like(here, larger, pass);
      if (mistake) add("looks like " + *mistake);
      if (const auto rows = rows_of_every_tile(larger_wrong ? *larger : here)) add(*rows);
      const std::string right = here.wrong() ? right_with(subject, sample, pass) : "";
      // Where keys are left out, lse may be right by its tolerance alone.
      const bool left_out = !backward && right.find("right up to") != std::string::npos;
      if (!mistake && !left_out) add(narrowed(here, larger, pass));
      add(right);
    } else if (law == "attention.large_scores") {
      add(of_large_scores(subject, sample));
    }
  } catch (const std::exception&) {  // it refuses now, or is gone: what the law says must do
    if (std::chrono::steady_clock::now() - begin < kBrief) add(right_with(subject, sample, pass));
  }
  return said;
}

}  // namespace syslab::attention
