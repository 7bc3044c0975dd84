// A database with everything in it is read, brought up by a next version, goes on and is merged, and what was put in is
// found. Once a schema is released, a file of it is kept, and each later version opens that, too.
#include <gtest/gtest.h>

#include "store/options.hpp"
#include "tests/store/dump.hpp"
#include "tests/store/full_database.hpp"

namespace syslab::store {
namespace {

using namespace test;

// Whether a version that has one migration more opens it.
class FullDatabase : public testing::TestWithParam<bool> {
 protected:
  FullDatabase() {
    make_full_database(folder_ / "a.db");
    const int next = options_.schema.version() + 1;
    if (GetParam())
      options_.schema.migrations.push_back({next, "next_colour", "ALTER TABLE pin ADD COLUMN colour TEXT"});
  }
  void expect_everything(const Store& store) const;
  Folder folder_;
  OpenOptions options_ = default_options();
};

void expect_all_found(const Store& store) {
  EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
  const std::vector<std::pair<const char*, std::int64_t>> rows{
      {"run", 2},     {"plan_case", 15}, {"rung_fact", 4},    {"attempt", 16}, {"series", 6},
      {"sample", 18}, {"metric", 18},    {"check_result", 8}, {"artifact", 6}, {"mem_event", 12}};
  for (const auto& [table, expected] : rows) {
    EXPECT_EQ(count(store, std::string("SELECT count(*) FROM ") + table), expected) << table;
  }

  const StoredRun run = store.find_run("000000000001").value();
  EXPECT_EQ(run.uid, "019ddd00-0000-7000-8000-000000000001");
  EXPECT_EQ(run.root_seed, "18446744073709551615");
  EXPECT_EQ(run.label, "test");
  EXPECT_EQ(run.argv, (std::vector<std::string>{"run", "toy"}));
  const std::vector<PlanState> states = store.plan_state(run.id);
  const std::vector<Status> expected{Status::ok,    Status::ok,           Status::ok,      Status::ok,
                                     Status::oom,   Status::check_failed, Status::ok,      Status::crashed,
                                     Status::error, Status::unsupported,  Status::aborted, Status::skipped};
  ASSERT_EQ(states.size(), expected.size());
  for (std::size_t i = 0; i < states.size(); ++i) EXPECT_EQ(states[i].last_status, expected[i]) << i;
  EXPECT_EQ(states[2].attempts, 2);
  EXPECT_EQ(states[0].plan.implementation.role, "reference");
  EXPECT_EQ(states[0].plan.params.integer("size"), 64);
  EXPECT_EQ(states[11].plan.skip_reason, "needs 6 GPUs");

  const ResultSet speedups =
      store.query("SELECT baseline, speedup FROM v_speedup WHERE implementation = 'ours' ORDER BY baseline");
  ASSERT_EQ(speedups.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(speedups.rows[0][1].real, 8.0);
  EXPECT_DOUBLE_EQ(speedups.rows[1][1].real, 2.0);
  EXPECT_EQ(count(store, "SELECT count(*) FROM v_failures"), 7);
  EXPECT_EQ(text(store, "SELECT note FROM metric WHERE name = 'energy' LIMIT 1"), "no counter on this machine");

  const std::string check = text(store, "SELECT check_uid FROM v_coverage WHERE outcome = 'falsified'");
  const StoredCheck found = store.find_check(check).value();
  EXPECT_EQ(found.implementation, "me");
  EXPECT_EQ(found.mine_path, "kernel.so");
  EXPECT_EQ(found.reproduce, "BcuXlNXZz9VdtV3XvBXZ");
  EXPECT_EQ(found.counterexample_json, R"({"n":"17"})");
  EXPECT_EQ(found.seed, "18446744073709551615");
  EXPECT_EQ(text(store, "SELECT outcome FROM v_coverage WHERE law = 'toy.is_even'"), "not_run");
}

void expect_comparisons_found(const Store& store) {
  const PinRow pin = store.find_pin("baseline").value();
  EXPECT_EQ(pin.run_uid, "019ddd00-0000-7000-8000-000000000001");
  EXPECT_EQ(pin.note, "after the holidays");
  EXPECT_EQ(store.pins().size(), 2U);
  EXPECT_EQ(count(store, "SELECT count(*) FROM comparison_block"), 12);
  EXPECT_EQ(count(store, "SELECT count(*) FROM comparison_attempt"), 4);
  EXPECT_EQ(text(store, "SELECT label_b || ' is ' || verdict FROM v_comparison WHERE is_last"), "ours is faster");
  EXPECT_EQ(text(store, "SELECT round(change, 3) || ' at ' || q_value FROM v_comparison WHERE NOT is_last"),
            "-0.498 at 2.0e-06");
}

void FullDatabase::expect_everything(const Store& store) const {
  EXPECT_EQ(store.schema_version(), options_.schema.version());
  expect_all_found(store);
  expect_comparisons_found(store);
}

TEST_P(FullDatabase, IsReadWhereItLies) {
  const std::string before = bytes_of(folder_ / "a.db");
  expect_everything(Store::open(folder_ / "a.db", Mode::read_only, options_));
  EXPECT_TRUE(bytes_of(folder_ / "a.db") == before);
}

TEST_P(FullDatabase, IsOpenedAndGoesOn) {
  Store store = Store::open(folder_ / "a.db", Mode::create, options_);
  expect_everything(store);
  EXPECT_EQ(store.close_abandoned(), 1) << "the attempt that was never heard of again";
  store.finish_attempt(store.find_run("latest")->id, an_attempt(0));
}

TEST_P(FullDatabase, IsMergedWhole) {
  Store store = Store::open(folder_ / "all.db", Mode::create, options_);
  store.merge(folder_ / "a.db", {.trusted = true});
  expect_everything(store);
}

INSTANTIATE_TEST_SUITE_P(Versions, FullDatabase, testing::Bool(),
                         [](const auto& info) { return info.param ? "BroughtUp" : "AsItIs"; });

}  // namespace
}  // namespace syslab::store
