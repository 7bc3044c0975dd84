#include <gtest/gtest.h>

#include <chrono>

#include "store/connection.hpp"
#include "store/options.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

class StoreViews : public testing::Test {
 protected:
  StoreViews() : store_(Store::open(folder_ / "a.db", Mode::create)) {}
  RowId run_of(const std::vector<PlanRow>& plan, const std::string& protocol = "quick") {
    RunRow run = a_run();
    run.protocol_json = R"({"name": ")" + protocol + "\"}";
    return store_.begin_run(run, plan);
  }

  Folder folder_;
  Store store_;
};

TEST_F(StoreViews, LatestTakesTheNewestOkAttemptOfEachProtocol) {
  const RowId first = run_of(a_plan(1));
  store_.finish_attempt(first, an_attempt(0, 1.0));
  store_.finish_attempt(first, an_attempt(0, 2.0));
  const RowId second = run_of(a_plan(1));
  store_.finish_attempt(second, a_failure(0, Status::crashed, "signal 11"));
  const RowId other_protocol = run_of(a_plan(1), "kernel");
  store_.finish_attempt(other_protocol, an_attempt(0, 5.0));
  const ResultSet rows = store_.query("SELECT protocol, value FROM v_latest WHERE metric = 'time' ORDER BY protocol");
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(rows.rows[0][0].text, "kernel");
  EXPECT_EQ(rows.rows[0][1].real, 5.0);
  EXPECT_EQ(rows.rows[1][1].real, 2.0) << "the later failure hides nothing";
}

TEST_F(StoreViews, ARunDatedInTheFutureIsNotTheNewest) {
  const auto measured_at = [&](const std::string& now, double value) {
    OpenOptions options = default_options();
    options.now = [now] { return now; };
    Store store = Store::open(folder_ / "a.db", Mode::create, options);
    const RowId run = store.begin_run(a_run(), a_plan(1));
    store.finish_attempt(run, an_attempt(0, value));
    return store.run_uid(run);
  };
  measured_at("2020-01-01T00:00:00.000Z", 1.0);
  EXPECT_EQ(store_.count_future_runs(), 0);
  const std::string wrong = measured_at("2999-01-01T00:00:00.000Z", 2.0);
  EXPECT_EQ(store_.count_future_runs(), 1);
  const std::string last = measured_at("2020-01-02T00:00:00.000Z", 3.0);
  EXPECT_EQ(store_.find_run("latest")->uid, last);
  for (const std::string view : {"v_latest", "v_newest", "v_measured"}) {
    EXPECT_EQ(text(store_, "SELECT run_uid FROM " + view), last) << view;
  }
  EXPECT_EQ(text(store_, "SELECT run_uid FROM v_run ORDER BY run_order LIMIT 1"), wrong);
  EXPECT_EQ(text(store_, "SELECT run_uid FROM v_history WHERE metric = 'time' ORDER BY run_order LIMIT 1"), wrong);
}

TEST_F(StoreViews, WhatDidNotPassIsThereWithBothBoundsAlsoWhenALaterAttemptPassed) {
  const auto compared = [](const std::string& name, Outcome outcome, double error, double bound) {
    worker::CheckRecord check = a_check(outcome);
    check.name = name;
    check.worst_error = error;
    check.tolerance = bound;
    return check;
  };
  AttemptRow wrong = a_failure(0, Status::check_failed, "wrong");
  wrong.records = {compared("reference:out", Outcome::passed, 1e-5, 1e-3),
                   compared("sample:lse", Outcome::falsified, 6e-4, 3.3e-4)};
  store_.finish_attempt(run_of(a_plan(2)), wrong);
  EXPECT_EQ(count(store_, "SELECT passed_later IS NULL FROM v_not_passed"), 1);
  const RowId later = run_of(a_plan(2));
  AttemptRow right = an_attempt(0, 1.0);
  right.records.emplace_back(compared("samples:lse", Outcome::passed, 6e-4, 4.95e-3));
  store_.finish_attempt(later, right);
  store_.finish_attempt(later, a_failure(1, Status::oom, "too large"));
  const ResultSet rows = store_.query("SELECT property, bound, later_bound, passed_later FROM v_not_passed");
  ASSERT_EQ(rows.rows.size(), 1U) << "running out of memory is a finding";
  EXPECT_EQ(rows.rows[0][0].text, "sample:lse");
  EXPECT_EQ(rows.rows[0][1].real, 3.3e-4);
  EXPECT_EQ(rows.rows[0][2].real, 4.95e-3);
  EXPECT_EQ(rows.rows[0][3].type, Cell::Type::integer);
}

