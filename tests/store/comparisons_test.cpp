// Comparisons, pins and claims: what version 2 of the schema brought.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>

#include "store/connection.hpp"
#include "store/options.hpp"
#include "tests/store/dump.hpp"

namespace syslab::store {
namespace {

using namespace test;

class StoreComparisons : public testing::Test {
 protected:
  StoreComparisons() : store_(Store::open(folder_ / "a.db", Mode::create)) {
    run_ = store_.begin_run(a_run(), {a_case(0, 64, "theirs"), a_case(1, 64, "ours")});
    for (int seq = 0; seq < 2; ++seq) attempts_.push_back(store_.finish_attempt(run_, an_attempt(seq)));
  }

  ComparisonRow a_comparison() const {
    ComparisonRow row;
    row.experiment = "toy";
    row.side_a_json = R"({"label": "theirs"})";
    row.side_b_json = R"({"label": "ours"})";
    row.launches = 2;
    row.block_count = 2;
    row.log_ratio = 0.1;
    row.low = 0.05;
    row.high = 0.15;
    row.p_value = 0.01;
    row.verdict = "slower";
    // Blocks are counted apart in each launch.
    row.blocks = {{0, 0, "ABBA", {1, 1.1, 1.1, 1}, 0.1}, {1, 0, "BAAB", {1.1, 1, 1, 1.1}, 0.1}};
    row.attempts = {{'A', 0, attempts_[0]}, {'B', 0, attempts_[1]}};
    return row;
  }

