// What is said of a mask that is wrong in the backward pass alone.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "tests/laws/attention_gradients.hpp"
#include "tests/laws/attention_said.hpp"

namespace syslab::attention {
namespace {

using testing::HasSubstr;
using testing::Not;

// Of few tokens, which take a tenth of the time.
Candidate planted(const std::function<void(Terms&)>& fault) {
  Candidate rung = with_gradients(fault);
  rung.domain->max_seq = 96;
  return rung;
}

// `gain`: of the queries, and so of the scores.
std::string said_of(const std::function<void(Terms&)>& fault, float gain = 1) {
  Sample sample = sample_of(32, 32, Mask::top_left);
  sample.q = query_values(sample, "q", gain);
  return explained(planted(fault), Pass::backward, sample);
}

const auto all_visible = [](double score, bool) { return score; };

TEST(BackwardMask, OfANumberIsNamedByIt) {
  struct Case {
    double number;
    float gain;  // such that some row's log-sum-exp is below the number, or near it
  };
  for (const auto& [number, gain] : {Case{-3, 1}, Case{-10, 8}}) {
    const auto of_number = [number = number](Terms& t) {
      t.masked = [=](double score, bool visible) { return visible ? score : number; };
    };
    EXPECT_THAT(
        said_of(of_number, gain),
        HasSubstr(fmt::format("\nlooks like masked scores of {} in place of −∞ in the backward pass: ", number)));
    const auto of_summand = [number = number](Terms& t) {
      t.masked = [=](double score, bool visible) { return visible ? score : score + number; };
    };
    EXPECT_THAT(said_of(of_summand, gain),
                HasSubstr(fmt::format(
                    "\nlooks like a mask that adds {} to scores in place of −∞ in the backward pass: ", number)));
  }
}

TEST(BackwardMask, OfZerosIsNamed) {
  for (const bool own_softmax : {false, true}) {
    EXPECT_THAT(said_of([=](Terms& t) {
                  t.masked = [](double score, bool visible) { return visible ? score : 0.0; };
                  t.own_softmax = own_softmax;
                }),
                HasSubstr("\nlooks like masked scores that are 0 in place of −∞ in the backward pass: "));
  }
}

TEST(BackwardMask, ThatIsMissingIsNamedWhateverPIsDividedBy) {
  for (const bool own_softmax : {false, true}) {
    for (const bool own_row_term : {false, own_softmax}) {
      EXPECT_THAT(said_of([=](Terms& t) {
                    t.masked = all_visible;
                    t.own_softmax = own_softmax;
                    t.own_row_term = own_row_term;
                  }),
                  HasSubstr("\nlooks like no mask in the backward pass: "));
    }
  }
}

TEST(BackwardMask, ThatIsMissingInSomeGradientsIsNamed) {
  EXPECT_THAT(said_of([](Terms& t) {
                t.masked = all_visible;
                t.ds_of_visible = true;
              }),
              HasSubstr("\nlooks like no mask in dV alone: "));
  EXPECT_THAT(said_of([](Terms& t) {
                t.masked = all_visible;
                t.dv_of_visible = true;
              }),
              HasSubstr("\nlooks like no mask in dQ and dK alone: "));
  EXPECT_THAT(said_of([](Terms& t) {
                t.masked = all_visible;
                t.own_softmax = t.ds_of_visible = t.dv_of_visible = true;
              }),
              HasSubstr("\nlooks like a mask behind the softmax of the backward pass, not before: "));
}

// Hidden keys have a part, and no number of one mask gives it.
TEST(BackwardMask, IsGivenNoNumberWhereNoneExplainsAll) {
  EXPECT_THAT(
      said_of([](Terms& t) { t.masked = [](double score, bool visible) { return visible ? score : -4 - 2 * score; }; }),
      Not(HasSubstr("looks like")));
  EXPECT_THAT(said_of([](Terms& t) {
                t.masked = [](double score, bool visible) { return visible ? score : -3.0; };
                t.ds_of_visible = true;
              }),
              Not(HasSubstr("looks like")));
}

// The same mask in both passes: the forward pass is to be mended first.
TEST(BackwardMask, IsNotNamedWhereTheForwardPassHasTheSame) {
  Candidate rung =
      with_gradients([](Terms& t) { t.masked = [](double score, bool visible) { return visible ? score : -3.0; }; });
  rung.forward = with_softmax([](auto scores, auto visible) {
                   for (std::size_t j = 0; j < scores.size(); ++j) {
                     if (!visible[j]) scores[j] = -3;
                     visible[j] = true;
                   }
                   return right(scores, visible);
                 }).forward;
  const std::string said = explained(rung, Pass::backward, sample_of(32, 32, Mask::top_left));
  EXPECT_THAT(said, HasSubstr("\nO and L of the forward pass are wrong already on this input: look there first"));
  EXPECT_THAT(said, Not(HasSubstr("looks like")));
}

}  // namespace
}  // namespace syslab::attention
