#include "property_tests/attention/patterns.hpp"

#include <gtest/gtest.h>

namespace syslab::attention {
namespace {

// `out` of 8 elements, each 1 and right to 0.01 where nothing else is said.
Trial trial_of(std::vector<double> found) {
  Trial trial;
  trial.sample.problem = {.seq_q = 8, .seq_k = 8, .head_dim = 1};
  const std::size_t size = found.size();
  for (std::vector<double>* values : {&trial.sample.q, &trial.sample.k, &trial.sample.v}) values->assign(size, 1);
  trial.tensors.push_back({.found = {"out", Shape{1, 1, 8, 1}, std::move(found)},
                           .exact = std::vector<double>(size, 1),
                           .derived = std::vector<double>(size, 0.01),
                           .allowed = std::vector<double>(size, 0.01)});
  return trial;
}

TEST(AttentionPatterns, AFactorIsNamedThatMakesTheErrors) {
  const auto said = pattern_of_errors(trial_of({2, 2, 2, 2, 2, 2, 2, 2}), nullptr, Pass::forward);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("out is 2 ×"), std::string::npos) << *said;
}

TEST(AttentionPatterns, RoundingOfOneElementIsNoFactor) {
  const auto said = pattern_of_errors(trial_of({1.02, 1, 1, 1, 1, 1, 1, 1}), nullptr, Pass::forward);
  EXPECT_TRUE(!said || said->find("factor") == std::string::npos) << *said;
}

}  // namespace
}  // namespace syslab::attention
