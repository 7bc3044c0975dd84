#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "store/connection.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

TEST(StoreWrite, AnAttemptIsReadBackAsItWasWritten) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(2));
  const std::string uid = store.finish_attempt(run, an_attempt(1, 2e-3));

  const ResultSet row = store.query(
      "SELECT experiment, params ->> '$.size', implementation, status, checked, metric, unit, value, ci_low, n, "
      "protocol, "
      "facts ->> '$.stop', attempt_no FROM v_result WHERE attempt_uid = ?",
      {{.type = Cell::Type::text, .text = uid}});
  ASSERT_EQ(row.rows.size(), 1U);
  const auto& cells = row.rows[0];
  EXPECT_EQ(cells[0].text, "toy");
  EXPECT_EQ(cells[1].integer, 101);
  EXPECT_EQ(cells[2].text, "ours");
  EXPECT_EQ(cells[3].text, "ok");
  EXPECT_EQ(cells[4].integer, 1);
  EXPECT_EQ(cells[5].text, "time");
  EXPECT_EQ(cells[6].text, "s");
  EXPECT_EQ(cells[7].real, 2e-3);
  EXPECT_EQ(cells[8].real, 0.9 * 2e-3);
  EXPECT_EQ(cells[9].integer, 20);
  EXPECT_EQ(cells[10].text, "quick");
  EXPECT_EQ(cells[11].text, "precision");
  EXPECT_EQ(cells[12].integer, 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM sample"), 3);
}

TEST(StoreWrite, SeedsOfAllSixtyFourBitsSurvive) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  store.finish_attempt(run, an_attempt(0));
  EXPECT_EQ(store.find_run("latest")->root_seed, "18446744073709551615");
  EXPECT_EQ(store.plan_state(run).at(0).plan.seed, "18446744073709551614");
  EXPECT_EQ(text(store, "SELECT seed FROM check_result"), "18446744073709551613");
}

TEST(StoreWrite, AMetricWithoutAValueSaysWhy) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  attempt.records = {worker::MetricRecord{.name = "nan", .unit = "1", .value = std::nan("")},
                     worker::MetricRecord{.name = "noted", .unit = "1", .value = std::nan(""), .note = "loss blew up"},
                     worker::MetricRecord{.name = "absent", .unit = "1", .note = "no counters here"},
                     worker::MetricRecord{.name = "silent", .unit = "1"},
                     worker::MetricRecord{.name = "huge", .unit = "1", .value = HUGE_VAL}};
  store.finish_attempt(run, attempt);
  const auto note = [&](const std::string& name) {
    return text(store, "SELECT note FROM metric WHERE value IS NULL AND name = '" + name + "'");
  };
  EXPECT_EQ(note("nan"), "not a number");
  EXPECT_EQ(note("noted"), "not a number; loss blew up");
  EXPECT_EQ(note("absent"), "no counters here");
  EXPECT_FALSE(note("silent").empty());
  EXPECT_EQ(store.query("SELECT value FROM metric WHERE name = 'huge'").rows[0][0].real, HUGE_VAL);
}

TEST(StoreWrite, KernelsAndSpansOfATraceAreKeptInTheirOrder) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  attempt.records = {worker::KernelStatRecord{"forward", "gemm/sgemm", 3, 90, 20, 40, 0},
                     worker::KernelStatRecord{"forward", "gemm/sgemm", 1, 7, 7, 7, 0},  // told twice: the first counts
                     worker::KernelStatRecord{"forward", "gemm/sgemm", 1, 8, 8, 8, 1},
                     worker::SpanRecord{"host", "forward", "phase", 5, 50, 0},
                     worker::SpanRecord{"host", "gemm", "kernel", 5, 20, 0},
                     worker::SpanRecord{"host", "forward", "phase", 6, 60, 1}};
  store.finish_attempt(run, attempt);
  EXPECT_EQ(count(store, "SELECT sum(total_ns) FROM kernel_stat WHERE rank = 0"), 90);
  EXPECT_EQ(count(store, "SELECT total_ns FROM kernel_stat WHERE rank = 1"), 8);
  EXPECT_EQ(
      text(store, "SELECT group_concat(name || ' ' || seq) FROM (SELECT * FROM span WHERE rank = 0 ORDER BY seq)"),
      "forward 0,gemm 1");
  EXPECT_EQ(count(store, "SELECT seq FROM span WHERE rank = 1"), 0);
}

TEST(StoreWrite, RanksKeepTheirOwnMetrics) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  attempt.records = {worker::MetricRecord{.name = "time", .unit = "s", .value = 1.0, .rank = 0},
                     worker::MetricRecord{.name = "time", .unit = "s", .value = 2.0, .rank = 1}};
  store.finish_attempt(run, attempt);
  EXPECT_EQ(count(store, "SELECT count(*) FROM metric WHERE name = 'time'"), 2);
}

