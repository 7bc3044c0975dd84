// What is said where every element of a tensor is one value: what can make it so.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/laws/attention_gradients.hpp"
#include "tests/laws/attention_said.hpp"

namespace syslab::attention {
namespace {

using testing::HasSubstr;
using testing::Not;

// The right softmax, with what `change` makes of its row.
Softmax changed(const std::function<void(Row&)>& change) {
  return [change](const auto& scores, const auto& visible) {
    Row row = right(scores, visible);
    change(row);
    return row;
  };
}

void set_weights(Row& row, double value) { std::fill(row.weights.begin(), row.weights.end(), value); }

std::string said_of_forward(const Softmax& softmax, Mask mask = Mask::none) {
  return explained(with_softmax(softmax), Pass::forward, sample_of(16, 24, mask));
}

TEST(OneValueOfLse, IsNamedByItsNumberWhereOutIsRight) {
  struct Case {
    double lse;
    const char* words;
  };
  for (const auto& [lse, words] :
       {Case{-kInfinite,
             "all 16 are -inf; the log of a sum that is 0, or a maximum that is still −∞; look at which sum "
             "and maximum L takes, and when: those that out takes are right"},
        Case{kInfinite, "all 16 are inf; in L = m + log l, l or m is ∞"},
        Case{0, "all 16 are 0; log 1: of a row's weights that are divided by their sum already"},
        Case{1, "all 16 are 1; 1 is the sum of a row's weights that are divided already"},
        Case{-1e9, "all 16 are -1e+09; so far below every score lies what a maximum begins with"},
        Case{3.25, "all 16 are 3.25; nothing of the scores is in it, and out is right"}}) {
    EXPECT_THAT(said_of_forward(changed([lse = lse](Row& row) { row.lse = lse; })),
                HasSubstr("\nlooks like one value in every element of lse: " + std::string(words)));
  }
}

TEST(OneValueOfLse, IsNamedByOutWhereNoKeyTakesPart) {
  struct Case {
    double weights;
    const char* words;
  };
  for (const auto& [weights, words] :
       {Case{0,
             "one value in every element of out: all 256 are 0, of lse all 16 are -inf; that is what a row has that "
             "sees no key; look at the loop over keys, which may never run"},
        Case{std::nan(""),
             "one value in every element of out: all 256 are nan, of lse all 16 are -inf; the row sum is "
             "0, and out is 0/0"}}) {
    EXPECT_THAT(said_of_forward(changed([weights = weights](Row& row) {
                  set_weights(row, weights);
                  row.lse = -kInfinite;
                })),
                HasSubstr("\nlooks like " + std::string(words)));
  }
  // P V, which is not 0, over a sum that is.
  Candidate rung = with_softmax(changed([](Row& row) { row.lse = -kInfinite; }));
  rung.forward = [inner = rung.forward](const Problem& p, const ForwardArgs& args, ops::Workspace space,
                                        device::Stream stream) {
    inner(p, args, space, stream);
    auto* out = args.out.as<float>();
    for (std::int64_t i = 0; i < args.out.elements(); ++i) out[i] /= 0.0F;
  };
  EXPECT_THAT(explained(rung, Pass::forward, sample_of(16, 24)),
              HasSubstr("all 16 are -inf; the row sum is 0, and P V, which is divided by it, is not"));
}

TEST(OneValueOfLse, IsTheLogOfTheNumberOfKeysWhereScoresAreZero) {
  const Softmax no_scores = [](auto scores, const auto& visible) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return right(scores, visible);
  };
  EXPECT_THAT(said_of_forward(no_scores), HasSubstr("\nlooks like scores that are all 0: that alone gives all "));
  // Under a mask each row has its own number of keys, and no value is everywhere.
  EXPECT_THAT(said_of_forward(no_scores, Mask::top_left),
              HasSubstr("\nlooks like scores that are all 0: that alone gives all "));
  const auto of_lse_alone = [](double (*number_of)(double keys)) {
    return changed([number_of](Row& row) { row.lse = number_of(static_cast<double>(row.weights.size())); });
  };
  EXPECT_THAT(
      said_of_forward(of_lse_alone([](double keys) { return std::log(keys); })),
      HasSubstr("that is log S (S=24), as of scores that are all 0, each of which adds e^0; look at Q, K and the "
                "scale in the scores that L is made of (those of out are right)"));
  EXPECT_THAT(said_of_forward(of_lse_alone([](double keys) { return keys; })),
              HasSubstr("that is S itself, a row sum of 24 keys that add e^0 each, without its log"));
  // The same number on every input is no log S, though it is on one.
  EXPECT_THAT(said_of_forward(changed([](Row& row) { row.lse = std::log(24.0); })), Not(HasSubstr("log S")));
}

TEST(OneValueOfOut, IsZeroWhereAnOperandOfItIs) {
  EXPECT_THAT(
      said_of_forward(changed([](Row& row) { set_weights(row, 0); })),
      HasSubstr("\nlooks like one value in every element of out: all 256 are 0; lse is right, so the weights are "
                "not 0; look at P and V in P V, of which one is 0 there"));
  EXPECT_THAT(
      said_of_forward(changed([](Row& row) {
        set_weights(row, 0);
        row.lse = 0;
      })),
      HasSubstr("\nlooks like one value in every element of out and lse: all 272 are 0; so nothing of Q, K and V "
                "is in either; look at whether the loop over keys runs"));
}

std::string said_of_gradients(const std::function<void(Terms&)>& fault, Mask mask = Mask::none) {
  return explained(with_gradients(fault), Pass::backward, sample_of(16, 24, mask));
}

void clear(std::vector<float>& values) { std::fill(values.begin(), values.end(), 0.0F); }

TEST(GradientsOfZero, AreNamedByTheOperandThatIsZero) {
  for (const Mask mask : {Mask::none, Mask::top_left}) {
    EXPECT_THAT(said_of_gradients([](Terms& t) { clear(t.q); }, mask),
                HasSubstr("\nlooks like queries that are 0 in the backward pass: that alone gives all "));
    EXPECT_THAT(said_of_gradients([](Terms& t) { clear(t.k); }, mask),
                HasSubstr("\nlooks like keys that are 0 in the backward pass: that alone gives all "));
    EXPECT_THAT(said_of_gradients([](Terms& t) { t.scale = 0; }, mask),
                HasSubstr("\nlooks like a scale of the backward pass that is 0: that alone gives all "));
    EXPECT_THAT(said_of_gradients([](Terms& t) { clear(t.v); }, mask),
                HasSubstr("\nlooks like dP = dO Vᵀ that is 0: that alone gives all "));
    EXPECT_THAT(
        said_of_gradients([](Terms& t) { clear(t.dout); }, mask),
        HasSubstr("of dq, dk and dv: all 1024 are 0; dV = Pᵀ dO has neither Q, K, V nor the scale as a factor, so "
                  "P or dO is 0, or no gradient is stored"));
  }
}

TEST(GradientsOfZero, AreNamedByTheOthersWhereOneIsNotStored) {
  struct Case {
    bool dq, dk, dv;
    const char* words;
  };
  for (const auto& [dq, dk, dv, words] :
       {Case{false, true, true, "of dq: all 256 are 0; dK is not 0, so dS is not; look at K in dQ = dS K"},
        Case{true, false, true, "of dk: all 384 are 0; dQ is not 0, so dS is not; look at Q in dK = dSᵀ Q"},
        Case{true, true, false, "of dv: all 384 are 0; dQ or dK is not 0, so P and dO are not; look at both in dV"},
        Case{false, true, false, "of dq and dv: all 640 are 0; dK is not 0, so dS, P and dO are not"},
        Case{true, false, false,
             "of dk and dv: all 768 are 0; dQ is not 0, so dS, P and dO are not; look at the loop "
             "over queries"}}) {
    EXPECT_THAT(said_of_gradients([dq = dq, dk = dk, dv = dv](Terms& t) {
                  t.dq = dq;
                  t.dk = dk;
                  t.dv = dv;
                }),
                HasSubstr("\nlooks like one value in every element " + std::string(words)));
  }
  EXPECT_THAT(
      said_of_gradients([](Terms& t) { t.row_term_is_dp = true; }),
      HasSubstr("of dq and dk: all 640 are 0; dV is right, so P and dO are; look at dS = P ∘ (dP − D), which is 0 "
                "where D is dP itself"));
}

// One key has all of the weight, whatever its score: dQ and dK are 0, and nothing is missing. More keys tell.
TEST(GradientsOfZero, AreToldByMoreKeysThanOne) {
  const auto said = [](const std::function<void(Terms&)>& fault) {
    return explained(with_gradients(fault), Pass::backward, sample_of(16, 1));
  };
  EXPECT_THAT(said([](Terms& t) { t.dv = false; }),
              HasSubstr("of dv: all 16 are 0; dQ or dK is not 0, so P and dO are not"));
  EXPECT_THAT(said([](Terms& t) { clear(t.dout); }), HasSubstr("of dv: all 16 are 0; dV = Pᵀ dO has neither"));
}

TEST(GradientsOfZero, AreNoFaultWhereEachIsRight) {
  EXPECT_THAT(said_of_gradients([](Terms&) {}), Not(HasSubstr("looks like")));
}

}  // namespace
}  // namespace syslab::attention
