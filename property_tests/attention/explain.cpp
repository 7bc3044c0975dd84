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
#include "property_tests/attention/hidden_scores.hpp"
#include "property_tests/attention/kinds.hpp"
#include "property_tests/attention/one_value.hpp"
#include "property_tests/attention/patterns.hpp"
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
  larger.v = key_values(larger, "v", larger.value_gain);
  if (pass == Pass::backward) larger.dout = query_values(larger, "dout", larger.gradient_gain);
  return larger;
}

// `among`: only these kinds, and no pattern.
std::optional<Likeness> looks_like(const Subject& subject, const Trial& here, const std::optional<Trial>& larger,
                                   Pass pass, const Kinds* among = nullptr) {
  const Trial& trial = larger && larger->wrong() ? *larger : here;
  Kinds kinds = explaining(trial, pass, among);
  // Both must be explained, the larger one where it is right, too.
  if (larger) keep_those_of(kinds, &trial == &here ? *larger : here, pass);
  if (std::any_of(kinds.begin(), kinds.end(), [](const auto& kind) { return !kind.second.subtle; })) {
    std::erase_if(kinds, [](const auto& kind) { return kind.second.subtle; });
  }
  if (kinds.size() == 1) {
    std::int64_t elements = 0;
    for (const Judged& judged : trial.tensors) elements += static_cast<std::int64_t>(judged.exact.size());
    const auto& [name, kind] = *kinds.begin();
    return Likeness{
        name, fmt::format("that alone gives all {} elements as found ({}S={}×{}); look at {}", elements,
                          kind.tiles_words(), trial.sample.problem.seq_q, trial.sample.problem.seq_k, kind.look_at)};
  }
  if (!kinds.empty() || among != nullptr) return std::nullopt;
  if (auto number = of_hidden_scores(subject, here, larger ? &*larger : nullptr, pass)) return number;
  return pattern_of_errors(trial, &trial == &here ? (larger ? &*larger : nullptr) : &here, pass);
}

Kinds zero_kinds(Pass pass) {
  Kinds kinds;
  for (const Mistake& mistake : zero_mistakes(pass)) kinds.try_emplace(mistake.kind, Kind{mistake.look_at, {}, false});
  return kinds;
}

std::string input_words(const Sample& sample) {
  const Problem& p = sample.problem;
  std::ostringstream layouts;
  showValue(sample.layout_in, layouts);
  layouts << " in, ";
  showValue(sample.layout_out, layouts);
  layouts << " out" << (sample.mixed.empty() ? "" : ", mixed");
  const std::string heads =
      p.heads_q == p.heads_kv ? fmt::format("{}", p.heads_q) : fmt::format("{} ({} of keys)", p.heads_q, p.heads_kv);
  const std::string length =
      p.seq_q == p.seq_k ? fmt::format("{}", p.seq_q) : fmt::format("{} queries × {} keys", p.seq_q, p.seq_k);
  const bool plain =
      sample.layout_in == property::Layout::contiguous && sample.layout_out == sample.layout_in && sample.mixed.empty();
  return fmt::format("B={} H={} S={} D={} {}, mask {}, {}{}, seed {}", p.batch, heads, length, p.head_dim,
                     to_string(p.dtype), to_string(p.mask), plain ? "contiguous" : layouts.str(),
                     p.scale == 0 ? "" : fmt::format(", scale {}", p.scale), sample.seed);
}

// Where a fault can be, by which tensors are right: a pass makes one of another.
std::string narrowed_by(const std::string& wrong, Pass pass) {
  static const std::map<std::string, const char*> forward{
      {"10",
       "lse is right, so the scores, mask and row sums that it takes are: look at the softmax that P takes (over keys, "
       "the last axis), at P V, at how its sum is rescaled, and at the division"},
      {"01", "out is right: look at L = m + log l alone"},
      {"11",
       "out and lse are both wrong: look at what both are made of, the scores (Q Kᵀ, scale, mask) and the softmax (its "
       "maximum and row sum, over keys, the last axis)"}};
  static const std::map<std::string, const char*> backward{
      {"001", "dQ and dK are right: look at dV = Pᵀ dO alone"},
      {"100", "dK and dV are right: look at dQ = dS K, and how it is added up, alone"},
      {"010", "dQ and dV are right: look at dK = dSᵀ Q, and how it is added up, alone"},
      {"110", "dV is right, so P and the mask are: look at dP = dO Vᵀ, D and dS"},
      {"111",
       "dQ, dK and dV are all wrong, and O and L are right: look at P = exp(S − L) first, which all three are made "
       "of"}};
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
  const Trial& trial = here.wrong() || !larger ? here : *larger;
  const std::string wrong = wrong_tensors(trial);
  // Of one key P is 1 and dS 0 whatever its score is: that out, or dQ and dK, are right says nothing of the scores.
  const Problem& p = trial.sample.problem;
  const bool one_key = p.visible_keys(p.seq_q - 1) < 2 && (wrong == "01" || wrong == "001");
  const std::string where = one_key ? "" : narrowed_by(wrong, pass);
  if (where.empty() || (both && narrowed_by(wrong_tensors(*larger), pass) != where)) return "";
  const bool of_larger = !here.wrong() && larger;
  return of_larger ? fmt::format("{} (of this input's kind, S={}×{})", where, larger->sample.problem.seq_q,
                                 larger->sample.problem.seq_k)
                   : where;
}