TEST_F(StoreViews, AnAttemptThatEndedWithAnErrorHasNoNumbers) {
  AttemptRow broken = an_attempt(0, 1.0);
  broken.status = Status::error;
  store_.finish_attempt(run_of(a_plan(1)), broken);
  const ResultSet rows = store_.query("SELECT time_ms, worst_error, bound, checked_percent, metrics FROM v_measured");
  ASSERT_EQ(rows.rows.size(), 1U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rows.rows[0][i].type, Cell::Type::null) << rows.columns[i];
  EXPECT_EQ(rows.rows[0][4].text, "{}");
}

TEST_F(StoreViews, ACaseInWordsIsWrittenAsItIsTyped) {
  std::vector<PlanRow> plan = a_plan(1);
  plan[0].params = {
      {"segment", 0.0}, {"share", 0.5}, {"causal", true}, {"seq", std::int64_t{64}}, {"model", std::string("tiny")}};
  store_.finish_attempt(run_of(plan), an_attempt(0, 1.0));
  const std::string words = "causal=true model=tiny segment=0 seq=64 share=0.5";
  EXPECT_EQ(store_.query("SELECT case_text FROM v_latest WHERE metric = 'time'").rows.at(0).at(0).text, words);
  const ResultSet axes = store_.query("SELECT value FROM v_param WHERE axis = 'segment'");
  ASSERT_EQ(axes.rows.size(), 1U);
  EXPECT_EQ(axes.rows[0][0].text, "0");
}

TEST_F(StoreViews, TimesUnderAnotherVersionOfTheProtocolsMeetNoOthers) {
  RunRow run = a_run();
  const auto add = [&](const std::string& protocol, double value) {
    run.protocol_json = protocol;
    store_.finish_attempt(store_.begin_run(run, a_plan(1)), an_attempt(0, value));
  };
  add(R"({"name": "kernel", "verify_share": 0.05})", 1.0);
  add(R"({"name": "kernel", "verify_share": 0.3333, "version": 2})", 2.0);
  add(R"({"name": "kernel", "verify_share": 0.3333, "version": 3, "data": "zeros"})", 3.0);
  add(R"({"name": "imported"})", 4.0);  // somebody's own way to measure has no version of ours
  const ResultSet rows = store_.query("SELECT protocol, value FROM v_latest WHERE metric = 'time' ORDER BY value");
  ASSERT_EQ(rows.rows.size(), 4U);
  EXPECT_EQ(rows.rows[0][0].text, "kernel, version 1");
  EXPECT_EQ(rows.rows[1][0].text, "kernel");
  EXPECT_EQ(rows.rows[2][0].text, "kernel, zeros inputs, version 3");
  EXPECT_EQ(rows.rows[3][0].text, "imported");
  const ResultSet history = store_.query("SELECT count(previous_value) FROM v_history WHERE metric = 'time'");
  EXPECT_EQ(history.rows.at(0).at(0).integer, 0) << "none is beside another";
}

TEST_F(StoreViews, ResultsOfUnusualInputsMeetNoOthers) {
  RunRow run = a_run();
  for (const char* protocol :
       {R"({"name": "kernel"})", R"({"name": "kernel", "data": "zeros"})", R"({"name": "kernel", "data": "normal"})"}) {
    run.protocol_json = protocol;
    store_.finish_attempt(store_.begin_run(run, a_plan(1)), an_attempt(0, run.protocol_json.size()));
  }
  const ResultSet rows = store_.query("SELECT protocol, value FROM v_latest WHERE metric = 'time' ORDER BY protocol");
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(rows.rows[0][0].text, "kernel");
  EXPECT_EQ(rows.rows[0][1].real, 36.0) << "the newest of normal inputs, said or not";
  EXPECT_EQ(rows.rows[1][0].text, "kernel, zeros inputs");
  const ResultSet runs = store_.query("SELECT protocol FROM v_run ORDER BY run_id");
  EXPECT_EQ(runs.rows[1][0].text, "kernel, zeros inputs");
}

