#include "property_tests/attention/patterns.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

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
  EXPECT_NE(said->shown.find("out is 2 ×"), std::string::npos) << said->words();
}

TEST(AttentionPatterns, RoundingOfOneElementIsNoFactor) {
  const auto said = pattern_of_errors(trial_of({1.02, 1, 1, 1, 1, 1, 1, 1}), nullptr, Pass::forward);
  EXPECT_TRUE(!said || said->cause.find("factor") == std::string::npos) << said->words();
}

// `out` of that shape, right (1, to 0.01) where `wrong` does not say otherwise of a head, counted through all batch
// entries, and a row.
template <typename Wrong>
Trial of_heads(std::int64_t batch, std::int64_t heads, std::int64_t rows, const Wrong& wrong) {
  Trial trial;
  trial.sample.problem = {
      .batch = batch, .heads_q = heads, .heads_kv = heads, .seq_q = rows, .seq_k = 1, .head_dim = 1};
  const auto size = static_cast<std::size_t>(batch * heads * rows);
  std::vector<double> found(size, 1);
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (wrong(at / rows, at % rows)) found[i] = 2 + 0.5 * static_cast<double>(i % 7);
  }
  for (std::vector<double>* values : {&trial.sample.q, &trial.sample.k, &trial.sample.v}) values->assign(size, 1);
  trial.sample.k.resize(static_cast<std::size_t>(batch * heads));
  trial.tensors.push_back({.found = {"out", Shape{batch, heads, rows, 1}, std::move(found)},
                           .exact = std::vector<double>(size, 1),
                           .derived = std::vector<double>(size, 0.01),
                           .allowed = std::vector<double>(size, 0.01)});
  return trial;
}

std::string said_of(const Trial& trial, const Trial* other = nullptr) {
  const auto said = pattern_of_errors(trial, other, Pass::backward);
  return said ? said->words() : "";
}

TEST(AttentionPatterns, TheFirstHeadAloneIsSaidOfSeveralHeadsAndRows) {
  const auto not_the_first = [](std::int64_t head, std::int64_t) { return head > 0; };
  const auto nowhere = [](std::int64_t, std::int64_t) { return false; };
  const Trial one_of_two = of_heads(1, 2, 1, not_the_first), two_long = of_heads(1, 2, 20, not_the_first);
  const Trial of_many = of_heads(1, 5, 20, not_the_first);
  EXPECT_EQ(said_of(one_of_two), "");
  EXPECT_EQ(said_of(two_long), "");  // an error in every second head has this pattern, too
  EXPECT_NE(said_of(of_many).find("the first head alone: "), std::string::npos);
  EXPECT_NE(said_of(of_many, &one_of_two).find("the first head alone: "), std::string::npos);
  EXPECT_NE(said_of(one_of_two, &of_many).find("the first head alone: "), std::string::npos);
  const Trial right = of_heads(1, 5, 20, nowhere);
  EXPECT_EQ(said_of(of_many, &right), "");
  const Trial second_right = of_heads(1, 5, 20, [](std::int64_t head, std::int64_t) { return head > 1; });
  EXPECT_EQ(said_of(of_many, &second_right), "");
}

TEST(AttentionPatterns, OnlyNaNIsADivisionByNothing) {
  Trial trial = of_heads(1, 1, 5, [](std::int64_t, std::int64_t row) { return row < 4; });
  trial.sample.problem.mask = Mask::bottom_right;  // the last row sees the only key
  EXPECT_NE(said_of(trial).find("keys that take part in rows that see none: "), std::string::npos) << said_of(trial);
  trial.tensors[0].found.values[2] = std::nan("");
  EXPECT_NE(said_of(trial).find("a division by nothing: "), std::string::npos) << said_of(trial);
}

TEST(AttentionPatterns, TheLastTileAloneIsSaidOfSeveralRows) {
  const auto behind_eight = [](std::int64_t, std::int64_t row) { return row >= 8; };
  const Trial one_row = of_heads(1, 1, 9, behind_eight), eight_heads = of_heads(2, 4, 9, behind_eight);
  EXPECT_EQ(said_of(one_row), "");
  EXPECT_NE(said_of(eight_heads).find("the last, partial tile of queries: "), std::string::npos);
  EXPECT_NE(said_of(one_row, &eight_heads).find("the last, partial tile of queries: "), std::string::npos);
  const Trial right = of_heads(2, 4, 20, [](std::int64_t, std::int64_t) { return false; });
  EXPECT_EQ(said_of(eight_heads, &right), "");
}

}  // namespace
}  // namespace syslab::attention
