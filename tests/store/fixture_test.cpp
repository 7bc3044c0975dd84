// A database of every released schema, as it was made then (make_fixture.cpp): this version opens, brings up and reads
// each of them, and finds what was put in.
#include <gtest/gtest.h>

#include "store/options.hpp"
#include "tests/store/dump.hpp"

namespace syslab::store {
namespace {

using namespace test;

class ReleasedSchema : public testing::TestWithParam<const char*> {
 protected:
  ReleasedSchema() {
    fs::copy_file(fs::path(SYSLAB_FIXTURES) / GetParam(), folder_ / "a.db");
    fs::permissions(folder_ / "a.db", fs::perms::owner_read | fs::perms::owner_write);
  }
  Folder folder_;
};

void expect_all_found(const Store& store) {
  EXPECT_EQ(store.schema_version(), embedded_schema().version());
  EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
  const std::vector<std::pair<const char*, std::int64_t>> rows{
      {"run", 2},     {"plan_case", 15},   {"attempt", 16}, {"series", 6},    {"sample", 18},
      {"metric", 18}, {"check_result", 8}, {"artifact", 6}, {"mem_event", 12}};
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

// What version 2 brought.
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

TEST_P(ReleasedSchema, IsReadWhereItLies) {
  const std::string before = bytes_of(folder_ / "a.db");
  expect_all_found(Store::open(folder_ / "a.db", Mode::read_only));
  EXPECT_TRUE(bytes_of(folder_ / "a.db") == before);
}

TEST_P(ReleasedSchema, IsBroughtUpAndGoesOn) {
  Store store = Store::open(folder_ / "a.db", Mode::create);
  expect_all_found(store);
  if (GetParam() != std::string("v1.db")) expect_comparisons_found(store);
  EXPECT_EQ(store.close_abandoned(), 1) << "the attempt that was never heard of again";
  store.finish_attempt(store.find_run("latest")->id, an_attempt(0));
}

TEST_P(ReleasedSchema, IsMergedWhole) {
  Store store = Store::open(folder_ / "all.db", Mode::create);
  store.merge(folder_ / "a.db", {.trusted = true});
  expect_all_found(store);
  if (GetParam() != std::string("v1.db")) expect_comparisons_found(store);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ReleasedSchema, testing::Values("v1.db", "v2.db", "v3.db", "v4.db"),
                         [](const auto& info) { return std::string(info.param).substr(0, 2); });

}  // namespace
}  // namespace syslab::store