TEST_F(StoreViews, SpeedupIsAgainstReferenceAndPeerAndOnlyForCheckedRows) {
  std::vector<PlanRow> plan{a_case(0, 64, "oracle", "reference"),
                            a_case(1, 64, "torch", "peer"),
                            a_case(2, 64, "fast"),
                            a_case(3, 64, "wrong"),
                            a_case(4, 64, "unchecked"),
                            a_case(5, 65, "fast")};
  const RowId run = run_of(plan);
  AttemptRow oracle = an_attempt(0, 8.0);
  oracle.records.erase(oracle.records.begin());  // nothing to check it against
  store_.finish_attempt(run, oracle);
  store_.finish_attempt(run, an_attempt(1, 2.0));
  store_.finish_attempt(run, an_attempt(2, 1.0));
  AttemptRow wrong = an_attempt(3, 0.1);
  wrong.status = Status::check_failed;
  wrong.records[0] = a_check(Outcome::falsified);
  store_.finish_attempt(run, wrong);
  AttemptRow unchecked = an_attempt(4, 0.1);
  unchecked.records.erase(unchecked.records.begin());
  store_.finish_attempt(run, unchecked);
  store_.finish_attempt(run, an_attempt(5, 1.0));

  const ResultSet rows = store_.query(
      "SELECT implementation, baseline, speedup, speedup_low, speedup_high, same_run FROM v_speedup "
      "ORDER BY implementation, baseline");
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_EQ(rows.rows[0][0].text, "fast");
  EXPECT_EQ(rows.rows[0][1].text, "oracle");
  EXPECT_DOUBLE_EQ(rows.rows[0][2].real, 8.0);
  EXPECT_EQ(rows.rows[1][1].text, "torch");
  EXPECT_DOUBLE_EQ(rows.rows[1][2].real, 2.0);
  EXPECT_DOUBLE_EQ(rows.rows[1][3].real, 1.8 / 1.1);
  EXPECT_DOUBLE_EQ(rows.rows[1][4].real, 2.2 / 0.9);
  EXPECT_EQ(rows.rows[1][5].integer, 1);
  EXPECT_EQ(rows.rows[2][0].text, "torch");
  EXPECT_DOUBLE_EQ(rows.rows[2][2].real, 4.0);
}

TEST_F(StoreViews, OtherRolesAreNoBaselinesOfSpeedups) {
  const RowId run = run_of({a_case(0, 64, "plain", "naive"), a_case(1, 64, "by_hand", "literal"), a_case(2, 64)});
  for (int seq = 0; seq < 3; ++seq) store_.finish_attempt(run, an_attempt(seq, 1.0));
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_speedup"), 0);
}

TEST_F(StoreViews, ASpeedupIsNeverTakenAcrossMachinesProtocolsOrCases) {
  RunRow here = a_run();
  const RowId run = store_.begin_run(here, {a_case(0, 64, "torch", "peer")});
  store_.finish_attempt(run, an_attempt(0, 2.0));
  RunRow elsewhere = a_run();
  elsewhere.comparability_key = "another machine";
  store_.finish_attempt(store_.begin_run(elsewhere, {a_case(0, 64, "fast")}), an_attempt(0, 1.0));
  store_.finish_attempt(run_of({a_case(0, 64, "fast")}, "kernel"), an_attempt(0, 1.0));
  store_.finish_attempt(run_of({a_case(0, 65, "fast")}), an_attempt(0, 1.0));
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_speedup"), 0);
  store_.finish_attempt(run_of({a_case(0, 64, "fast")}), an_attempt(0, 1.0));
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_speedup"), 1);
  EXPECT_EQ(count(store_, "SELECT same_run FROM v_speedup"), 0);
}