// Of a forward pass: right far within its tolerance.
bool has_exact_lse(const Trial& trial) {
  const Judged& lse = trial.tensors[1];
  for (std::size_t i = 0; i < lse.exact.size(); ++i) {
    if (!same(lse.found.values[i], lse.exact[i], lse.derived[i], lse.unit)) return false;
  }
  return true;
}

// "out[0, 0, 64, 3], row 0 of tile 1 of 64: found …, expected … ± …; 16 of 64 elements"
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
    return fmt::format("{}[{}]{}: found {:.6g}, expected {:.6g} ± {:.2g}; {} of {} elements", judged.found.name, where,
                       tile, judged.found.values[at], judged.exact[at], judged.allowed[at], wrong, judged.exact.size());
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
  Explanation said;
  said.input = input_words(sample);
  said.lines = "input: " + said.input;
  const auto add = [&](const std::string& line) { said.lines += line.empty() ? "" : "\n" + line; };
  const auto add_first_wrong = [&](const Trial& trial) {
    said.first_wrong = first_wrong(trial);
    if (!said.first_wrong.empty()) add("first wrong: " + said.first_wrong);
  };
  const auto add_cause = [&](const Likeness& likeness) {
    said.cause = likeness.cause;
    add("looks like " + likeness.words());
  };
  if (sample.long_both()) return said;  // asking on, and every suspect, would take many times as long
  const auto begin = std::chrono::steady_clock::now();
  try {
    const bool backward = pass == Pass::backward;
    const Trial here = tried(subject, sample, pass, backward);
    const AskedAgain again = asked_again(subject, here, pass);
    if (here.wrong()) said.error_map = error_map(here, pass);
    if (seldom || again.differs) {  // what it wrote once says nothing of its formulas
      add_first_wrong(here);
      add_cause(again.likeness());
      if (again.differs) add(again.given.empty() ? narrowed_by(again.wrong, pass) : wrong_before(again.given));
      return said;
    }
    if (const auto kept = of_a_fresh_process(subject, again, sample, pass)) {
      add_first_wrong(here);
      add_cause(*kept);
      return said;
    }
    std::optional<Trial> larger;
    if (const auto more = enlarged(subject, sample, pass)) larger = tried(subject, *more, pass, backward);
    const bool larger_wrong = larger && larger->wrong();
    add_first_wrong(here);
    if (larger_wrong && !here.wrong()) said.error_map = error_map(*larger, pass);
    if (here.wrong() || larger_wrong) {
      const Trial* const other = here.wrong() && larger ? &*larger : nullptr;
      const auto alike = one_value_everywhere(here.wrong() ? here : *larger, other, pass);
      // What is so of a short input alone, of one partial tile perhaps, may have a better name.
      const bool throughout = alike && (!larger || one_value_everywhere(*larger, nullptr, pass));
      const Kinds zeros = zero_kinds(pass);
      const auto mistake = looks_like(subject, here, larger, pass, throughout ? &zeros : nullptr);
      if (mistake || alike) add_cause(mistake ? *mistake : *alike);
      if (const auto rows = rows_of_every_tile(larger_wrong ? *larger : here)) add(*rows);
      const RightWith right = here.wrong() ? right_with(subject, sample, pass) : RightWith{};
      // Where keys are left out, lse may be right by its tolerance alone.
      const bool left_out = !backward && right.at_fewer_keys;
      if (!mistake && !left_out) add(narrowed(here, larger, pass));
      if (!mistake && left_out && has_exact_lse(here) && (!larger || has_exact_lse(*larger))) {
        add("lse is exact, so every key has its part in it: look at the values that P is multiplied with, and at how "
            "their sum is rescaled");
      }
      if (here.wrong() && (law == "attention.keeps_no_state" || law == "attention.repeats")) {
        add("the same input is wrong in a call by itself, too: look there before state");
      }
      add(right.shown);
    } else if (pass == Pass::forward) {
      if (const auto number = of_hidden_scores(subject, here, larger ? &*larger : nullptr, pass)) {
        add_cause(*number);
      } else if (law == "attention.large_scores") {
        const Likeness found = of_large_scores(subject, sample);
        found.cause.empty() ? add(found.shown) : add_cause(found);
      }
    }
  } catch (const std::exception&) {  // it refuses now, or is gone: what the law says must do
    if (std::chrono::steady_clock::now() - begin < kBrief) add(right_with(subject, sample, pass).shown);
  }
  return said;
}

}  // namespace syslab::attention
