#include "property_tests/attention/contrasts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "check/tally.hpp"
#include "ops/attention/foreign.hpp"

namespace syslab::attention {
namespace {

using Clock = std::chrono::steady_clock;

bool is_apart(double one, double other, double allowed) {
  if (std::isnan(one) || std::isnan(other)) return std::isnan(one) != std::isnan(other);
  return check::Tally::error_of(one, other) > allowed;
}

// Of the same problem and seed, each tensor of its own.
Sample filled(Sample sample, const Problem& problem, std::uint64_t seed) {
  sample.problem = problem;
  sample.seed = seed;
  sample.q = query_values(sample, "q");
  sample.k = key_values(sample, "k");
  sample.v = key_values(sample, "v", sample.value_gain);
  if (!sample.dout.empty()) sample.dout = query_values(sample, "dout", sample.gradient_gain);
  return sample;
}

// Whatever goes wrong: a wrong value, an exception, the end of its process.
bool fails(const Subject& subject, const Sample& sample, Pass pass) {
  try {
    return tried(subject, sample, pass).wrong();
  } catch (const std::exception&) {
    return true;
  }
}

// Also who is gone, and says nothing any more.
bool refuses(const Subject& subject, const Problem& problem, Pass pass) {
  try {
    return subject.rung.supports(problem, pass).has_value();
  } catch (const std::exception&) {
    return true;
  }
}

bool has(const std::vector<std::int64_t>& sizes, std::int64_t size) {
  return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
}

// The last key that the last query sees has nearly all of the weight: who leaves it out is wrong, however many others
// there are.
Sample with_a_heavy_last_key(const Sample& like, const Problem& problem, std::uint64_t seed) {
  constexpr double kScore = 16, kQuery = 4;
  Sample sample = filled(like, problem, seed);
  const std::int64_t last = problem.visible_keys(problem.seq_q - 1) - 1, width = problem.head_dim;
  if (last < 0) return sample;
  for (std::size_t i = 0; i < sample.q.size(); i += static_cast<std::size_t>(width)) sample.q[i] = kQuery;
  for (std::int64_t head = 0; head < problem.batch * problem.heads_kv; ++head) {
    sample.k[static_cast<std::size_t>((head * problem.seq_k + last) * width)] =
        std::round(kScore / kQuery / problem.effective_scale());
  }
  return sample;
}

// "right at 1024 keys, wrong at 1025"; empty where that is not so, or the time is over first.
template <typename InTime>
std::string longest_right(const Subject& subject, const Sample& sample, Pass pass, const InTime& in_time) {
  if (!subject.rung.domain || sample.problem.mask == Mask::bottom_right) return {};
  const Domain& domain = *subject.rung.domain;
  const bool square = subject.menu.square;
  const std::int64_t unit = std::max<std::int64_t>(domain.multiple_of, 1);
  const auto of_length = [&](std::int64_t keys) {
    Problem problem = sample.problem;
    problem.seq_k = keys;
    if (square) problem.seq_q = keys;
    return problem;
  };
  bool heavy = true;
  const auto wrong = [&](std::int64_t keys) {
    constexpr std::uint64_t kHeavy = 2, kOthers = 6;  // samples
    for (std::uint64_t seed = 1; seed <= (heavy ? kHeavy : kOthers); ++seed) {
      const Problem problem = of_length(keys);
      const Sample asked = heavy ? with_a_heavy_last_key(sample, problem, seed) : filled(sample, problem, seed);
      if (fails(subject, asked, pass)) return true;
    }
    return false;
  };
  std::int64_t right = subject.menu.seq_k.front(), bad = sample.problem.seq_k;
  if (right >= bad || refuses(subject, of_length(right), pass)) return {};
  heavy =
      wrong(bad);  // else the others are looked at: beside such a key, a wrong rescale of what was before is nothing
  if (wrong(right) || !wrong(bad)) return {};
  while (bad - right > unit) {
    if (!in_time()) return {};
    const std::int64_t middle = right + (bad - right) / unit / 2 * unit;
    (wrong(middle) ? bad : right) = middle;
  }
  constexpr std::int64_t kTiles = 16;
  if (!heavy && right % kTiles != 0) return {};  // chance may hide a fault in a few keys: said of whole tiles alone
  // Not of a last, partial tile, which is right again further on.
  for (const std::int64_t more : {2 * right, sample.problem.seq_k}) {
    if (more < sample.problem.seq_k && !wrong(more)) return {};
  }
  // Lengths between those that were asked may be otherwise.
  return square ? fmt::format("right at S={}, wrong at {}", right, bad)
                : fmt::format("right at {} keys, wrong at {}", right, bad);
}

// One thing that may be changed, with several values to try, the nearest first.
struct Change {
  std::vector<std::pair<std::string, Problem>> tries;
};

std::vector<Change> changes_of(const Menu& menu, const Problem& p) {
  std::vector<Change> changes;
  const auto changed = [&](auto set) {
    Problem other = p;
    set(other);
    return other;
  };
  for (const Mask mask : menu.masks) {
    if (mask == p.mask || (mask != Mask::none && p.mask != Mask::none)) continue;
    changes.push_back({{{mask == Mask::none ? "without a mask" : "with a causal mask",
                         changed([&](Problem& other) { other.mask = mask; })}}});
    break;
  }
  if (p.batch * p.heads_q > 1 && has(menu.batch, 1) && has(menu.heads_kv, 1)) {
    changes.push_back({{{"with one batch entry of one head", changed([&](Problem& other) {
                           other.batch = 1;
                           other.heads_q = p.heads_q / p.heads_kv;
                           other.heads_kv = 1;
                         })}}});
  }
  if (p.seq_q != p.seq_k && has(menu.seq_k, p.seq_q)) {
    changes.push_back({{{fmt::format("with as many keys as queries ({})", p.seq_q),
                         changed([&](Problem& other) { other.seq_k = p.seq_q; })}}});
  }
  Change keys, queries, widths;
  for (const std::int64_t wanted : {16, 32, 64, 128}) {
    if (wanted <= p.head_dim || !has(menu.head_dim, wanted)) continue;
    widths.tries.push_back({fmt::format("with D={} in place of {}", wanted, p.head_dim),
                            changed([&](Problem& other) { other.head_dim = wanted; })});
  }
  for (const std::int64_t step : {2, 4, 8, 16, 32, 64, 128}) {
    const auto up = [step](std::int64_t size) { return (size + step - 1) / step * step; };
    if (const std::int64_t wanted = up(p.seq_k); wanted != p.seq_k && has(menu.seq_k, wanted)) {
      if (!menu.square) {
        keys.tries.push_back({fmt::format("with {} keys in place of {}", wanted, p.seq_k),
                              changed([&](Problem& other) { other.seq_k = wanted; })});
      } else {
        keys.tries.push_back({fmt::format("with S={} in place of {}", wanted, p.seq_k),
                              changed([&](Problem& other) { other.seq_q = other.seq_k = wanted; })});
      }
    }
    if (const std::int64_t wanted = up(p.seq_q); !menu.square && wanted != p.seq_q && has(menu.seq_q, wanted)) {
      queries.tries.push_back({fmt::format("with {} queries in place of {}", wanted, p.seq_q),
                               changed([&](Problem& other) { other.seq_q = wanted; })});
    }
  }
  changes.push_back(std::move(keys));
  changes.push_back(std::move(queries));
  changes.push_back(std::move(widths));
  return changes;
}

// Of each row that has a log-sum-exp, an infinity or NaN was written.
bool no_row_has_its_lse(const Trial& trial) {
  const Judged& lse = trial.tensors[1];
  for (std::size_t i = 0; i < lse.exact.size(); ++i) {
    if (std::isfinite(lse.exact[i]) && std::isfinite(lse.found.values[i])) return false;
  }
  return true;
}

// Some element of out is no number, or larger than every value.
bool has_no_mean_of_values(const Trial& trial) {
  constexpr double kNarrow = 1e-2;  // of products that round their inputs
  double largest = 0;
  for (const double value : trial.sample.v) largest = std::max(largest, std::abs(value));
  const std::vector<double>& out = trial.tensors[0].found.values;
  return std::any_of(out.begin(), out.end(),
                     [&](double value) { return !(std::abs(value) <= (1 + kNarrow) * largest); });
}

}  // namespace

Likeness AskedAgain::likeness() const {
  const std::string memory =
      "memory that threads or calls share, that is read before it is written, or that is not cleared";
  if (wrong_calls == calls) {
    return {memory, fmt::format("the same input has another wrong answer each time (of {} calls)", calls)};
  }
  return {memory, fmt::format("the same input has another answer now and then ({})",
                              wrong_calls > 0 ? fmt::format("wrong in {} of {} calls", wrong_calls, calls)
                                              : fmt::format("this time right in {} calls", calls))};
}

std::optional<Likeness> of_a_fresh_process(const Subject& subject, const AskedAgain& again, const Sample& sample,
                                           Pass pass) {
  constexpr int kMostRight = 4;
  if (!subject.rung.domain || again.wrong_calls < again.calls) return std::nullopt;
  struct Asked {
    int times = 0;
    bool wrong = false;
  };
  static std::map<std::string, Asked> asked;  // of what is asked in this process of ours
  auto& [times, wrong] = asked[fmt::format("{} {} {}", subject.rung.name, subject.rung.digest, to_string(pass))];
  if (wrong) return std::nullopt;
  const char* const state = "state that an earlier call left";
  const char* const look_at = "look at statics, class attributes, and what is kept by shape or by address";
  if (times >= kMostRight) {
    return Likeness{state, fmt::format("{} inputs before this one were right when called first in a fresh process, in "
                                       "which this one was not called; {}",
                                       times, look_at)};
  }
  const Company company({.first = true});
  if (tried(subject, sample, pass).wrong()) {
    wrong = true;
    return std::nullopt;
  }
  ++times;
  return Likeness{state, fmt::format("right when it is called first in a fresh process, wrong in all {} calls behind "
                                     "others; {}",
                                     again.calls, look_at)};
}

AskedAgain asked_again(const Subject& subject, const Trial& first, Pass pass) {
  constexpr int kCalls = 8;
  constexpr std::chrono::seconds kTime{2};
  AskedAgain again{1, first.wrong() ? 1 : 0, false, wrong_tensors(first), wrong_given(first)};
  const auto begin = Clock::now();
  while (again.calls < kCalls && Clock::now() - begin < kTime) {
    const Trial now = tried(subject, first.sample, pass, !first.given.empty());
    ++again.calls;
    if (again.given.empty()) again.given = wrong_given(now);
    again.wrong_calls += now.wrong() ? 1 : 0;
    const std::string wrong = wrong_tensors(now);
    for (std::size_t t = 0; t < first.tensors.size(); ++t) {
      if (wrong[t] == '1') again.wrong[t] = '1';
      const Judged &then = first.tensors[t], &found = now.tensors[t];
      for (std::size_t i = 0; !again.differs && i < then.allowed.size(); ++i) {
        again.differs = is_apart(then.found.values[i], found.found.values[i], 2 * then.allowed[i]);
      }
    }
  }
  return again;
}

RightWith right_with(const Subject& subject, const Sample& sample, Pass pass) {
  constexpr std::chrono::seconds kTime{3};
  constexpr std::uint64_t kSeeds = 2;
  const auto begin = Clock::now();
  const auto always = [&](const Problem& problem, bool wrong) {
    for (std::uint64_t i = 1; i <= kSeeds; ++i) {
      if (fails(subject, filled(sample, problem, sample.seed + i), pass) != wrong) return false;
    }
    return true;
  };
  if (!always(sample.problem, true)) return {};  // then the values decide, too
  std::string text;
  bool by_length = false;  // another number of keys makes it right
  for (const Change& change : changes_of(subject.menu, sample.problem)) {
    for (const auto& [words, problem] : change.tries) {
      if (Clock::now() - begin > kTime) break;
      if (refuses(subject, problem, pass) || !always(problem, false)) continue;
      text += (text.empty() ? "right once it is asked " : ", or ") + words;
      by_length = by_length || problem.seq_k > sample.problem.seq_k;
      break;
    }
  }
  if (by_length) return {text};
  const std::string limit = longest_right(subject, sample, pass, [&] { return Clock::now() - begin < 2 * kTime; });
  if (limit.empty()) return {text};
  return {text + (text.empty() ? "" : "; ") + limit, true};
}

Likeness of_large_scores(const Subject& subject, const Sample& sample) {
  constexpr double kScore = 1000;  // e^±1000 is infinite, and nothing
  const auto with_scores_near = [&](double score) {
    Sample all = filled(sample, sample.problem, sample.seed);
    const double scale = sample.problem.effective_scale(), size = std::sqrt(kScore / std::abs(scale));
    const auto width = static_cast<std::size_t>(sample.problem.head_dim);
    for (std::size_t i = 0; i < all.q.size(); i += width) all.q[i] = size;
    for (std::size_t i = 0; i < all.k.size(); i += width) all.k[i] = score / kScore * std::copysign(size, scale);
    return all;
  };
  const auto found = [&](const Sample& large) -> std::optional<Trial> {
    try {
      return tried(subject, large, Pass::forward);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  };
  const auto above = found(with_scores_near(kScore));
  if (!above) return {};
  if (above->wrong()) {
    if (!no_row_has_its_lse(*above)) return {};
    return {"exp without the row's maximum subtracted",
            "right for scores of order one, wrong where all of a row are near 1000; look at where m is taken off"};
  }
  const auto below = found(with_scores_near(-kScore));
  if (!below) return {};
  if (below->wrong()) {
    if (!no_row_has_its_lse(*below)) return {};
    return {
        "a maximum that does not begin at −∞",
        "right for scores of order one and near 1000, wrong where all of a row are near −1000; look at where m begins"};
  }
  const auto apart = found(with_large_scores(sample));
  if (!apart || !has_no_mean_of_values(*apart)) return {};
  return {
      "",
      "right where all scores of a row are near 1000 or near −1000, wrong where they lie far apart: look at exp "
      "itself far below 0, where it must come out as 0, and whether the maximum is over all keys that the row sees"};
}

}  // namespace syslab::attention
