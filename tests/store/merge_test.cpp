#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "store/connection.hpp"
#include "store/options.hpp"
#include "store/write.hpp"
#include "tests/store/dump.hpp"
#include "tests/store/recorded_files.hpp"

namespace syslab::store {
namespace {

using namespace test;

// A run with one attempt of each kind of finding.
void fill(const fs::path& path, int attempts = 2) {
  Store store = Store::open(path, Mode::create);
  std::vector<PlanRow> plan = a_plan(attempts);
  plan.push_back(a_law(attempts, "toy.law"));
  const RowId run = store.begin_run(a_run(), plan);
  for (int seq = 0; seq < attempts; ++seq) {
    AttemptRow attempt = an_attempt(seq, 1e-3 * (seq + 1));
    attempt.records.emplace_back(worker::ArtifactRecord{.kind = "log", .media_type = "text/plain", .content = "hello"});
    attempt.records.emplace_back(
        worker::MemoryEventRecord{.t_ns = 5, .delta_bytes = 64, .tag = "q", .category = "input"});
    store.finish_attempt(run, attempt);
  }
  store.finish_attempt(run, a_failure(attempts, Status::crashed, "signal 11"));
}

// Rows in the tables that no verb writes yet.
void fill_the_rest(const fs::path& path) {
  Connection db(path.string(), Connection::Access::read_write, path);
  db.checkpoint_on_close();
  db.execute(R"(
INSERT INTO pin VALUES ('baseline', '2026-05-01T12:00:00.000Z', (SELECT uid FROM run), NULL);
INSERT INTO run_mac SELECT uid, x'0123' FROM run;
INSERT INTO submission (uid, at, author, digest, language) VALUES ('sub', '2026-05-01T12:00:00.000Z', 'ada', 'dd', 'CUDA');
INSERT INTO submission_implementation SELECT s.id, i.id FROM submission s, implementation i;
INSERT INTO run_submission SELECT r.id, s.id FROM run r, submission s;
INSERT INTO comparison (uid, run_id, experiment, params, metric, side_a, side_b, blocks, log_ratio, ci_low, ci_high, verdict)
  SELECT 'cmp', id, 'toy', '{}', 'time', '{}', '{}', 2, 0.1, 0.05, 0.15, 'slower' FROM run;
INSERT INTO comparison_block SELECT id, 0, 0, 'ABBA', 1, 1.1, 1.1, 1, 0.1 FROM comparison;
INSERT INTO comparison_block SELECT id, 1, 0, 'BAAB', 1.1, 1, 1, 1.1, 0.1 FROM comparison;
INSERT INTO comparison_sweep SELECT id, 3, 0.2, 'unclear', 'one of three' FROM comparison;
INSERT INTO comparison_attempt SELECT c.id, 'A', 0, a.id FROM comparison c, attempt a;
INSERT INTO kernel_stat SELECT min(id), 0, 'forward', 'flash', 3, 300, 90, 110 FROM attempt;
INSERT INTO span SELECT min(id), 0, 0, 'host', 'step', 'phase', 10, 20 FROM attempt;
)");
}

// As whoever measured both does.
MergeCounts merge(const fs::path& into, const fs::path& from) {
  return Store::open(into, Mode::create).merge(from, {.trusted = true});
}

std::string dump_of(const fs::path& path) { return dump(Store::open(path, Mode::read_only)); }

TEST(StoreMerge, EveryTableArrivesWhole) {
  const Folder folder;
  fill(folder / "a.db");
  fill_the_rest(folder / "a.db");
  {
    const Store source = Store::open(folder / "a.db", Mode::read_only);
    for (const std::string& table : data_tables(source)) {
      EXPECT_GT(count(source, "SELECT count(*) FROM " + table), 0) << "this test must see a row of " << table;
    }
  }
  const std::string before = bytes_of(folder / "a.db");
  const MergeCounts counts = merge(folder / "all.db", folder / "a.db");
  EXPECT_EQ(counts.runs, 1);
  EXPECT_EQ(counts.attempts, 3);
  EXPECT_EQ(counts.already_there, 0);
  EXPECT_EQ(dump_of(folder / "all.db"), dump_of(folder / "a.db"));
  EXPECT_TRUE(bytes_of(folder / "a.db") == before) << "the other file was changed";
}

// A journal that names a super-journal is refused, so none of ours may.
TEST(StoreMerge, WithRollbackJournalsNoSuperJournalIsMade) {
  const Folder folder;
  fill(folder / "a.db");
  OpenOptions options = default_options();
  options.network_file_system = [](const fs::path&) { return std::optional<std::string>("nfs"); };
  RecordedFiles files;
  {
    Store all = Store::open(folder / "all.db", Mode::create, options);
    ASSERT_EQ(all.journal_mode(), "delete");
    EXPECT_EQ(all.merge(folder / "a.db", {.trusted = true}).attempts, 3);
  }
  int journals = 0;
  for (const FileEvent& event : files.history().events) {
    if (event.file.find("-journal") != std::string::npos) ++journals;
    EXPECT_EQ(event.file.find("-mj"), std::string::npos) << event.file;  // SQLite's name for one
    EXPECT_FALSE(event.bytes.ends_with("\x20\xa1\x63\xd7")) << event.file;
  }
  EXPECT_GT(journals, 0);
}

TEST(StoreMerge, MergingAgainChangesNothing) {
  const Folder folder;
  fill(folder / "a.db");
  fill_the_rest(folder / "a.db");
  fill(folder / "b.db", 4);
  merge(folder / "all.db", folder / "a.db");
  merge(folder / "all.db", folder / "b.db");
  const std::string once = dump_of(folder / "all.db");
  const MergeCounts again = merge(folder / "all.db", folder / "a.db");
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(again.attempts, 0);
  EXPECT_EQ(again.already_there, 3);
  EXPECT_EQ(dump_of(folder / "all.db"), once);
}

TEST(StoreMerge, SharedFactsUnite) {
  const Folder folder;
  fill(folder / "a.db");
  fill(folder / "b.db");
  merge(folder / "a.db", folder / "b.db");
  const Store store = Store::open(folder / "a.db", Mode::read_only);
  EXPECT_EQ(count(store, "SELECT count(*) FROM run"), 2);
  EXPECT_EQ(count(store, "SELECT count(*) FROM environment"), 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM build"), 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM implementation"), 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM case_def"), 3);
  EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(store.query("PRAGMA foreign_key_list(metric)").rows.size(), 1U);
}

// A run that was copied while it went on, and continued in both copies.
class SplitRun : public testing::Test {
 protected:
  SplitRun() {
    Store store = Store::open(folder_ / "a.db", Mode::create);
    const RowId run = store.begin_run(a_run(), a_plan(3));
    store.finish_attempt(run, an_attempt(0));
    open_attempt_ = new_uuid7();
    store.attempt_started(run, 1, open_attempt_);
    copy_store();
  }
  void copy_store() {
    Connection((folder_ / "a.db").string(), Connection::Access::read_write, folder_ / "a.db")
        .back_up_to(folder_ / "b.db");
  }
  void finish(const fs::path& path, int seq, const std::string& uid = "") {
    Store store = Store::open(path, Mode::read_write);
    AttemptRow attempt = an_attempt(seq);
    attempt.uid = uid;
    store.finish_attempt(store.find_run("latest")->id, attempt);
  }