TEST(StoreWrite, OfAMetricGivenTwiceTheLastCountsAndTheFactsTell) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  attempt.records = {a_time(1.0), a_time(3.0)};
  store.finish_attempt(run, attempt);
  EXPECT_EQ(store.query("SELECT value FROM metric").rows.at(0).at(0).real, 3.0);
  EXPECT_EQ(text(store, "SELECT facts ->> '$.metrics_given_twice[0]' FROM attempt_facts"), "time");
}

TEST(StoreWrite, AboveFiftyThousandSamplesAReservoirIsKeptAndSaysSo) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  attempt.records = {worker::SampleRecord{.series = "clock", .unit = "Hz", .values = std::vector<double>(100, 1e9)}};
  for (int part = 0; part < 3; ++part) {
    worker::SampleRecord record{.series = "time", .unit = "s", .first_index = 20'000 * part};
    for (int i = 0; i < 20'000; ++i) record.values.push_back(20'000 * part + i);
    attempt.records.emplace_back(record);
  }
  store.finish_attempt(run, attempt);
  const std::string in_series = "SELECT count(*) FROM sample s JOIN series x ON x.id = s.series_id WHERE x.name = ";
  EXPECT_EQ(count(store, in_series + "'clock'"), 100) << "a short series must stay whole";
  EXPECT_EQ(count(store, in_series + "'time'"), 49'900);
  EXPECT_EQ(count(store, in_series + "'time' AND value <> idx"), 0) << "a kept sample must keep its place";
  EXPECT_EQ(count(store, "SELECT facts ->> '$.sample_reservoir.time.taken' FROM attempt_facts"), 60'000);
  EXPECT_EQ(count(store, "SELECT facts ->> '$.sample_reservoir.time.kept' FROM attempt_facts"), 49'900);
  EXPECT_EQ(count(store, "SELECT facts ->> '$.samples_taken' FROM attempt_facts"), 60'100);
  // Every third of the run is there in its share, within six standard deviations of a fair draw (σ ≈ 43).
  EXPECT_NEAR(static_cast<double>(count(store, in_series + "'time' AND idx < 20000")), 49'900.0 / 3, 260);
}

TEST(StoreWrite, ADetailWithBytesThatAreNoTextIsStillReadable) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  const char said[] = "said \xff\xfe and \0 died";
  store.finish_attempt(run, a_failure(0, Status::crashed, std::string(said, sizeof said - 1)));
  const std::string message = text(store, "SELECT message FROM v_failures");
  EXPECT_EQ(message.substr(0, 5), "said ");
  EXPECT_NE(message.find("died"), std::string::npos);
}

TEST(StoreWrite, ACounterexampleThatIsNotJsonIsKeptAsText) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = a_failure(0, Status::check_failed, "wrong");
  worker::CheckRecord check = a_check(Outcome::falsified);
  check.counterexample_json = "n = 3";
  attempt.records = {check};
  store.finish_attempt(run, attempt);
  EXPECT_EQ(text(store, "SELECT counterexample ->> '$' FROM check_result"), "n = 3");
}

TEST(StoreWrite, ArtifactsKeepEveryByteAndTheirDigest) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  const std::string content("a\0b\xff", 4);
  AttemptRow attempt = an_attempt(0);
  attempt.records.emplace_back(worker::ArtifactRecord{.kind = "log", .media_type = "text/plain", .content = content});
  store.finish_attempt(run, attempt);
  EXPECT_EQ(text(store, "SELECT content FROM artifact"), content);
  EXPECT_EQ(text(store, "SELECT sha256 FROM artifact"), sha256_hex(content));
}

TEST(StoreWrite, AnAttemptEndsOnceAndOnlyAsTheCaseItWasStartedFor) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(2));
  AttemptRow attempt = an_attempt(0);
  attempt.uid = new_uuid7();
  store.attempt_started(run, 0, attempt.uid);
  EXPECT_EQ(text(store, "SELECT status FROM v_attempt"), "running");
  attempt.plan_seq = 1;
  EXPECT_NE(error_of(ErrorKind::internal, [&] { store.finish_attempt(run, attempt); }).find("another case"),
            std::string::npos);
  attempt.plan_seq = 0;
  EXPECT_EQ(store.finish_attempt(run, attempt), attempt.uid);
  EXPECT_NE(error_of(ErrorKind::internal, [&] { store.finish_attempt(run, attempt); }).find("already ended"),
            std::string::npos);
  EXPECT_EQ(count(store, "SELECT count(*) FROM attempt"), 1);
}

