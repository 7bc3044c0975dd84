#include "runner/slowest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syslab::runner {
namespace {

using worker::MetricRecord;
using worker::Record;
using worker::SampleRecord;

Record sample(int rank, std::vector<double> values, std::string series = "time", std::string unit = "s") {
  return SampleRecord{.series = std::move(series), .unit = std::move(unit), .rank = rank, .values = std::move(values)};
}

Record metric(int rank, double value, std::string name = "time") {
  return MetricRecord{.name = std::move(name), .unit = "s", .value = value, .rank = rank};
}

TEST(Slowest, IsTheLongestOfAllRanksAtEachPosition) {
  const std::vector<Record> records{sample(0, {1, 5}), sample(1, {4, 2}), sample(0, {3}), sample(1, {9})};
  const auto found = slowest_of_ranks(records);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, worker::kAllRanks);
  EXPECT_EQ(found[0].values, (std::vector<double>{4, 5, 9}));
}

TEST(Slowest, KeepsASampleThatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(slowest_of_ranks(std::vector<Record>{sample(0, {2}), sample(1, {nan})})[0].values[0]));
  EXPECT_TRUE(std::isnan(slowest_of_ranks(std::vector<Record>{sample(0, {nan}), sample(1, {2})})[0].values[0]));
}

TEST(Slowest, LeavesOutWhatNotEveryRankHasAndWhatIsNoTime) {
  EXPECT_TRUE(slowest_of_ranks(std::vector<Record>{sample(0, {1, 2})}).empty());
  EXPECT_TRUE(slowest_of_ranks(std::vector<Record>{sample(0, {1}), sample(1, {1}, "other")}).empty());
  EXPECT_TRUE(
      slowest_of_ranks(std::vector<Record>{sample(0, {1}, "clock", "Hz"), sample(1, {2}, "clock", "Hz")}).empty());
  // Rank 2 told a metric and no samples.
  EXPECT_TRUE(slowest_of_ranks(std::vector<Record>{sample(0, {1}), sample(1, {1}), metric(2, 7)}).empty());
}

TEST(Slowest, MakesAMetricOfASeriesWhoseMedianEveryRankTold) {
  const std::vector<Record> records{sample(0, {1, 5, 3}), sample(1, {4, 2, 6}), metric(0, 3), metric(1, 4)};
  const auto metrics = metrics_of_all_ranks(records);
  ASSERT_EQ(metrics.size(), 1U);
  EXPECT_EQ(metrics[0].name, "time");
  EXPECT_EQ(metrics[0].rank, worker::kAllRanks);
  EXPECT_EQ(metrics[0].value, 5);  // of 4, 5, 6
  EXPECT_EQ(metrics[0].n, 3);
  EXPECT_FALSE(metrics[0].low);  // three are too few for an interval
  EXPECT_TRUE(metrics_of_all_ranks(std::vector<Record>{sample(0, {1}), sample(1, {2}), metric(0, 1)}).empty());
  EXPECT_TRUE(
      metrics_of_all_ranks(std::vector<Record>{sample(0, {1}), sample(1, {2}), metric(0, 1), metric(1, 7)}).empty());
}

TEST(Slowest, TheMeanOfStepsIsOfTheSlowestAtEachAndNoRanksOwn) {
  const std::vector<Record> records{sample(0, {1, 5, 3}),
                                    sample(1, {4, 2, 6}),
                                    metric(0, 3),
                                    metric(1, 4),
                                    metric(0, 3, "time_mean"),
                                    metric(1, 4, "time_mean"),
                                    metric(0, 1, "time_min"),
                                    metric(1, 2, "time_min"),
                                    metric(0, 2, "time_stddev"),
                                    metric(1, 7, "time_stddev")};
  const auto metrics = metrics_of_all_ranks(records);
  ASSERT_EQ(metrics.size(), 3U) << "a rank's spread of 7 is not that of its samples";
  EXPECT_EQ(metrics[1].name, "time_mean");
  EXPECT_EQ(metrics[1].rank, worker::kAllRanks);
  EXPECT_EQ(metrics[1].value, 5) << "of 4, 5, 6; the slowest rank's own mean is 4";
  EXPECT_FALSE(metrics[1].low);
  EXPECT_EQ(metrics[2].name, "time_min");
  EXPECT_EQ(metrics[2].value, 4);
}

TEST(Slowest, RanksThatDidNotKeepStepHaveNoTimeTogether) {
  const std::vector<Record> records{sample(0, {1, 3}), sample(1, {4}), metric(0, 2), metric(1, 4)};
  EXPECT_TRUE(slowest_of_ranks(records).empty());
  const auto metrics = metrics_of_all_ranks(records);
  ASSERT_EQ(metrics.size(), 1U);
  EXPECT_FALSE(metrics[0].value);
  EXPECT_NE(metrics[0].note.find("different numbers of samples"), std::string::npos);
}

}  // namespace
}  // namespace syslab::runner