  Folder folder_;
  Store store_;
  RowId run_ = 0;
  std::vector<std::string> attempts_;
};

TEST_F(StoreComparisons, AreReadBackWithTheirBlocksAndAttempts) {
  store_.add_comparison(run_, a_comparison());
  EXPECT_EQ(text(store_, "SELECT label_a || '/' || label_b || '/' || verdict FROM v_comparison"), "theirs/ours/slower");
  EXPECT_NEAR(store_.query("SELECT change_high FROM v_comparison").rows[0][0].real, std::exp(0.15) - 1, 1e-12);
  EXPECT_EQ(count(store_, "SELECT count(*) FROM comparison_block WHERE seconds_2 IS NOT NULL"), 2);
  EXPECT_EQ(count(store_,
                  "SELECT count(*) FROM comparison_attempt l JOIN v_attempt t USING (attempt_id) "
                  "WHERE (l.side, t.implementation) IN (VALUES ('A', 'theirs'), ('B', 'ours'))"),
            2);
}

TEST_F(StoreComparisons, TheVerdictOfTheSweepOutweighsTheComparisonsOwn) {
  const std::string uid = store_.add_comparison(run_, a_comparison());
  store_.add_sweep_verdicts(
      {{.comparison_uid = uid, .tests = 9, .q_value = 0.09, .verdict = "unclear", .reason = "one of nine"}});
  EXPECT_EQ(text(store_, "SELECT verdict || ': ' || reason FROM v_comparison"), "unclear: one of nine");
}

// A program's rate has its unit in its attempt.
TEST_F(StoreComparisons, HaveTheUnitOfARateOnlyIfProgramsPrintOne) {
  store_.add_comparison(run_, a_comparison());
  EXPECT_EQ(count(store_, "SELECT count(*) FROM v_comparison WHERE rate_unit IS NULL"), 1);
  AttemptRow attempt = an_attempt(1);
  attempt.records = {worker::MetricRecord{.name = "time", .unit = "s", .value = 0.01},
                     worker::MetricRecord{.name = "rate", .unit = "tokens/s", .value = 100}};
  ComparisonRow row = a_comparison();
  row.attempts = {{'B', 0, store_.finish_attempt(run_, attempt)}};
  row.experiment = "of another kind";
  store_.add_comparison(run_, row);
  row.experiment = "command";
  store_.add_comparison(run_, row);
  EXPECT_EQ(text(store_, "SELECT group_concat(experiment || ' ' || rate_unit) FROM v_comparison"), "command tokens/s");
}

TEST_F(StoreComparisons, AreNotWrittenHalf) {
  ComparisonRow row = a_comparison();
  row.attempts.push_back({'B', 1, "no-such-attempt"});
  EXPECT_NE(error_of(ErrorKind::internal, [&] { store_.add_comparison(run_, row); }), "");
  EXPECT_EQ(count(store_, "SELECT count(*) FROM comparison"), 0);
  EXPECT_EQ(count(store_, "SELECT count(*) FROM comparison_block"), 0);
}

TEST_F(StoreComparisons, ArriveWithAMergeEvenWhenTheirAttemptsAreThereAlready) {
  Store other = Store::open(folder_ / "b.db", Mode::create);
  other.merge(folder_ / "a.db", {.trusted = true});
  const std::string uid = store_.add_comparison(run_, a_comparison());
  store_.add_sweep_verdicts({{.comparison_uid = uid, .tests = 1, .q_value = 0.01, .verdict = "slower", .reason = ""}});
  store_.add_pin("good", store_.run_uid(run_), "");
  other.merge(folder_ / "a.db", {.trusted = true});
  EXPECT_EQ(dump(other), dump(store_));
  other.merge(folder_ / "a.db", {.trusted = true});
  EXPECT_EQ(dump(other), dump(store_));
}

TEST_F(StoreComparisons, ClaimsStayWithTheirFileAndAnArrivalIsNotedWhereItHappens) {
  EXPECT_EQ(store_.claim_run(run_), std::nullopt);
  {
    Connection db((folder_ / "a.db").string(), Connection::Access::read_write, folder_ / "a.db");
    db.execute("INSERT INTO arrival SELECT uid, '2026-05-01', 'merge', 'x.db', 0 FROM run");
  }
  Store other = Store::open(folder_ / "b.db", Mode::create);
  other.merge(folder_ / "a.db");
  EXPECT_EQ(count(other, "SELECT count(*) FROM run"), 1);
  EXPECT_EQ(count(other, "SELECT count(*) FROM run_claim"), 0);
  EXPECT_EQ(count(other, "SELECT count(*) FROM arrival WHERE NOT trusted"), 1);
  EXPECT_EQ(count(store_, "SELECT count(*) FROM arrival WHERE source <> 'x.db'"), 0);
}

// Whom the other file trusts is its own affair: without our word a run arrives untrusted, and our word does not make
// good what the other has from somebody it did not trust.
TEST_F(StoreComparisons, ARunIsTrustedIfWeSaySoAndTheOtherFileDoesNotSayOtherwise) {
  for (const bool theirs : {false, true}) {
    const auto relayed = folder_ / (theirs ? "trusting.db" : "doubting.db");
    Store::open(relayed, Mode::create).merge(folder_ / "a.db", {.trusted = theirs});
    for (const bool ours : {false, true}) {
      Store mine = Store::open(relayed.string() + (ours ? ".trusted" : ".doubted"), Mode::create);
      mine.merge(relayed, {.trusted = ours});
      EXPECT_EQ(count(mine, "SELECT trusted FROM arrival"), theirs && ours ? 1 : 0) << theirs << ours;
    }
  }
}

TEST_F(StoreComparisons, PinsAreNeverMoved) {
  const RowId second = store_.begin_run(a_run(), a_plan(1));
  store_.add_pin("good", store_.run_uid(run_), "first");
  ::usleep(2000);  // pins of one name differ in their millisecond
  store_.add_pin("good", store_.run_uid(second), "");
  EXPECT_EQ(store_.find_pin("good")->run_uid, store_.run_uid(second));
  ASSERT_EQ(store_.pins().size(), 2U);
  EXPECT_EQ(store_.pins()[1].note, "first");
  EXPECT_EQ(store_.find_pin("goo"), std::nullopt);
}

// --- claims ---------------------------------------------------------------------------------------------------------

// Claims from a process of its own; its exit status is 0 if it got it, 1 if it was refused. Who got it is at work until
// all have tried, so that the others meet a living owner: each has the pipe `trying`, if there is one, open to write
// for so long.
pid_t claim_elsewhere(const fs::path& path, const std::string& run_uid, const std::array<int, 2>& trying = {-1, -1}) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 9;
    try {
      Store store = Store::open(path, Mode::read_write);
      code = store.claim_run(store.find_run(run_uid)->id) ? 1 : 0;
      ::close(trying[1]);
      char nothing = 0;
      if (code == 0 && trying[0] >= 0 && ::read(trying[0], &nothing, 1) != 0) code = 8;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    ::_exit(code);
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(StoreComparisons, OfManyThatClaimARunAtOnceOneGetsIt) {
  std::array<int, 2> trying{};
  ASSERT_EQ(::pipe(trying.data()), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) children.push_back(claim_elsewhere(folder_ / "a.db", store_.run_uid(run_), trying));
  ::close(trying[1]);
  int got = 0;
  for (const pid_t child : children) {
    const int status = status_of(child);
    EXPECT_TRUE(status == 0 || status == 1) << status;
    got += status == 0 ? 1 : 0;
  }
  ::close(trying[0]);
  EXPECT_EQ(got, 1);
  EXPECT_EQ(store_.claim_run(run_), std::nullopt) << "they are gone, and so are their claims";
}

TEST_F(StoreComparisons, AClaimLastsUntilItIsReleased) {
  EXPECT_EQ(store_.claim_run(run_), std::nullopt);
  EXPECT_EQ(store_.claim_run(run_), std::nullopt) << "by the same process again";
  EXPECT_EQ(status_of(claim_elsewhere(folder_ / "a.db", store_.run_uid(run_))), 1);
  store_.release_run(run_);
  EXPECT_EQ(status_of(claim_elsewhere(folder_ / "a.db", store_.run_uid(run_))), 0);
}

TEST_F(StoreComparisons, AnOwnerOutOfSightIsGoneAfterAMinuteOfSilence) {
  std::string now = "2026-05-01T12:00:00.000Z";
  OpenOptions elsewhere = default_options();
  elsewhere.writer = {.host = "far", .boot_id = "b", .pid_namespace = "p", .pid = 7, .start_ticks = 1};
  elsewhere.now = [&] { return now; };
  OpenOptions here = default_options();
  here.now = [&] { return now; };
  Store far = Store::open(folder_ / "a.db", Mode::read_write, elsewhere);
  Store near = Store::open(folder_ / "a.db", Mode::read_write, here);
  EXPECT_EQ(far.claim_run(run_), std::nullopt);
  const std::string attempt = new_uuid7();
  far.attempt_started(run_, 0, attempt);
  now = "2026-05-01T12:00:50.000Z";
  far.heartbeat(attempt);
  now = "2026-05-01T12:01:40.000Z";
  ASSERT_TRUE(near.claim_run(run_).has_value()) << "the heartbeat renewed it";
  EXPECT_NE(near.claim_run(run_)->find("process 7 on 'far'"), std::string::npos);
  now = "2026-05-01T12:01:51.000Z";
  EXPECT_EQ(near.claim_run(run_), std::nullopt);
}

}  // namespace
}  // namespace syslab::store
