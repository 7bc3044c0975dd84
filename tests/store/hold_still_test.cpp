#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "store/options.hpp"
#include "store/store.hpp"
#include "tests/store/fixture.hpp"
#include "tests/store/full_database.hpp"

namespace syslab::store {
namespace {

using namespace test;

// Every row as one text, sorted: a view promises no order.
std::vector<std::string> rows_of(const Store& store, const std::string& view) {
  std::vector<std::string> rows;
  for (const auto& row : store.query("SELECT * FROM " + view).rows) {
    std::string text;
    for (const Cell& cell : row) {
      text += cell.type == Cell::Type::text      ? cell.text
              : cell.type == Cell::Type::integer ? std::to_string(cell.integer)
              : cell.type == Cell::Type::real    ? std::to_string(cell.real)
                                                 : "NULL";
      text += '|';
    }
    rows.push_back(text);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::string> views_of(const Store& store) {
  std::vector<std::string> names;
  for (const auto& row : store.query("SELECT name FROM sqlite_temp_schema WHERE type = 'view'").rows) {
    names.push_back(row[0].text);
  }
  return names;
}

class HoldStill : public testing::Test {
 protected:
  HoldStill() : writer_(Store::open(folder_ / "a.db", Mode::create)) {
    run_ = writer_.begin_run(a_run(), {a_case(0, 64, "oracle", "reference"), a_case(1, 64, "torch", "peer"),
                                       a_case(2, 64, "fast"), a_case(3, 65, "fast")});
    writer_.finish_attempt(run_, an_attempt(0, 8.0));
    writer_.finish_attempt(run_, an_attempt(1, 2.0));
    writer_.finish_attempt(run_, an_attempt(2, 1.0));
    writer_.finish_attempt(run_, a_failure(3, Status::crashed, "signal 11"));
  }
  Store reader() const { return Store::open(folder_ / "a.db", Mode::read_only); }

  Folder folder_;
  Store writer_;
  RowId run_ = 0;
};

TEST_F(HoldStill, EveryViewHoldsWhatItHeld) {
  const Store plain = reader();
  Store still = reader();
  still.hold_still();
  EXPECT_GE(views_of(plain).size(), 10U);
  for (const std::string& view : views_of(plain)) EXPECT_EQ(rows_of(still, view), rows_of(plain, view)) << view;
  EXPECT_EQ(rows_of(still, "v_measured").size(), 4U);
}

TEST_F(HoldStill, MeasurementsOfAnotherVersionAreNotSeenButCounted) {
  PlanRow newer = a_case(0, 64, "fast");
  newer.version = "2";
  newer.case_uid = case_uid(newer.experiment, newer.version, newer.params);
  PlanRow law = a_law(1, "toy.law", "fast");
  writer_.finish_attempt(writer_.begin_run(a_run(), {newer, law}), an_attempt(0, 7.0));
  const auto seen = [this](const std::map<std::string, std::string>& versions) {
    Store still = reader();
    still.hold_still(versions);
    std::vector<std::string> names;
    for (const char* view : {"v_measured", "v_latest", "v_failures", "v_run"}) {
      names.push_back(std::to_string(rows_of(still, view).size()));
    }
    names.push_back(std::to_string(count(still, "SELECT sum(missing) FROM v_run")));
    return names;
  };
  const std::vector<std::string> all{"5", "4", "1", "2", "1"};  // missing: the law, that nobody reached
  EXPECT_EQ(seen({}), all);
  EXPECT_EQ(seen({{"another", "3"}}), all);
  EXPECT_EQ(seen({{"toy", "1"}}), (std::vector<std::string>{"4", "3", "1", "2", "1"}));
  EXPECT_EQ(seen({{"toy", "2"}}), (std::vector<std::string>{"1", "1", "0", "2", "1"}));
  EXPECT_EQ(seen({{"toy", "3"}}), (std::vector<std::string>{"0", "0", "0", "2", "1"}));
  EXPECT_EQ(reader().count_other_versions("toy", "1"), 1);
  EXPECT_EQ(reader().count_other_versions("toy", "2"), 4);
  EXPECT_EQ(reader().count_other_versions("another", "2"), 0);
}

TEST_F(HoldStill, LaterAttemptsAreNotSeen) {
  Store still = reader();
  still.hold_still();
  const auto before = rows_of(still, "v_newest"), speedups = rows_of(still, "v_speedup");
  writer_.finish_attempt(run_, an_attempt(3, 0.5));
  EXPECT_EQ(rows_of(still, "v_newest"), before);
  EXPECT_EQ(rows_of(still, "v_speedup"), speedups);
  EXPECT_NE(rows_of(reader(), "v_newest"), before);
}

TEST_F(HoldStill, ChangesNoByteAndStopsNoWriter) {
  Store still = reader();
  still.hold_still();
  writer_.finish_attempt(run_, an_attempt(3, 0.5));  // would wait for a reader's lock, and fail
  { const Store closed = std::move(writer_); }
  const std::string bytes = bytes_of(folder_ / "a.db");
  {
    Store again = reader();
    again.hold_still();
  }
  EXPECT_EQ(bytes_of(folder_ / "a.db"), bytes);
}

TEST_F(HoldStill, IsForReadersOnly) { EXPECT_THROW(writer_.hold_still(), Error); }

// Views of another syslab lie over those of the file; a file that cannot be written is read as it is.
TEST(HoldStillOfAnOlderFile, WorksOnTheMigratedCopy) {
  const Folder folder;
  make_full_database(folder / "a.db");
  OpenOptions next = default_options();
  next.schema.migrations.push_back({next.schema.version() + 1, "next", "ALTER TABLE pin ADD COLUMN colour TEXT"});
  Store still = Store::open(folder / "a.db", Mode::read_only, next);
  still.hold_still();
  EXPECT_EQ(rows_of(still, "v_measured"), rows_of(Store::open(folder / "a.db", Mode::read_only), "v_measured"));
}

}  // namespace
}  // namespace syslab::store