// The row of all ranks together says what a step took; each rank's own time, shorter or longer, is not that.
TEST_F(StoreViews, ATimeOfAllRanksTogetherStandsAlone) {
  const auto with_ranks = [](int seq, std::optional<double> of_all) {
    AttemptRow attempt = an_attempt(seq, 1.0);
    for (int rank = 1; rank < 3; ++rank) {
      worker::MetricRecord own = a_time(1.0 + rank);
      own.rank = rank;
      attempt.records.push_back(own);
    }
    worker::MetricRecord all{.name = "time", .unit = "s", .value = of_all, .n = 7, .rank = worker::kAllRanks};
    if (!of_all) all.note = "the ranks took different numbers of samples";
    attempt.records.push_back(all);
    return attempt;
  };
  const RowId run = run_of(
      {a_case(0, 64, "apart"), a_case(1, 64, "together"), a_case(2, 64, "single"), a_case(3, 64, "torch", "peer")});
  store_.finish_attempt(run, with_ranks(0, std::nullopt));
  store_.finish_attempt(run, with_ranks(1, 2.5));
  store_.finish_attempt(run, an_attempt(2, 4.0));
  store_.finish_attempt(run, with_ranks(3, 5.0));
  const ResultSet rows =
      store_.query("SELECT implementation, time_ms, low_ms, n FROM v_measured ORDER BY implementation");
  ASSERT_EQ(rows.rows.size(), 4U);
  EXPECT_EQ(rows.rows[0][1].type, Cell::Type::null) << "ranks that did not keep step have no time of a step";
  EXPECT_EQ(rows.rows[0][2].type, Cell::Type::null);
  EXPECT_EQ(rows.rows[1][1].real, 4000.0);
  EXPECT_EQ(rows.rows[2][1].real, 2500.0) << "not 3000, the slowest rank's median";
  EXPECT_EQ(rows.rows[2][2].type, Cell::Type::null) << "no other row's interval";
  EXPECT_EQ(rows.rows[2][3].integer, 7);
  EXPECT_EQ(rows.rows[3][1].real, 5000.0);

  const ResultSet by_name = store_.query(
      "SELECT metrics ->> '$.time' FROM v_measured WHERE implementation <> 'torch' ORDER BY implementation");
  ASSERT_EQ(by_name.rows.size(), 3U);
  EXPECT_EQ(by_name.rows[0][0].type, Cell::Type::null) << "no rank's own stands in";
  EXPECT_EQ(by_name.rows[1][0].real, 4.0);
  EXPECT_EQ(by_name.rows[2][0].real, 2.5);

  const ResultSet speeds = store_.query("SELECT implementation, speedup FROM v_speedup ORDER BY implementation");
  ASSERT_EQ(speeds.rows.size(), 2U) << "`apart` has none";
  EXPECT_EQ(speeds.rows[0][0].text, "single");
  EXPECT_DOUBLE_EQ(speeds.rows[0][1].real, 1.25);
  EXPECT_DOUBLE_EQ(speeds.rows[1][1].real, 2.0);
}

TEST_F(StoreViews, FailuresSayWhyAndWhetherALaterTryEnded) {
  const RowId run = run_of(a_plan(3));
  store_.finish_attempt(run, a_failure(0, Status::timeout, "over 10 s"));
  store_.finish_attempt(run, an_attempt(0));
  AttemptRow wrong = a_failure(1, Status::check_failed, "out is wrong");
  worker::CheckRecord check = a_check(Outcome::falsified);
  check.message = "out[3]: found 1, expected 2";
  wrong.records = {check};
  store_.finish_attempt(run, wrong);
  store_.finish_attempt(run, a_failure(2, Status::skipped, "needs a GPU"));
  const ResultSet rows =
      store_.query("SELECT status, message, first_failed_check, is_last FROM v_failures ORDER BY plan_seq");
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(rows.rows[0][0].text, "timeout");
  EXPECT_EQ(rows.rows[0][1].text, "over 10 s");
  EXPECT_EQ(rows.rows[0][3].integer, 0);
  EXPECT_EQ(rows.rows[1][2].text, "reference:out: out[3]: found 1, expected 2");
  EXPECT_EQ(rows.rows[1][3].integer, 1);
}

