#include "property_tests/attention/laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "check/search.hpp"
#include "property_tests/attention/explain.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/law_table.hpp"

namespace syslab::attention {
namespace {

using check::Contract;

// Functions, not objects: experiments ask for the laws while statics of other files may not be there yet.
std::vector<DType> below_double() { return {DType::f32, DType::f16, DType::bf16}; }
std::vector<DType> half() { return {DType::f16, DType::bf16}; }

// What a law needs beyond its draw: the reason why it does not apply, or nothing.
using Excuse = std::optional<std::string> (*)(const Candidate&, Contract);

std::optional<std::string> always(const Candidate&, Contract) { return std::nullopt; }

std::optional<std::string> when_deterministic(const Candidate& rung, Contract contract) {
  if (contract == Contract::handout) return "the hand-out's contract promises no repeatability";
  if (!rung.deterministic) return rung.name + " does not promise to be deterministic";
  return std::nullopt;
}

std::optional<std::string> when_not_naive(const Candidate& rung, Contract) {
  if (rung.name == "naive") return "naive is the yardstick itself";
  if (rung.domain) return "the tolerance of the hand-out is what " + rung.name + " promises";
  return std::nullopt;
}

std::optional<std::string> when_lengths_may_differ(const Candidate& rung, Contract) {
  if (rung.domain && rung.domain->square) return rung.name + " does not promise other lengths of keys than of queries";
  return std::nullopt;
}

std::optional<std::string> when_heads_are_apart(const Candidate&, Contract contract) {
  if (contract == Contract::handout) return "the hand-out folds heads into the batch";
  return std::nullopt;
}

std::optional<std::string> when_apart(const Candidate& rung, Contract) {
  if (!rung.domain) return "it is asked of what runs in a process of its own, and " + rung.name + " runs in this one";
  return std::nullopt;
}

std::optional<std::string> when_by_autograd(const Candidate& rung, Contract contract) {
  if (contract == Contract::handout) return "the hand-out's tests hand over a contiguous dO";
  if (!rung.domain || !rung.domain->by_autograd) return "it is asked of a torch.autograd.Function";
  return std::nullopt;
}

struct Entry {
  const char* id;
  const char* statement;
  Body body;
  Wants wants;
  Excuse excuse = always;
  bool against_oracle = false;
  bool beyond = false;  // its inputs are not of the hand-out's form, whatever is drawn
};

// The oracle computes in double and its bounds are for rounding beyond that, so fp64 cannot be judged by it.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> list{
      {"attention.equals_oracle",
       "the output is within its derived bound of the float64 oracle",
       equals_oracle,
       {.dtypes = below_double(), .long_both = true, .any_width = true, .long_values = true, .small_values = true},
       always,
       true},
      {"attention.lse_equals_oracle",
       "the log-sum-exp is within its derived bound of the float64 oracle",
       lse_equals_oracle,
       {.dtypes = below_double(), .long_both = true, .any_width = true},
       always,
       true},
      {"attention.gradients_equal_oracle",
       "dQ, dK and dV are within their derived bounds of the float64 oracle",
       gradients_equal_oracle,
       {.pass = Pass::backward, .dtypes = below_double(), .long_both = true, .any_width = true, .small_values = true},
       always,
       true},
      {"attention.refusal",
       "no problem that is promised is refused: neither by an exception nor by an error status",
       refusal,
       {.long_both = true, .long_often = true}},
      {"attention.rows_sum_to_one", "where all values are 1 the output is 1", rows_sum_to_one, {}},
      {"attention.causal_prefix",
       "changing keys and values that a row does not see leaves the row as it was",
       causal_prefix,
       {.masks = {Mask::top_left, Mask::bottom_right}}},
      {"attention.batch_permutation", "permuting the batch permutes the output", batch_permutation, {.least_batch = 2}},
      {"attention.head_permutation",
       "permuting heads permutes the output",
       head_permutation,
       {.least_heads_kv = 2},
       when_heads_are_apart},
      {"attention.split_keys",
       "attention over two ranges of keys, joined by log-sum-exp, is attention over all",
       split_keys,
       {.masks = {Mask::none, Mask::top_left}, .least_seq_k = 2},
       when_lengths_may_differ,
       false,
       true},
      {"attention.shift_invariance",
       "adding c to all scores leaves the output and adds c to the log-sum-exp",
       shift_invariance,
       {},
       always,
       false,
       true},
      {"attention.large_scores",
       "scores of ±1e4 give no NaN and agree with the float64 oracle",
       large_scores,
       {.dtypes = below_double()},
       always,
       false,
       true},
      {"attention.strange_rows",
       "zeros, denormals, a query of 1e4, infinity and NaN change no other row; a NaN among the values comes out where "
       "it is seen",
       strange_rows,
       {.dtypes = below_double(), .moderate = true},
       always,
       false,
       true},
      {"attention.gradient_layouts",
       "a dO that is not contiguous gives the same gradients: transposed, or one number of stride 0 as o.sum() makes "
       "it; and so do calls in which only q, or only k and v, want one, in which q, k and v are the same tensor, and a "
       "second backward pass over a kept graph",
       gradient_layouts,
       {.pass = Pass::backward, .dtypes = below_double(), .most_seq = 64, .most_dim = 64},
       when_by_autograd,
       true,
       true},
      {"attention.finite_differences",
       "gradients agree with central differences of the float64 forward pass",
       finite_differences,
       {.pass = Pass::backward, .most_seq = 6, .most_dim = 4, .moderate = true}},
      {"attention.bitwise_repeatable",
       "equal inputs give bitwise equal outputs and gradients",
       bitwise_repeatable,
       {.repeatable = true},
       when_deterministic},
      {"attention.keeps_no_state",
       "an answer depends on nothing that was asked before: new values in the same memory, passes of other tensors",
       keeps_no_state,
       {}},
      {"attention.repeats",
       "asked a dozen times in turns, and on a GPU while others are asked in other streams, a question and its mirror "
       "image have the same answer every time",
       repeats,
       {.most_seq = 64, .most_dim = 64}},
      {"attention.finishes_when_it_returns",
       "a call's outputs are complete when it returns, and nothing writes them later",
       finishes_when_it_returns,
       {.most_seq = 64, .most_dim = 64},
       when_apart},
      {"attention.writes_nothing_outside", "only the outputs are written, and all of them", writes_nothing_outside, {}},
      {"attention.half_no_worse_than_naive",
       "in half precision errors are, in root mean square, at most what one rounding makes or twice the naive kernel's",
       half_no_worse_than_naive,
       // Rows long enough for a half-precision accumulator to show.
       {.dtypes = half(), .least_seq_k = 128, .most_seq = 512, .moderate = true},
       when_not_naive},
      {"attention.half_gradients_no_worse_than_naive",
       "in half precision the same holds of dQ, dK and dV, and none of them is off by a factor",
       half_gradients_no_worse_than_naive,
       {.pass = Pass::backward, .dtypes = half(), .least_seq_k = 64, .moderate = true},
       when_not_naive},
  };
  return list;
}