TEST(StoreWrite, AnAttemptThatCannotBeWrittenLeavesNothingBehind) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  worker::CheckRecord nonsense = a_check();
  nonsense.fraction_checked = NAN;  // NULL in SQLite, which the schema refuses
  attempt.records.emplace_back(nonsense);
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.finish_attempt(run, attempt); }), "");
  for (const char* table : {"attempt", "attempt_event", "metric", "sample", "series", "check_result"}) {
    EXPECT_EQ(count(store, std::string("SELECT count(*) FROM ") + table), 0) << table;
  }
  store.finish_attempt(run, an_attempt(0));  // and the store still works
}

TEST(StoreWrite, APlannedCaseKnowsItsLastEndAndItsTries) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  std::vector<PlanRow> plan = a_plan(4);
  plan[3].skip_reason = "needs 6 GPUs";
  plan[2] = a_law(2, "toy.law");
  plan[2].implementation.path = "mine.so";
  plan[2].implementation.is_mine = true;
  const RowId run = store.begin_run(a_run(), plan);
  store.finish_attempt(run, a_failure(0, Status::timeout, "10 s"));
  store.finish_attempt(run, an_attempt(0));
  store.attempt_started(run, 1, new_uuid7());
  const std::vector<PlanState> states = store.plan_state(run);
  ASSERT_EQ(states.size(), 4U) << "a case that is skipped is planned, too";
  EXPECT_EQ(states[3].plan.skip_reason, "needs 6 GPUs");
  EXPECT_EQ(states[0].last_status, Status::ok);
  EXPECT_EQ(states[0].attempts, 2);
  EXPECT_EQ(states[1].last_status, std::nullopt) << "begun is not finished";
  EXPECT_EQ(states[1].attempts, 1);
  EXPECT_EQ(states[2].attempts, 0);
  EXPECT_EQ(states[2].plan.law, "toy.law");
  EXPECT_EQ(states[2].plan.task, Task::law);
  EXPECT_TRUE(states[2].plan.implementation.is_mine);
  EXPECT_EQ(states[2].plan.implementation.path, "mine.so");
  EXPECT_EQ(states[0].plan.params, plan[0].params);
  EXPECT_EQ(states[0].plan.case_uid, plan[0].case_uid);
}

TEST(StoreWrite, AHeartbeatThatCannotBeWrittenIsLeftOut) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  AttemptRow attempt = an_attempt(0);
  attempt.uid = new_uuid7();
  store.attempt_started(run, 0, attempt.uid);
  {
    Connection another((folder / "a.db").string(), Connection::Access::read_write, folder / "a.db");
    const Transaction busy(another);
    EXPECT_NO_THROW(store.heartbeat(attempt.uid));
  }
  store.finish_attempt(run, attempt);
  EXPECT_EQ(count(store, "SELECT count(*) FROM attempt_event WHERE status = 'heartbeat'"), 0);
  EXPECT_EQ(text(store, "SELECT status FROM v_attempt"), "ok");
}

// One that is wrong in its middle, after rows of it were written, and one that ended before.
TEST(StoreWrite, OfAttemptsThatWaitEachIsWholeOrNotThereAtAll) {
  const Folder folder;
  Store store = Store::open(folder / "a.db", Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(4));
  std::vector<AttemptRow> waiting{an_attempt(0), an_attempt(1), an_attempt(2), an_attempt(3)};
  waiting[0].uid = new_uuid7();
  waiting[1].uid = new_uuid7();
  worker::CheckRecord nonsense = a_check();
  nonsense.fraction_checked = NAN;  // NULL in SQLite, which the schema refuses
  waiting[1].records.emplace_back(nonsense);
  waiting[3].uid = waiting[0].uid;
  const std::vector<StoredAttempt> stored = store.finish_attempts(run, waiting);
  ASSERT_EQ(stored.size(), 4U);
  EXPECT_FALSE(stored[0].refused);
  ASSERT_TRUE(stored[1].refused);
  EXPECT_EQ(stored[1].refused->kind(), ErrorKind::store);
  EXPECT_FALSE(stored[2].refused);
  ASSERT_TRUE(stored[3].refused);
  EXPECT_NE(std::string(stored[3].refused->what()).find("was started for another case"), std::string::npos);
  EXPECT_EQ(count(store, "SELECT count(*) FROM v_attempt WHERE status = 'ok'"), 2);
  EXPECT_EQ(count(store, "SELECT count(*) FROM attempt"), 2) << "nothing of a refused one is left";
  EXPECT_EQ(count(store, "SELECT count(*) FROM sample"), 6);
  EXPECT_EQ(stored[0].uid, waiting[0].uid);
}

}  // namespace
}  // namespace syslab::store
