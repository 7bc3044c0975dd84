// The bodies of the laws, by what they compare with. A body draws a sample, asks the rung, and throws Error(check)
// where the law does not hold.
#pragma once

#include "check/law.hpp"
#include "ops/attention/foreign.hpp"
#include "ops/attention/handout_tolerance.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

// A law's view of the rung under test.
struct Subject {
  const Candidate& rung;
  check::Contract contract;
  const Menu& menu;
  std::optional<Pass> pass;                     // the pass that a law of both is about; none: those that the rung has
  std::optional<Sample>* drawn_last = nullptr;  // for who explains a counterexample

  // draw_sample for this rung, remembered.
  Sample draw(Pass pass, bool supported_only = true) const;
  // What is asked in place of the sample that was drawn last.
  void remember(const Sample& sample) const {
    if (drawn_last != nullptr) *drawn_last = sample;
  }

  // For laws of both passes: the implementation that draws the problems, and whether to check the backward pass too.
  Pass drawn() const { return pass.value_or(Pass::forward); }
  bool asks_backward(const Problem& problem) const;
  // Somebody's own is judged by the hand-out's tolerance under either contract: it promised nothing narrower.
  bool wide() const { return contract == check::Contract::handout || rung.domain.has_value(); }
  // Bitwise equality is promised by deterministic rungs of ours under the full contract: somebody's deterministic
  // kernel may still add in another order where the same problem is asked in another way.
  bool exact() const { return !wide() && rung.deterministic; }
  // What the oracle's bounds allow for: who promises the hand-out's tolerance has promised no arithmetic.
  Part part(const Problem& problem) const { return wide() ? at_handout_tolerance(problem) : Part{}; }
  // Some rows of a long one: the oracle takes as long as for others.
  Part part(const Sample& sample) const {
    constexpr double kRows = 2e7;
    Part some = part(sample.problem);
    if (sample.long_both()) some.budget = kRows;
    some.seed = sample.seed;
    return some;
  }
  // `derived`, or the hand-out's 1e-2 + 1e-2·|expected| where that is promised and wider. `unit`: what is promised is
  // of numbers of order one. O of a V that is so many times as long is, too, and so are gradients of a dO: then it is
  // 1e-2·unit + 1e-2·|expected|.
  std::vector<double> allowed(const std::vector<double>& expected, const std::vector<double>& derived,
                              double unit = 1) const;
};

// Asks a class now and then under torch.no_grad(), or with one tensor as q, k and v: what `sample` becomes, until
// `company` ends. Words for it, or none.
std::string draw_use(const Subject& subject, Sample& sample, std::optional<Company>& company);

using Body = void (*)(const Subject&, check::Observation&);

// Against the float64 oracle (laws_oracle.cpp).
void equals_oracle(const Subject&, check::Observation&);
void lse_equals_oracle(const Subject&, check::Observation&);
void gradients_equal_oracle(const Subject&, check::Observation&);
void large_scores(const Subject&, check::Observation&);
void gradient_layouts(const Subject&, check::Observation&);
Sample with_large_scores(Sample sample);  // the input that large_scores asks of what it has drawn
void half_no_worse_than_naive(const Subject&, check::Observation&);
void half_gradients_no_worse_than_naive(const Subject&, check::Observation&);
// Against what mathematics says of softmax (laws_softmax.cpp).
void rows_sum_to_one(const Subject&, check::Observation&);
void shift_invariance(const Subject&, check::Observation&);
void split_keys(const Subject&, check::Observation&);
void finite_differences(const Subject&, check::Observation&);
// Against itself, asked in another way (laws_invariance.cpp).
void causal_prefix(const Subject&, check::Observation&);
void batch_permutation(const Subject&, check::Observation&);
void head_permutation(const Subject&, check::Observation&);
void bitwise_repeatable(const Subject&, check::Observation&);
void writes_nothing_outside(const Subject&, check::Observation&);
void refusal(const Subject&, check::Observation&);
// Against the oracle, where one row is no ordinary number (laws_strange.cpp).
void strange_rows(const Subject&, check::Observation&);
// Against itself, asked in another order and often (laws_state.cpp).
void keeps_no_state(const Subject&, check::Observation&);
void repeats(const Subject&, check::Observation&);
void finishes_when_it_returns(const Subject&, check::Observation&);

}  // namespace syslab::attention