TEST_F(StoreViews, CoverageSaysNotRunWhereALawWasNeverReached) {
  const RowId run = run_of({a_law(0, "toy.a"), a_law(1, "toy.b"), a_law(2, "toy.a", "other")});
  AttemptRow passed = an_attempt(0);
  worker::CheckRecord check = a_check(Outcome::passed);
  check.name = "toy.a";
  check.contract = Contract::full;
  check.cases_run = 100;
  passed.records = {check};
  store_.finish_attempt(run, passed);
  AttemptRow unreached = a_failure(1, Status::crashed, "signal 6");
  store_.finish_attempt(run, unreached);
  // Planned again later and not reached: the older finding stands.
  run_of({a_law(0, "toy.a")});
  const ResultSet rows =
      store_.query("SELECT implementation, law, contract, outcome, cases_run FROM v_coverage ORDER BY 1, 2");
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_EQ(rows.rows[0][0].text, "other");
  EXPECT_EQ(rows.rows[0][3].text, "not_run");
  EXPECT_EQ(rows.rows[1][1].text, "toy.a");
  EXPECT_EQ(rows.rows[1][2].text, "full");
  EXPECT_EQ(rows.rows[1][3].text, "passed");
  EXPECT_EQ(rows.rows[1][4].integer, 100);
  EXPECT_EQ(rows.rows[2][3].text, "not_run");
}

TEST_F(StoreViews, HistoryPutsEachValueBesideTheOneBefore) {
  for (const double seconds : {1.0, 2.0, 1.5}) store_.finish_attempt(run_of(a_plan(1)), an_attempt(0, seconds));
  const ResultSet rows =
      store_.query("SELECT value, previous_value, ratio_to_previous FROM v_history ORDER BY attempt_uid");
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_EQ(rows.rows[0][1].type, Cell::Type::null);
  EXPECT_EQ(rows.rows[1][1].real, 1.0);
  EXPECT_EQ(rows.rows[2][2].real, 0.75);
}

TEST_F(StoreViews, ARunCountsWhatIsDoneAndWhatIsMissing) {
  const RowId run = run_of(a_plan(8));
  store_.finish_attempt(run, a_failure(0, Status::timeout, ""));
  store_.finish_attempt(run, an_attempt(0));
  store_.finish_attempt(run, a_failure(1, Status::oom, ""));
  store_.finish_attempt(run, a_failure(2, Status::skipped, ""));
  store_.attempt_started(run, 3, new_uuid7());
  store_.finish_attempt(run, a_failure(5, Status::crashed, ""));
  store_.finish_attempt(run, a_failure(6, Status::aborted, ""));
  store_.finish_attempt(run, a_failure(7, Status::check_failed, ""));
  const ResultSet row = store_.query("SELECT planned, ok, not_asked, oom, failed, missing FROM v_run");
  const std::vector<std::int64_t> expected{8, 1, 1, 1, 2, 3};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(row.rows[0][i].integer, expected[i]) << row.columns[i];
}

