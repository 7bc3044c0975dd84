// Stored times of chosen sizes and intervals, for tests of the ratios that tables and sentences make of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "core/resources.hpp"
#include "report/cells.hpp"
#include "report/table.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {

using store::Cell;
using worker::Record;

// With an interval of a tenth on both sides, if nothing else is said.
struct Time {
  double value, low = 0.9 * value, high = 1.1 * value;
};

inline Record time_record(const std::string& name, const Time& time, int rank = 0) {
  return worker::MetricRecord{
      .name = name, .unit = "s", .value = time.value, .low = time.low, .high = time.high, .n = 10, .rank = rank};
}

inline worker::CheckRecord right_result() {
  return {.name = "reference:y", .outcome = Outcome::passed, .cases_run = 1, .seed = "7"};
}

class RatioTables : public ::testing::Test {
 protected:
  void add(const std::string& experiment, const Params& params, const std::string& implementation,
           std::vector<Record> records, int ranks = 1, const std::string& role = "") {
    records.insert(records.begin(), right_result());
    fixture_.add({.experiment = experiment,
                  .params = params,
                  .implementation = implementation,
                  .records = std::move(records),
                  .ranks = ranks,
                  .role = role});
  }
  void fill_from(const std::string& experiment, const std::string& id) {
    const std::string name = "experiments/" + experiment + "/tables/" + id + ".sql";
    const std::vector<Resource> files = resources(name);
    ASSERT_EQ(files.size(), 1U) << name;
    table_ = fill(parse_table(id, std::string(files.at(0).text)), fixture_.store());
  }
  const Cell& at(std::size_t row, std::string_view column) const { return cell_of(table_.result, row, column); }
  void expect_ratio(std::size_t row, const std::string& column, const Time& above, const Time& below) const {
    EXPECT_DOUBLE_EQ(at(row, column).real, above.value / below.value) << column;
    EXPECT_DOUBLE_EQ(at(row, column + "_low").real, above.low / below.high) << column;
    EXPECT_DOUBLE_EQ(at(row, column + "_high").real, above.high / below.low) << column;
  }
  void expect_itself(std::size_t row, const std::string& column) const {
    EXPECT_EQ(at(row, column).real, 1) << column;
    EXPECT_EQ(at(row, column + "_low").type, Cell::Type::null) << column;
    EXPECT_EQ(at(row, column + "_high").type, Cell::Type::null) << column;
  }
  std::string text(std::size_t row, std::string_view column) const { return at(row, column).text; }

  FixtureStore fixture_;
  Table table_;
};

}  // namespace syslab::report