  Folder folder_;
  std::string open_attempt_;
};

TEST_F(SplitRun, PartsOfOneRunUnite) {
  finish(folder_ / "a.db", 1, open_attempt_);
  finish(folder_ / "b.db", 2);
  finish(folder_ / "b.db", 2);
  const MergeCounts counts = merge(folder_ / "a.db", folder_ / "b.db");
  EXPECT_EQ(counts.runs, 0);
  EXPECT_EQ(counts.attempts, 2);
  EXPECT_EQ(counts.already_there, 2);
  const Store store = Store::open(folder_ / "a.db", Mode::read_only);
  EXPECT_EQ(count(store, "SELECT count(*) FROM run"), 1);
  const std::vector<PlanState> states = store.plan_state(store.find_run("latest")->id);
  EXPECT_EQ(states[0].attempts, 1);
  EXPECT_EQ(states[1].attempts, 1);
  EXPECT_EQ(states[2].attempts, 2);
  for (const PlanState& state : states) EXPECT_EQ(state.last_status, Status::ok);
}

TEST_F(SplitRun, NobodyAddsToARunThatWasMeasuredHereWithoutOurWord) {
  finish(folder_ / "b.db", 2);
  {
    Store theirs = Store::open(folder_ / "b.db", Mode::read_write);
    theirs.add_pin("baseline", theirs.run_uid(theirs.find_run("latest")->id), "");
  }
  const std::string before = dump_of(folder_ / "a.db");
  Store store = Store::open(folder_ / "a.db", Mode::read_write);
  const MergeCounts counts = store.merge(folder_ / "b.db");
  EXPECT_EQ(counts.attempts, 0);
  EXPECT_EQ(counts.left_out, 2) << "an attempt and a pin";
  EXPECT_EQ(counts.already_there, 2);
  EXPECT_EQ(dump(store), before);
}

TEST_F(SplitRun, AnAttemptThatWasOpenWhenMergedIsCompletedLater) {
  merge(folder_ / "all.db", folder_ / "a.db");
  finish(folder_ / "a.db", 1, open_attempt_);
  merge(folder_ / "all.db", folder_ / "a.db");
  EXPECT_EQ(dump_of(folder_ / "all.db"), dump_of(folder_ / "a.db"));
}

TEST_F(SplitRun, ARealEndOutweighsAnAbortedOneInEitherOrder) {
  finish(folder_ / "a.db", 1, open_attempt_);
  {
    Connection db((folder_ / "b.db").string(), Connection::Access::read_write, folder_ / "b.db");
    db.execute(
        "INSERT INTO attempt_event SELECT id, '2126-01-01T00:00:00.000Z', 'aborted', NULL FROM attempt WHERE uid = '" +
        open_attempt_ + "'");
  }
  merge(folder_ / "ab.db", folder_ / "a.db");
  merge(folder_ / "ab.db", folder_ / "b.db");
  merge(folder_ / "ba.db", folder_ / "b.db");
  merge(folder_ / "ba.db", folder_ / "a.db");
  EXPECT_EQ(dump_of(folder_ / "ab.db"), dump_of(folder_ / "ba.db"));
  for (const char* name : {"ab.db", "ba.db"}) {
    const Store store = Store::open(folder_ / name, Mode::read_only);
    EXPECT_EQ(text(store, "SELECT status FROM v_attempt WHERE attempt_uid = '" + open_attempt_ + "'"), "ok");
    EXPECT_EQ(count(store, "SELECT count(*) FROM v_attempt"), 2) << "one row an attempt";
  }
}

TEST(StoreMerge, TheSameUidForTwoThingsIsRefusedAndNothingIsMerged) {
  const Folder folder;
  RunRow run = a_run();
  run.uid = new_uuid7();
  {
    Store a = Store::open(folder / "a.db", Mode::create);
    a.finish_attempt(a.begin_run(run, a_plan(1)), an_attempt(0));
  }
  {
    OpenOptions same_time = default_options();
    const std::string at = text(Store::open(folder / "a.db", Mode::read_only), "SELECT started_at FROM run");
    same_time.now = [at] { return at; };
    Store b = Store::open(folder / "b.db", Mode::create, same_time);
    b.begin_run(a_run(), a_plan(1));
    b.finish_attempt(b.begin_run(run, {a_case(0, 999)}), an_attempt(0));
  }
  {
    Store later = Store::open(folder / "later.db", Mode::create);  // begun at another time
    later.begin_run(run, a_plan(1));
  }
  const std::string before = dump_of(folder / "a.db");
  const std::pair<const char*, std::string> twice[] = {{"b.db", "its plan_case "}, {"later.db", "its run " + run.uid}};
  for (const auto& [name, what] : twice) {
    const fs::path other = folder / name;
    const std::string told = error_of(ErrorKind::store, [&] { merge(folder / "a.db", other); });
    EXPECT_NE(told.find(what), std::string::npos) << told;
  }
  EXPECT_EQ(dump_of(folder / "a.db"), before);
  // The store works on after the failure.
  fill(folder / "c.db");
  EXPECT_EQ(merge(folder / "a.db", folder / "c.db").runs, 1);
}

TEST(StoreMerge, FactsOfRungsComeWithTheirRunAndOtherFactsOfItAreRefused) {
  const Folder folder;
  RunRow run = a_run();
  run.uid = new_uuid7();
  OpenOptions same_time = default_options();
  same_time.now = [] { return "2026-05-01T12:00:00.000Z"; };
  for (const auto& [name, tile] : {std::pair("a.db", "96 × 128"), std::pair("b.db", "1 × 1")}) {
    run.rung_facts = {{"toy", "ours", "device", "cpu", ""}, {"toy", "ours", "tile", tile, "rows × columns"}};
    Store::open(folder / name, Mode::create, same_time).begin_run(run, a_plan(1));
  }
  merge(folder / "all.db", folder / "a.db");
  merge(folder / "all.db", folder / "a.db");
  const char* told =
      "SELECT group_concat(value || coalesce(' ' || unit, ''), '; ') FROM (SELECT * FROM rung_fact ORDER BY fact)";
  EXPECT_EQ(text(Store::open(folder / "all.db", Mode::read_only), told), "cpu; 96 × 128 rows × columns");
  EXPECT_NE(error_of(ErrorKind::store, [&] { merge(folder / "all.db", folder / "b.db"); }).find("its rung_fact tile"),
            std::string::npos);
  EXPECT_EQ(text(Store::open(folder / "all.db", Mode::read_only), told), "cpu; 96 × 128 rows × columns");
}

// Carries out an UPDATE that a trigger of the same table forbids.
void forge(Connection& db, const std::string& sql) {
  const std::string table = sql.substr(7, sql.find(' ', 7) - 7), name = table + "_no_update";
  const std::string trigger = db.text("SELECT sql FROM sqlite_master WHERE name = '" + name + "'");
  db.execute("DROP TRIGGER " + name);
  db.execute(sql);
  EXPECT_GT(db.changes(), 0);
  db.execute(trigger);
}

// As forge(), for any statements.
void forge_freely(Connection& db, const std::string& sql) {
  std::vector<std::string> names, texts;
  {
    Statement triggers(db, "SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger'");
    while (triggers.step()) {
      names.push_back(triggers.text(0));
      texts.push_back(triggers.text(1));
    }
  }
  for (const std::string& name : names) db.execute("DROP TRIGGER " + name);
  db.execute(sql);
  for (const std::string& text : texts) db.execute(text);
}

// A copy of the file with its run under other names, and the forgery.
void fill_as_another_run(const fs::path& path, const fs::path& ours, const std::string& forgery) {
  fs::copy_file(ours, path);
  Connection db(path.string(), Connection::Access::read_write, path);
  db.checkpoint_on_close();
  const ImplementationRow hers{.name = "hers", .digest = "d", .language = "C++"};
  forge_freely(db, fmt::format("UPDATE run SET uid = 'r2'; UPDATE attempt SET uid = 'a' || id;"
                               "UPDATE comparison SET uid = 'cmp2'; UPDATE artifact SET uid = 'f' || id WHERE id > 1;"
                               "UPDATE check_result SET uid = 'c' || id WHERE id > 1;"
                               "INSERT INTO implementation (uid, name, digest, language, is_mine)"
                               "  VALUES ('{}', 'hers', 'd', 'C++', 0);"
                               "UPDATE plan_case SET implementation_id = 2 WHERE seq = 1;{}",
                               implementation_uid(hers), forgery));
}

constexpr const char* kOtherFindings =
    "UPDATE artifact SET uid = 'f1' WHERE id = 1; UPDATE check_result SET uid = 'c1' WHERE id = 1;";

// Nobody else's run may add to what was compared, handed in or found here.
TEST(StoreMerge, AnotherRunMayNotTakeTheNamesOfOurs) {
  const std::pair<const char*, std::string> forgeries[] = {
      {"its comparison cmp ", kOtherFindings + std::string("UPDATE comparison SET uid = 'cmp'")},
      {"its submission sub ", kOtherFindings + std::string("UPDATE submission SET author = 'eve'")},
      {"its check_result ", "UPDATE artifact SET uid = 'f1' WHERE id = 1"},
      {"its artifact ", "UPDATE check_result SET uid = 'c1' WHERE id = 1"},
  };
  const Folder folder;
  fill(folder / "a.db");
  fill_the_rest(folder / "a.db");
  const std::string before = dump_of(folder / "a.db");
  for (const auto& [told, sql] : forgeries) {
    SCOPED_TRACE(sql);
    fs::remove(folder / "b.db");
    fill_as_another_run(folder / "b.db", folder / "a.db", sql);
    Store store = Store::open(folder / "a.db", Mode::read_write);
    const std::string error = error_of(ErrorKind::store, [&] { store.merge(folder / "b.db"); });
    EXPECT_NE(error.find(told), std::string::npos) << error;
    EXPECT_EQ(dump(store), before);
  }
}

TEST(StoreMerge, AnotherRunOfASubmissionAddsNoFileToIt) {
  const Folder folder;
  fill(folder / "a.db");
  fill_the_rest(folder / "a.db");
  fill_as_another_run(folder / "b.db", folder / "a.db",
                      kOtherFindings + std::string("INSERT INTO submission_implementation VALUES (1, 2)"));
  Store store = Store::open(folder / "a.db", Mode::read_write);
  EXPECT_EQ(store.merge(folder / "b.db").runs, 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM submission_implementation"), 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM run_submission"), 2);
}

// The key says what may be compared, and is asked of the very rows that are merged.
TEST(StoreMerge, AMachineUnderAnotherKeyIsRefused) {
  const Folder folder;
  fill(folder / "a.db");
  Store store = Store::open(folder / "b.db", Mode::create);
  const auto merged_by = [&](std::string (*key)(const Json&)) {
    return error_of(ErrorKind::store, [&] { store.merge(folder / "a.db", {.key_of_machine = key}); });
  };
  EXPECT_NE(merged_by([](const Json&) { return std::string("another"); }).find("found the comparability_key key"),
            std::string::npos);
  EXPECT_EQ(count(store, "SELECT count(*) FROM run"), 0);
  EXPECT_EQ(merged_by([](const Json&) { return std::string("key"); }), "");
  EXPECT_EQ(count(store, "SELECT count(*) FROM run"), 1);
}

// A row under the SHA-256 of another fact would take that fact's place: every later run that means it is refused, and
// no row can be removed.
TEST(StoreMerge, SharedFactsAreWhatTheirSha256Says) {
  const std::pair<const char*, const char*> forgeries[] = {
      {"its environment ", "UPDATE environment SET comparability_key = 'mine'"},
      {"its build ", "UPDATE build SET facts = '{\"git_sha\":\"mine\"}'"},
      {"its implementation ", "UPDATE implementation SET name = 'mine'"},
      {"its implementation ", "UPDATE implementation SET is_mine = NOT is_mine"},
      {"its case ", "UPDATE case_def SET version = 'mine'"},
      // The same parameters in other words.
      {"its case ", "UPDATE case_def SET params = replace(params, ':', ': ')"},
      {"its case ", "UPDATE case_def SET params = replace(params, '{', '{\"size\":1,')"},
  };
  for (const auto& [told, sql] : forgeries) {
    SCOPED_TRACE(sql);
    const Folder folder;
    fill(folder / "a.db");
    fill(folder / "b.db");
    {
      Connection db((folder / "b.db").string(), Connection::Access::read_write, folder / "b.db");
      forge(db, sql);
    }
    const std::string before = dump_of(folder / "a.db");
    const std::string error = error_of(ErrorKind::store, [&] { merge(folder / "a.db", folder / "b.db"); });
    EXPECT_NE(error.find(told), std::string::npos) << error;
    EXPECT_NE(error.find("not what its SHA-256 says"), std::string::npos) << error;
    EXPECT_EQ(dump_of(folder / "a.db"), before);
    const std::vector<std::string> damage = Store::open(folder / "b.db", Mode::read_only).damage();
    EXPECT_TRUE(std::ranges::any_of(damage, [](const std::string& one) { return one.ends_with("SHA-256 says"); }));
  }
}

// A text that is no time sorts among those that are: "2026-02-30" would be newer than the 28th for ever.
TEST(StoreMerge, ATimeThatDoesNotExistIsRefused) {
  const std::tuple<const char*, const char*, const char*> forgeries[] = {
      {"run ", "started_at", "UPDATE run SET started_at = '2026-02-30T25:61:00Z'"},
      {"attempt_event ok of attempt ", "at",
       "UPDATE attempt_event SET at = '2026-02-30T25:61:00Z' WHERE status = 'ok'"},
      {"pin baseline of run ", "at", "UPDATE pin SET at = '2026-02-30T25:61:00Z'"},
      {"submission sub", "at", "UPDATE submission SET at = '2026-02-30T25:61:00Z'"},
      {"comparison cmp of run ", "at", "UPDATE comparison SET at = '2026-02-30T25:61:00Z'"},
  };
  for (const auto& [named, column, sql] : forgeries) {
    SCOPED_TRACE(sql);
    const Folder folder;
    fill(folder / "a.db");
    fill(folder / "b.db");
    fill_the_rest(folder / "b.db");
    EXPECT_TRUE(Store::open(folder / "b.db", Mode::read_only).damage().empty());
    {
      Connection db((folder / "b.db").string(), Connection::Access::read_write, folder / "b.db");
      forge(db, sql);
    }
    const std::string before = dump_of(folder / "a.db");
    const std::string error = error_of(ErrorKind::store, [&] { merge(folder / "a.db", folder / "b.db"); });
    EXPECT_NE(error.find(named), std::string::npos) << error;
    EXPECT_NE(error.find(std::string(column) + " is '2026-02-30T25:61:00Z'; expected a time in UTC that exists"),
              std::string::npos)
        << error;
    EXPECT_EQ(dump_of(folder / "a.db"), before);
    const auto damage = Store::open(folder / "b.db", Mode::read_only).damage();
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_NE(damage.front().find("a time that does not exist"), std::string::npos) << damage.front();
  }
}

TEST(StoreMerge, JsonThatIsNoneIsNamedByItsFileColumnAndRow) {
  const auto refusal = [](const std::string& table, const std::string& column, const std::string& text) {
    const Folder folder;
    fill(folder / "b.db");
    {
      Connection db((folder / "b.db").string(), Connection::Access::read_write, folder / "b.db");
      const std::string trigger =
          db.text(fmt::format("SELECT sql FROM sqlite_master WHERE name = '{}_no_update'", table));
      db.execute(fmt::format("DROP TRIGGER {}_no_update", table));
      Statement(db, fmt::format("UPDATE {} SET {} = ?", table, column)).run(text);
      db.execute(trigger);
      db.checkpoint_on_close();
    }
    const std::string error = error_of(ErrorKind::store, [&] { merge(folder / "a.db", folder / "b.db"); });
    EXPECT_NE(error.find(fmt::format("cannot merge '{}'", (folder / "b.db").string())), std::string::npos) << error;
    EXPECT_EQ(error.find("a.db"), std::string::npos) << error;
    EXPECT_EQ(error.find("INSERT"), std::string::npos) << error;
    EXPECT_NE(error.find("; nothing was merged"), std::string::npos) << error;
    return error;
  };
  const auto expect = [](const std::string& error, const std::string& told) {
    EXPECT_NE(error.find(told), std::string::npos) << error;
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  expect(refusal("attempt_facts", "facts", "{"), "its attempt_facts.facts is malformed JSON; expected JSON (attempt 0");
  expect(refusal("attempt_facts", "facts", deep),
         "its attempt_facts.facts is nested 100000 levels deep; expected at most 100 (attempt 0");
  expect(refusal("attempt_event", "detail", "{"),
         "its attempt_event.detail is malformed JSON; expected JSON (attempt 0");
  expect(refusal("run", "protocol", "zzz"), "its run.protocol is malformed JSON; expected JSON (run 0");
  expect(refusal("run", "argv", "{"), "its run.argv is malformed JSON; expected JSON (run 0");
  expect(refusal("run", "argv", "{}"), "its run.argv is no JSON array; expected one (run 0");
}

TEST(StoreMerge, AStoreMergedWithItselfIsAllThereAlready) {
  const Folder folder;
  fill(folder / "a.db");
  Store store = Store::open(folder / "a.db", Mode::read_write);
  EXPECT_EQ(store.merge(folder / "a.db").already_there, 3);
  EXPECT_EQ(store.merge(folder / "a.db").attempts, 0);
}

TEST(StoreMerge, WhatIsNoStoreIsRefusedAndUntouched) {
  const Folder folder;
  write_bytes(folder / "notes.txt", std::string(5000, 'x'));
  Store store = Store::open(folder / "a.db", Mode::create);
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.merge(folder / "notes.txt"); }), "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.merge(folder / "none.db"); }), "");
  EXPECT_FALSE(fs::exists(folder / "none.db"));
  EXPECT_EQ(bytes_of(folder / "notes.txt"), std::string(5000, 'x'));
}

TEST(StoreMerge, AFileThatIsBeingWrittenIsMergedAsItStands) {
  const Folder folder;
  Store writer = Store::open(folder / "live.db", Mode::create);
  const RowId run = writer.begin_run(a_run(), a_plan(2));
  writer.finish_attempt(run, an_attempt(0));
  EXPECT_EQ(merge(folder / "all.db", folder / "live.db").attempts, 1);
  writer.finish_attempt(run, an_attempt(1));
  EXPECT_EQ(merge(folder / "all.db", folder / "live.db").attempts, 1);
  EXPECT_EQ(dump_of(folder / "all.db"), dump(writer));
}

}  // namespace
}  // namespace syslab::store