TEST_F(StoreViews, MeasuredSetsEachCaseBesideNaiveAndTheFastestPeer) {
  const std::vector<PlanRow> plan{a_case(0, 64, "plain", "naive"), a_case(1, 64, "torch", "peer"),
                                  a_case(2, 64, "cublas", "peer"), a_case(3, 64, "fast"),
                                  a_case(4, 64, "wrong"),          a_case(5, 65, "fast")};
  const RowId run = run_of(plan);
  store_.finish_attempt(run, an_attempt(0, 8.0));
  store_.finish_attempt(run, an_attempt(1, 2.0));
  store_.finish_attempt(run, an_attempt(2, 4.0));
  store_.finish_attempt(run, an_attempt(3, 1.0));
  AttemptRow wrong = an_attempt(4, 0.1);
  wrong.status = Status::check_failed;
  wrong.records[0] = a_check(Outcome::falsified);
  wrong.records.emplace_back(worker::MetricRecord{.name = "gbps", .unit = "GB/s", .value = 9.0});
  wrong.records.emplace_back(worker::MetricRecord{.name = "state_bytes", .unit = "B", .value = 64.0});
  store_.finish_attempt(run, wrong);
  store_.finish_attempt(run, an_attempt(5, 1.0));
  const ResultSet rows = store_.query(
      "SELECT implementation, vs_naive, peer, vs_peer, time_ms, is_good, vs_naive_low, vs_naive_high, vs_peer_low, "
      "vs_peer_high "
      "FROM v_measured "
      "ORDER BY params ->> '$.size', row_order");
  ASSERT_EQ(rows.rows.size(), 6U);
  EXPECT_EQ(rows.rows[0][0].text, "plain") << "by its role, whatever its name";
  EXPECT_EQ(rows.rows[0][1].real, 1.0);
  EXPECT_EQ(rows.rows[2][0].text, "fast") << "naive, then the others by name";
  EXPECT_EQ(rows.rows[2][1].real, 8.0);
  EXPECT_EQ(rows.rows[2][2].text, "torch") << "of two peers the faster";
  EXPECT_EQ(rows.rows[2][3].real, 2.0);
  EXPECT_EQ(rows.rows[2][4].real, 1e3);
  EXPECT_EQ(rows.rows[4][0].text, "wrong");
  EXPECT_EQ(rows.rows[4][1].type, Cell::Type::null) << "a wrong result has no speed";
  EXPECT_EQ(rows.rows[4][4].type, Cell::Type::null) << "nor a time";
  EXPECT_EQ(rows.rows[4][5].integer, 0);
  EXPECT_EQ(text(store_, "SELECT metrics FROM v_measured WHERE implementation = 'wrong'"), R"({"state_bytes":64.0})");
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_measured WHERE implementation = 'wrong' AND (low_ms OR n OR gbps)"),
            0);
  EXPECT_EQ(rows.rows[5][1].type, Cell::Type::null) << "another case";
  // Times have intervals of a tenth: both at their worst.
  EXPECT_DOUBLE_EQ(rows.rows[2][6].real, 8 * 0.9 / 1.1);
  EXPECT_DOUBLE_EQ(rows.rows[2][7].real, 8 * 1.1 / 0.9);
  EXPECT_DOUBLE_EQ(rows.rows[2][8].real, 2 * 0.9 / 1.1);
  EXPECT_DOUBLE_EQ(rows.rows[2][9].real, 2 * 1.1 / 0.9);
  EXPECT_EQ(rows.rows[0][6].type, Cell::Type::null) << "naive beside itself";
  EXPECT_EQ(rows.rows[3][0].text, "torch");
  EXPECT_EQ(rows.rows[3][3].real, 1.0);
  EXPECT_EQ(rows.rows[3][8].type, Cell::Type::null) << "the fastest peer beside itself";
  EXPECT_EQ(rows.rows[1][3].real, 0.5) << "the other peer";
  EXPECT_DOUBLE_EQ(rows.rows[1][8].real, 0.5 * 0.9 / 1.1);
}

