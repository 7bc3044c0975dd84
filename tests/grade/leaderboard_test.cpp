#include "grade/leaderboard.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace syslab::grade {
namespace {

Ranked one(const char* id, double ratio, double low, double high) { return {id, id, {ratio, low, high, 0, 0}}; }

TEST(Leaderboard, NoPlaceIsLostToAnIntervalThatOverlaps) {
  std::vector<Ranked> all{one("d", 9, 8.2, 10), one("b", 1.6, 1.45, 1.8), one("a", 1.4, 1.3, 1.5),
                          one("c", 1.75, 1.6, 1.9)};
  rank(all);
  std::vector<std::pair<std::string, int>> places;
  for (const Ranked& each : all) places.emplace_back(each.id, each.place);
  EXPECT_EQ(places, (std::vector<std::pair<std::string, int>>{{"a", 1}, {"b", 1}, {"c", 2}, {"d", 4}}));
  EXPECT_TRUE(all[0].shared && all[1].shared && !all[2].shared && !all[3].shared);
}

TEST(Leaderboard, WhoeverIsNoisyWinsNothing) {
  std::vector<Ranked> all{one("noisy", 9.27, 0.9, 95.4), one("honest", 1.1, 1.09, 1.11)};
  rank(all);
  EXPECT_EQ(all[0].id, "honest");
  EXPECT_EQ(all[0].place, 1);
  EXPECT_EQ(all[1].place, 2);
}

TEST(Leaderboard, WhoSharesAPlaceHasOneNumber) {
  std::vector<Ranked> all{one("a", 1, 0.95, 1.05), one("b", 1.04, 1, 1.08), one("c", 3, 2.9, 3.1)};
  rank(all);
  EXPECT_DOUBLE_EQ(ordering_number(all, all[0]), 1);
  EXPECT_DOUBLE_EQ(ordering_number(all, all[1]), 1);
  EXPECT_DOUBLE_EQ(ordering_number(all, all[2]), 3);
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_GE(ordering_number(all, all[i]), ordering_number(all, all[i - 1]));
}

TEST(Leaderboard, OfOneThatIsGradedAloneTheNumberIsAStepThatChanceCannotCross) {
  const auto alone = [](double ratio) {
    return ordering_number({one("a", ratio, ratio, ratio)}, one("a", ratio, 0, 0));
  };
  const double step = most_doubt(5);
  EXPECT_NEAR(alone(step * 1.001), step, 1e-12);
  EXPECT_NEAR(alone(step * step * 0.999), step, 1e-12);
  EXPECT_NEAR(alone(0.999), 1 / step, 1e-12);
}

TEST(Timing, DoubtIsWhatScatterMakesOfSoManyLaunches) {
  // Student's t of 97.5 % with 4 and 2 degrees of freedom: 2.776445, 4.302653.
  EXPECT_NEAR(most_doubt(5), std::exp(2.776445 * kScatter / std::sqrt(5.0)), 1e-6);
  EXPECT_NEAR(most_doubt(3), std::exp(4.302653 * kScatter / std::sqrt(3.0)), 1e-6);
}

TEST(Leaderboard, AStudentSeesTheOwnLineAndThreeAbove) {
  std::vector<Ranked> all;
  for (int i = 1; i <= 6; ++i) all.push_back(one(std::to_string(i).c_str(), i, i, i));
  rank(all);
  EXPECT_EQ(around(all, "6").size(), 4);
  EXPECT_EQ(around(all, "6").front().id, "3");
  EXPECT_EQ(around(all, "2").size(), 2);
  EXPECT_TRUE(around(all, "7").empty());
}

TEST(Leaderboard, AliasesAreTheKeysAndNeverTwice) {
  std::vector<std::string> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back(fmt::format("s{}", i));
  const Key key = random_key();
  const auto found = aliases(ids, key);
  std::set<std::string> different;
  for (const auto& [id, alias] : found) different.insert(alias);
  EXPECT_EQ(different.size(), ids.size());
  EXPECT_EQ(aliases(ids, key), found);
  EXPECT_NE(aliases(ids, random_key()), found);
}

TEST(Timing, DoubtIsTheStudentsGainAndOnlyWhatIsWrongLosesPoints) {
  Item item{.points = 4, .function = "f", .experiment = "e", .reference = "naive", .at = {}, .within = {2, 1}};
  const auto record = [&](Json entry) { return Json{{"timings", {{timing_name(item), std::move(entry)}}}}; };
  EXPECT_DOUBLE_EQ(score_timing(item, record({{"ratio", 2.1}, {"low", 1.9}, {"high", 2.3}})).earned, 2);
  EXPECT_DOUBLE_EQ(score_timing(item, record({{"ratio", 2.2}, {"low", 2.1}, {"high", 2.3}})).earned, 0);
  EXPECT_DOUBLE_EQ(score_timing(item, record({{"ratio", 9.27}, {"low", 0.9}, {"high", 95.4}})).earned, 0);
  const ItemScore wrong = score_timing(
      item,
      record(read_comparison(
          R"({"type":"comparison","log_ratio":null,"failed_b":"check_failed","about_b":"is wrong: out[0]: found 1"})")));
  EXPECT_FALSE(wrong.open);
  EXPECT_DOUBLE_EQ(wrong.earned, 0);
  const ItemScore stopped = score_timing(
      item, record(read_comparison(
                R"({"type":"comparison","log_ratio":null,"reason":"side B ended as timeout: stopped after 8 s"})")));
  EXPECT_TRUE(stopped.open);
  EXPECT_EQ(stopped.text(), "it could not be timed: side B ended as timeout: stopped after 8 s");
  EXPECT_TRUE(score_timing(item, Json::object()).open);
}

}  // namespace
}  // namespace syslab::grade
