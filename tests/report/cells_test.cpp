#include "report/cells.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

TEST(WithDigits, KeepsSignificantDigitsWithoutAnExponentWhereReadable) {
  EXPECT_EQ(with_digits(1234.56, 3), "1230");
  EXPECT_EQ(with_digits(12.3456, 3), "12.3");
  EXPECT_EQ(with_digits(0.0123456, 3), "0.0123");
  EXPECT_EQ(with_digits(1.0, 3), "1.00");
  EXPECT_EQ(with_digits(9.996, 3), "10.0");
  EXPECT_EQ(with_digits(-9.996, 3), "-10.0");
  EXPECT_EQ(with_digits(1.234e-7, 3), "1.23e-07");
  EXPECT_EQ(with_digits(1.234e9, 2), "1.2e+09");
  EXPECT_EQ(with_digits(0, 3), "0");
}

TEST(WithDigits, SpellsOutWhatIsNoNumber) {
  EXPECT_EQ(with_digits(std::nan(""), 3), "NaN");
  EXPECT_EQ(with_digits(std::numeric_limits<double>::infinity(), 3), "∞");
  EXPECT_EQ(with_digits(-std::numeric_limits<double>::infinity(), 3), "−∞");
}

TEST(WithInterval, TakesItsDigitsFromTheUncertainty) {
  EXPECT_EQ(with_interval(1.23456, 1.2301, 1.2390), "1.2346 ± 0.0045");
  EXPECT_EQ(with_interval(1.23456, 0.97, 1.5), "1.23 ± 0.27");
  EXPECT_EQ(with_interval(123.456, 111, 136), "123 ± 13");
  EXPECT_EQ(with_interval(1234.5, 1000, 1450), "1230 ± 230");
  EXPECT_EQ(with_interval(1.0, 0.9004, 1.0996), "1.00 ± 0.10") << "0.0996 is 0.10 to two digits";
  EXPECT_EQ(with_interval(5e-7, 4e-7, 6e-7), "0.00000050 ± 0.00000010");
  EXPECT_EQ(with_interval(5e-13, 4.9e-13, 5.1e-13), "5.000e-13 ± 1.0e-14");
}

// 9 and 10 read ± 10 to within a digit; 8.9 and 10 do not.
TEST(WithInterval, GivesBothEndsWhereTheSidesDifferByMoreThanATenthOfTheLonger) {
  EXPECT_EQ(with_interval(100, 91, 110), "100 ± 10");
  EXPECT_EQ(with_interval(100, 90, 109), "100 ± 10");
  EXPECT_EQ(with_interval(100, 91.1, 110), "100 (91 … 110)");
  EXPECT_EQ(with_interval(100, 90, 108.9), "100 (90 … 109)");
}

TEST(WithInterval, GivesBothEndsToThePlaceOfTheLongerSide) {
  EXPECT_EQ(with_interval(1.23456, 1.2301, 1.2377), "1.2346 (1.2301 … 1.2377)");
  EXPECT_EQ(with_interval(1.0, 0.9004, 1.0), "1.00 (0.90 … 1.00)");
  EXPECT_EQ(with_interval(1234.5, 1000, 1400), "1230 (1000 … 1400)");
  EXPECT_EQ(with_interval(-2.0, -2.5, -1.9), "-2.00 (-2.50 … -1.90)");
  EXPECT_EQ(with_interval(5e-13, 4.9e-13, 5.3e-13), "5.000e-13 (4.900e-13 … 5.300e-13)");
}

// A program that always prints 200 ms has this interval, because the spread of equal times is computed from sums.
TEST(WithInterval, HasNoWidthWhereOnlySumsAreRounded) {
  EXPECT_EQ(with_interval(200, 200, 200), "200.0 ± 0");
  EXPECT_EQ(with_interval(200, 199.99999999999984, 200.00000000000018), "200.0 ± 0");
  EXPECT_EQ(with_interval(200 + 3e-14, 200, 200), "200.0 ± 0");
  EXPECT_EQ(with_interval(-2e9, -2e9, -2e9 * (1 - 1e-15)), "-2.000e+09 ± 0");
  EXPECT_EQ(with_interval(1, 1 - 1e-11, 1 + 1e-11), "1.000000000000 ± 0.000000000010");
}