// Laws of what one call does, whichever pass it is.
bool of_both(const Entry& entry) {
  return entry.body == bitwise_repeatable || entry.body == writes_nothing_outside || entry.body == refusal ||
         entry.body == keeps_no_state || entry.body == repeats || entry.body == finishes_when_it_returns;
}

// The hand-out's tests look at whether the call is answered, at O and the one saved L, and at dQ, dK and dV.
bool asked_by_handout(const Entry& entry) {
  return entry.body == refusal || entry.body == equals_oracle || entry.body == lse_equals_oracle ||
         entry.body == gradients_equal_oracle;
}

// `pass`: the one that is asked, for laws of both; none: whichever the rung has.
check::LawResult search(const Entry& entry, const Candidate& rung, const check::LawRequest& request,
                        std::optional<Pass> pass) {
  if (const auto reason = entry.excuse(rung, request.contract)) return property::does_not_apply(*reason);
  if (request.contract == Contract::handout && rung.domain && !asked_by_handout(entry)) {
    return property::does_not_apply("the hand-out's tests do not ask it");
  }
  Wants wants = entry.wants;
  if (of_both(entry)) wants.pass = pass.value_or(wants.pass);
  // Halving the keys must leave a size that the hand-out has; its mask cannot be halved so.
  if (request.contract == Contract::handout && entry.body == split_keys) {
    wants.least_seq_k = 32;
    wants.masks = {Mask::none};
  }
  const MenuOrReason choice = menu_for(rung, request.contract, wants);
  if (!choice.menu) return property::does_not_apply(choice.reason);
  std::optional<Sample> last;
  const Subject subject{rung, request.contract, *choice.menu, pass, &last};
  check::LawResult result =
      check::search(entry.id, request, [&](check::Observation& observation) { entry.body(subject, observation); });
  // What is declared is promised, with the values that are usual.
  const bool is_declared = rung.domain && rung.domain->declared && !entry.beyond;
  if (is_declared && result.finding.kind != FindingKind::none) result.finding.promised = true;
  if (rung.domain && !entry.beyond) {
    check::look_in_promised(request, result, [&](const check::LawRequest& asked) {
      const MenuOrReason promised = menu_for(rung, asked.contract, wants);
      if (!promised.menu) return property::does_not_apply(promised.reason);
      const Subject inside{rung, asked.contract, *promised.menu, pass, nullptr};
      return check::search(entry.id, asked, [&](check::Observation& observation) { entry.body(inside, observation); });
    });
  }
  const bool beyond = rung.domain && request.contract == Contract::full;
  if (beyond && result.outcome == check::Outcome::passed && result.message.empty()) {
    // Of a law that draws small problems alone: not what no law draws.
    result.finding.small = wants.most_seq != Wants{}.most_seq || wants.most_dim != Wants{}.most_dim;
    result.finding.never_drawn = left_out(*choice.menu, rung.language);
    // What nobody declared, not what its author left out.
    if (rung.domain->usual && !rung.domain->declared) {
      result.finding.never_drawn += "; --contract full tries " + added_by_full(rung, wants);
    }
  }
  const bool crashed = result.outcome == check::Outcome::error && request.revives;
  if ((result.outcome != check::Outcome::falsified && !crashed) || !last) return result;
  // The counterexample is the last that a search runs.
  const bool backward = wants.pass == Pass::backward;
  const Explanation said =
      explain(subject, entry.id, *last, backward ? Pass::backward : Pass::forward, result.finding.seldom);
  result.message += "\n" + said.lines;
  result.finding.input = said.input;
  result.finding.first_wrong = said.first_wrong;
  result.finding.cause = said.cause;
  result.error_map = said.error_map;
  return result;
}