TEST_F(StoreViews, CeilingIsTheBestBeyondTheCachesAndFromSize1024OnNewestOfEachCase) {
  const auto with_params = [](std::int64_t seq, std::string experiment, Params params) {
    PlanRow row = a_case(seq, seq, "ours");
    row.experiment = std::move(experiment);
    row.params = std::move(params);
    row.case_uid = case_uid(row.experiment, row.version, row.params);
    return row;
  };
  const auto reached = [](std::int64_t seq, const char* metric, double value) {
    AttemptRow attempt = an_attempt(seq, 1.0);
    attempt.records.emplace_back(worker::MetricRecord{.name = metric, .unit = "x", .value = value});
    attempt.facts_json = R"({"last_level_cache_bytes": 1000})";
    return attempt;
  };
  const auto copy_of = [&](std::int64_t seq, std::int64_t bytes) {
    return with_params(seq, "ceiling_copy", {{"bytes", bytes}});
  };
  const auto product_of = [&](std::int64_t seq, std::int64_t size, const char* dtype) {
    return with_params(seq, "ceiling_gemm", {{"size", size}, {"dtype", std::string(dtype)}});
  };
  const std::vector<PlanRow> plan{copy_of(0, 3999),
                                  copy_of(1, 4000),
                                  copy_of(2, 8000),
                                  product_of(3, 512, "fp32"),
                                  product_of(4, 1024, "fp32"),
                                  product_of(5, 1024, "fp64")};
  const RowId old = run_of(plan, "kernel");
  store_.finish_attempt(run_of(plan), reached(4, "tflops", 3.0));
  store_.finish_attempt(old, reached(1, "gbps", 99.0));
  const RowId run = run_of(plan, "kernel");
  store_.finish_attempt(run, reached(0, "gbps", 50.0));
  store_.finish_attempt(run, reached(1, "gbps", 20.0));
  store_.finish_attempt(run, reached(2, "gbps", 18.0));
  store_.finish_attempt(run, reached(3, "tflops", 9.0));
  store_.finish_attempt(run, reached(4, "tflops", 2.0));
  AttemptRow wrong = reached(5, "tflops", 7.0);
  wrong.records[0] = a_check(Outcome::falsified);
  wrong.status = Status::check_failed;
  store_.finish_attempt(run, wrong);
  const ResultSet rows = store_.query("SELECT metric, dtype, value FROM v_ceiling ORDER BY metric, dtype");
  ASSERT_EQ(rows.rows.size(), 2U) << "a wrong product is no ceiling";
  EXPECT_EQ(rows.rows[0][2].real, 20.0) << "in cache it was faster, and an older result does not count";
  EXPECT_EQ(rows.rows[1][1].text, "fp32");
  EXPECT_EQ(rows.rows[1][2].real, 2.0) << "neither a small product nor a quick look is a ceiling";
}

TEST_F(StoreViews, FiftyThousandResultsAreReadInWellUnderASecondEach) {
  // 500 cases measured in 10 runs, 10 metrics each.
  std::vector<PlanRow> plan;
  for (int i = 0; i < 500; ++i)
    plan.push_back(a_case(i, i / 2, i % 2 == 0 ? "ours" : "torch", i % 2 == 0 ? "" : "peer"));
  for (int r = 0; r < 10; ++r) {
    const RowId run = run_of(plan);
    for (int i = 0; i < 500; ++i) {
      AttemptRow attempt = an_attempt(i, 1e-3 * (i + 1));
      for (int m = 0; m < 9; ++m) {
        attempt.records.emplace_back(worker::MetricRecord{.name = "m" + std::to_string(m), .unit = "1", .value = 1.0});
      }
      store_.finish_attempt(run, attempt);
    }
  }
  EXPECT_EQ(count(store_, "SELECT count(*) FROM metric"), 50'000);
  // The correlated form of v_latest took 25 s on as many rows; the bar is loose for slow machines.
  for (const char* sql :
       {"SELECT count(*), sum(value) FROM v_latest", "SELECT count(*), sum(speedup) FROM v_speedup",
        "SELECT count(*), sum(value) FROM v_history", "SELECT sum(planned) FROM v_run", "SELECT count(*) FROM v_newest",
        "SELECT count(vs_peer) FROM v_measured", "SELECT count(*) FROM v_coverage", "SELECT count(*) FROM v_failures",
        "SELECT count(*) FROM v_properties"}) {
    const auto begin = std::chrono::steady_clock::now();
    store_.query(sql);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    RecordProperty(sql, std::to_string(took.count()));
    std::printf("%6.0f ms  %s\n", 1e3 * took.count(), sql);
    EXPECT_LT(took.count(), 5.0) << sql;
  }
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_latest"), 5000);
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_speedup"), 250);
}

}  // namespace
}  // namespace syslab::store