TEST(WithInterval, GivesBothEndsWhereTheIntervalIsWide) {
  EXPECT_EQ(with_interval(0.0634, 0.061, 18), "0.0634 (0.0610 … 18.0)");
  EXPECT_EQ(with_interval(10, 5.1, 15), "10.0 ± 5.0");
  EXPECT_EQ(with_interval(10, 4, 16), "10.0 (4.00 … 16.0)");
}

TEST(WithInterval, SurvivesIntervalsThatAreNone) {
  EXPECT_EQ(with_interval(2.5, 2.5, 2.5), "2.500 ± 0");
  EXPECT_EQ(with_interval(2.5, std::nan(""), std::nan("")), "2.50");
}

TEST(Formatted, SaysWhyAValueIsMissing) {
  const Table table = speeds();
  const Column time = table.source.columns[3];
  EXPECT_EQ(formatted(table, 0, time), "1.2346 ± 0.0045");
  EXPECT_EQ(formatted(table, 1, time), "OOM");
  EXPECT_EQ(formatted(table, 2, time), "wrong");
  EXPECT_EQ(formatted(table, 3, time), "1230") << "no interval: three digits";
  Table ok = table;
  ok.result.rows[0][3] = null();
  EXPECT_EQ(formatted(ok, 0, time), "not measured");
  ok.source.blank = "–";
  EXPECT_EQ(formatted(ok, 0, time), "–") << "the table has another meaning for it";
  EXPECT_EQ(formatted(ok, 1, time), "OOM");
}

TEST(Formatted, ARatioOfTimesHasItsIntervalAndSaysWhereItMayBeOne) {
  Table table = speeds();
  Column ratio = table.source.columns[3];
  ratio.format = "ratio(low, high)";
  const auto shown = [&](store::Cell value, store::Cell low, store::Cell high) {
    table.result.rows[0][3] = std::move(value);
    table.result.rows[0][4] = std::move(low);
    table.result.rows[0][5] = std::move(high);
    return formatted(table, 0, ratio);
  };
  EXPECT_EQ(shown(cell(1.872), cell(1.841), cell(1.902)), "1.872 ± 0.031");
  EXPECT_EQ(shown(cell(1.872), cell(1.841), cell(1.89)), "1.872 (1.841 … 1.890)");
  EXPECT_EQ(shown(cell(1.02), cell(0.8), cell(1.31)), "1.02 (0.80 … 1.31, no measurable difference)");
  EXPECT_EQ(shown(cell(1.002), cell(0.999), cell(1.004)), "1.0020 (0.9990 … 1.0040, no measurable difference)");
  EXPECT_EQ(shown(cell(1.0), cell(1.0), cell(1.0)), "1.00 (1.00 … 1.00, no measurable difference)");
  EXPECT_EQ(shown(cell(1.0), cell(1 - 1e-15), cell(1 + 1e-15)), "1.00 (1.00 … 1.00, no measurable difference)");
  EXPECT_EQ(shown(cell(1.5), null(), null()), "1.50 (no interval)");
  EXPECT_EQ(shown(null(), null(), null()), "not measured");
}

TEST(Formatted, SpellsStatusesOut) {
  const Table table = speeds();
  const Column status = table.source.columns.back();
  EXPECT_EQ(formatted(table, 0, status), "ok");
  EXPECT_EQ(formatted(table, 1, status), "OOM (needs 242 GiB)");
  EXPECT_EQ(status_word("timeout"), "timeout");
  EXPECT_EQ(status_word("not_run"), "not run");
}

TEST(Formatted, ARowThatEndedBadlySaysSoOnceAndWhy) {
  Table table = speeds();
  const auto texts = [&](std::size_t row) {
    std::string all;
    for (const Column& column : table.source.columns) all += formatted(table, row, column) + "; ";
    return all;
  };
  EXPECT_EQ(texts(1), "128; naive; no; OOM; –; quick; OOM (needs 242 GiB); ");
  table.source.columns.pop_back();  // where no column tells the status, the first gap does
  EXPECT_EQ(texts(1), "128; naive; no; OOM (needs 242 GiB); –; quick; ");
  EXPECT_EQ(formatted(table, 3, table.source.columns[3]), "1230") << "an ok row without an interval";
}