auto search_in(std::optional<Pass> pass) {
  return [pass](const Entry& entry, const Candidate& rung, const check::LawRequest& request) {
    return search(entry, rung, request, pass);
  };
}

// Kept, since laws refer to their entries. Not a view of entries(): std::views::filter is beyond clang 14.
const std::vector<Entry>& entries_of(Pass pass) {
  const auto chosen = [](Pass wanted) {
    std::vector<Entry> list;
    std::copy_if(entries().begin(), entries().end(), std::back_inserter(list),
                 [wanted](const Entry& entry) { return of_both(entry) || entry.wants.pass == wanted; });
    return list;
  };
  static const std::vector<Entry> forward = chosen(Pass::forward), backward = chosen(Pass::backward);
  return pass == Pass::forward ? forward : backward;
}

// Without the laws that are about other processes only.
const std::vector<Entry>& entries_of_ours() {
  static const std::vector<Entry> list = [] {
    std::vector<Entry> ours = entries();
    std::erase_if(ours,
                  [](const Entry& entry) { return entry.excuse == when_apart || entry.excuse == when_by_autograd; });
    return ours;
  }();
  return list;
}

}  // namespace

std::vector<check::Law> laws(const Rung& rung) {
  return property::bound(entries_of_ours(), Candidate{rung, {}}, search_in(std::nullopt));
}

std::vector<check::Law> laws_of(const Rung& rung, Pass pass) { return laws_of(rung, pass, {}); }

std::vector<check::Law> laws_of(const Rung& rung, Pass pass, const std::optional<Domain>& domain) {
  Candidate candidate{rung, domain};
  if (domain) candidate.deterministic = domain->deterministic;
  return property::bound(entries_of(pass), candidate, search_in(pass));
}

std::vector<LawInfo> law_list() { return property::statements(entries_of_ours()); }

std::vector<LawInfo> law_list(Pass pass) { return property::statements(entries_of(pass)); }

}  // namespace syslab::attention
