#include "worker/judged/argument_watch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace syslab::worker {
namespace {

using stats::TimingWarning;
using stats::WarningCode;

std::vector<double> drawn(std::size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> values(count);
  for (double& value : values) value = std::normal_distribution<>()(generator);
  return values;
}

std::span<const std::byte> bytes(const std::vector<double>& values) { return std::as_bytes(std::span(values)); }

// `content(call)` of one argument of 32 rows by 16 doubles.
template <typename Content>
std::vector<TimingWarning> after_calls(int calls, const Content& content, std::vector<std::int64_t> shape = {32, 16}) {
  ArgumentWatch watch({{"x", sizeof(double), std::move(shape)}});
  for (int call = 0; call < calls; ++call) watch.take(0, bytes(content(static_cast<unsigned>(call))));
  return watch.warnings();
}

TEST(ArgumentWatch, NewContentInEveryCallIsNoNews) {
  EXPECT_TRUE(after_calls(50, [](unsigned call) { return drawn(512, call); }).empty());
}

TEST(ArgumentWatch, ContentThatComesAgainIsTold) {
  const auto found = after_calls(50, [](unsigned call) { return drawn(512, call % 4); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, WarningCode::arguments_repeat);
  EXPECT_EQ(found[0].about, "x");
  EXPECT_NEAR(found[0].number, 46.0 / 49, 0.01);  // of two that share a place one is forgotten
}

TEST(ArgumentWatch, SoIsContentOfWhichFewRowsAreNewWhereverTheyLie) {
  const auto found = after_calls(50, [](unsigned call) {
    std::vector<double> values = drawn(512, 0);
    const std::vector<double> row = drawn(16, call + 1);
    std::copy(row.begin(), row.end(), values.begin() + 16 * (call % 32));
    return values;
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, WarningCode::arguments_repeat);
  EXPECT_GT(found[0].number, 0.9);
}

TEST(ArgumentWatch, SoAreColumnsThatStay) {
  for (const int stays : {8, 2}) {  // of 16: a half of each row, or one column and another
    const auto found = after_calls(50, [&](unsigned call) {
      std::vector<double> values = drawn(512, call + 1);
      const std::vector<double> first = drawn(512, 0);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool kept = stays == 8 ? i % 16 < 8 : i % 8 == 0;
        if (kept) values[i] = first[i];
      }
      return values;
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].code, WarningCode::arguments_repeat);
    EXPECT_NEAR(found[0].number, stays / 16.0, 0.01);
  }
}

TEST(ArgumentWatch, MasksAndLabelsOfFewValuesAreNoNews) {
  for (const unsigned values_there_are : {2U, 10U}) {
    const auto found = after_calls(50, [&](unsigned call) {
      std::vector<double> values = drawn(512, call);
      for (double& value : values)
        value = static_cast<double>(static_cast<unsigned>(std::abs(value) * 1e6) % values_there_are);
      return values;
    });
    EXPECT_TRUE(found.empty());
  }
}

TEST(ArgumentWatch, RowsThatAreEqualOrHoldOneValueAreTold) {
  const auto equal = [](unsigned call) {
    const std::vector<double> row = drawn(16, call);
    std::vector<double> values;
    for (int i = 0; i < 32; ++i) values.insert(values.end(), row.begin(), row.end());
    return values;
  };
  const auto constant = [](unsigned call) {
    std::vector<double> values;
    for (const double one : drawn(32, call)) values.insert(values.end(), 16, one);
    return values;
  };
  for (const auto& found : {after_calls(9, equal), after_calls(9, constant)}) {
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].code, WarningCode::rows_equal);
    EXPECT_GT(found[0].number, 0.9);
  }
}

TEST(ArgumentWatch, AFlatArgumentHasNoRowsButMayHoldOneValue) {
  EXPECT_TRUE(after_calls(9, [](unsigned call) { return drawn(512, call); }, {512}).empty());
  const auto found = after_calls(9, [](unsigned call) { return std::vector<double>(512, 1.0 + call); }, {512});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, WarningCode::rows_equal);
}

// `contents[i](call)` of argument i, of 32 rows by 16 doubles.
std::vector<TimingWarning> of_two(int calls, const std::function<std::vector<double>(unsigned)>& first,
                                  const std::function<std::vector<double>(unsigned)>& second) {
  ArgumentWatch watch({{"x", sizeof(double), {32, 16}}, {"mask", sizeof(double), {32, 16}}});
  for (int call = 0; call < calls; ++call) {
    watch.take(0, bytes(first(static_cast<unsigned>(call))));
    watch.take(1, bytes(second(static_cast<unsigned>(call))));
  }
  return watch.warnings();
}

TEST(ArgumentWatch, AnArgumentThatIsTheSameWhileOthersVaryIsToldAsThat) {
  const auto same = [](unsigned) { return drawn(512, 7); };
  const auto found = of_two(
      9, [](unsigned call) { return drawn(512, call); }, same);
  EXPECT_EQ(found, (std::vector<TimingWarning>{{WarningCode::argument_constant, {}, "mask", 0}}));
  const auto of_period = of_two(
      50, [](unsigned call) { return drawn(512, call % 4); }, same);
  ASSERT_EQ(of_period.size(), 2U);
  EXPECT_EQ(of_period[0].code, WarningCode::arguments_repeat);
  EXPECT_EQ(of_period[1].code, WarningCode::argument_constant);
}

TEST(ArgumentWatch, ArgumentsThatAreAllTheSameRepeat) {
  const auto found = of_two(
      9, [](unsigned) { return drawn(512, 1); }, [](unsigned) { return drawn(512, 7); });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].code, WarningCode::arguments_repeat);
  EXPECT_EQ(found[1].code, WarningCode::arguments_repeat);
}

// More units a call than there are places for.
constexpr std::int64_t kManyRows = 1 << 18, kShort = 4;

std::vector<TimingWarning> after_large(int calls, const std::function<void(std::vector<double>&, unsigned)>& change,
                                       std::int64_t rows = kManyRows) {
  ArgumentWatch watch({{"x", sizeof(double), {rows, kShort}}});
  std::vector<double> values(static_cast<std::size_t>(rows * kShort));
  for (int call = 0; call < calls; ++call) {
    change(values, static_cast<unsigned>(call));
    watch.take(0, bytes(values));
  }
  return watch.warnings();
}

void number(std::vector<double>& values, unsigned from) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) + 0x1p-8 * from;
}

TEST(ArgumentWatch, LargeContentThatComesAgainAfterManyCallsIsTold) {
  const auto found = after_large(40, [](auto& values, unsigned call) { number(values, call % 20); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].number, 20.0 / 39, 0.05);
  EXPECT_TRUE(after_large(5, [](auto& values, unsigned call) { number(values, call); }).empty());
}

TEST(ArgumentWatch, SoAreFewNewRowsOfLargeContent) {
  const auto found = after_large(
      5,
      [](auto& values, unsigned call) {
        if (call == 0) number(values, 0);
        values[call] = -1;
      },
      4 * kManyRows);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_GT(found[0].number, 0.8);
}

TEST(ArgumentWatch, WhatIsTooSmallToBeNewEveryTimeIsLeftOut) {
  EXPECT_TRUE(after_calls(50, [](unsigned call) { return drawn(2, call % 2); }, {2}).empty());
}

}  // namespace
}  // namespace syslab::worker