Table sizes(std::vector<std::vector<store::Cell>> rows) {
  Table table;
  table.source = parse_table("sizes", R"(-- title: Sizes
-- caption: What is held.
-- experiment: toy
-- columns: peak|GiB|.4g|right; parts|GiB|.4g|right; kept|MiB|.4g|right
SELECT 1)");
  table.result.columns = {"peak", "parts", "kept"};
  table.result.rows = std::move(rows);
  return table;
}

std::vector<std::string> shown_row(const Table& table, std::size_t row) {
  std::vector<std::string> texts;
  for (const Column& column : shown_columns(table)) texts.push_back(formatted(table, row, column) + "|" + column.unit);
  return texts;
}

using CellsShown = std::vector<std::string>;

TEST(SizesInBytes, OfLargeModelsKeepTheUnitOfTheHeader) {
  const Table table = sizes({{cell(63.6), cell(0.5), cell(20.0)}});
  EXPECT_EQ(shown_row(table, 0), (CellsShown{"63.60|GiB", "0.5000|GiB", "20.00|MiB"}));
}

// 3 MiB in a column of GiB; parts are in the unit of the whole.
TEST(SizesInBytes, OfAToyAreInAUnitThatFits) {
  const Table table = sizes({{cell(3.0 / 1024), cell(0.25 / 1024), cell(0.5)}, {cell(2.0 / 1024), null(), cell(0)}});
  EXPECT_EQ(shown_row(table, 0), (CellsShown{"3.000|MiB", "0.2500|MiB", "512.0|KiB"}));
  EXPECT_EQ(shown_row(table, 1), (CellsShown{"2.000|MiB", "not measured|MiB", "0|KiB"}));
}

TEST(SizesInBytes, FarBelowTheOthersBearTheirOwnUnit) {
  const Table table = sizes({{cell(50.0), cell(168.0 / 1073741824), cell(168.0 / 1048576)}});
  EXPECT_EQ(shown_row(table, 0), (CellsShown{"50.00|GiB", "168 B|GiB", "168|B"}));
}

TEST(SizesInBytes, OfASentenceBearTheirUnit) {
  Table table = sizes({{cell(3.0 / 1024), cell(63.6), cell(-168.0 / 1048576)}});
  for (Column& column : table.source.columns) column.format = ".4b";
  EXPECT_EQ(formatted(table, 0, table.source.columns[0]), "3.000 MiB");
  EXPECT_EQ(formatted(table, 0, table.source.columns[1]), "63.60 GiB");
  EXPECT_EQ(formatted(table, 0, table.source.columns[2]), "-168 B");
}

TEST(Formatted, CutsLongMessagesBetweenCharacters) {
  Table table = speeds();
  std::string message;
  for (int i = 0; i < 100; ++i) message += "é";
  table.result.rows[1][9] = cell(message);
  const std::string text = formatted(table, 1, table.source.columns.back());
  EXPECT_LT(text.size(), 140U);
  EXPECT_TRUE(text.ends_with("é…)")) << text;
}

TEST(HoldsTimes, IsToldByTheUnits) {
  TableSource source = speeds().source;
  EXPECT_TRUE(holds_times(source));
  for (Column& column : source.columns) column.unit = "1";
  EXPECT_FALSE(holds_times(source)) << "a table of bits or of laws needs no warning about times";
}

TEST(ShownColumns, LeaveOutWhatDoesNotVary) {
  Table table = speeds();
  const auto names = [&] {
    std::string all;
    for (const Column& column : shown_columns(table)) all += column.name + " ";
    return all;
  };
  EXPECT_EQ(names().find("protocol"), std::string::npos);
  table.result.rows[0][7] = cell("kernel");
  EXPECT_NE(names().find("protocol"), std::string::npos);
}

TEST(Sparkline, IsFromTheSmallestToTheLargestAndLevelBelowAPercent) {
  EXPECT_EQ(sparkline({1, 2, 3}), "▁▅█");
  EXPECT_EQ(sparkline({1, 1.0001}), "▁▁");
  EXPECT_EQ(sparkline({0, 0}), "▁▁");
  EXPECT_THROW(sparkline({}), Error);
}

}  // namespace
}  // namespace syslab::report
