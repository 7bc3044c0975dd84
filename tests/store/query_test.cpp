#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "store/connection.hpp"
#include "store/json_columns.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

class StoreQuery : public testing::Test {
 protected:
  StoreQuery() : store_(Store::open(folder_ / "a.db", Mode::create)) {
    run_ = store_.begin_run(a_run(), a_plan(2));
    store_.finish_attempt(run_, an_attempt(0));
  }
  std::string refusal(const std::string& sql, const std::vector<Cell>& parameters = {},
                      std::chrono::milliseconds longest = std::chrono::seconds{20}) const {
    return error_of(ErrorKind::usage, [&] { store_.query(sql, parameters, longest); });
  }

  Folder folder_;
  Store store_;
  RowId run_ = 0;
};

TEST_F(StoreQuery, ParametersAreBoundByPosition) {
  const ResultSet result = store_.query("SELECT ?1 AS i, ?2 AS r, ?3 AS t, ?4 AS n",
                                        {{.type = Cell::Type::integer, .integer = 7},
                                         {.type = Cell::Type::real, .real = 0.5},
                                         {.type = Cell::Type::text, .text = "'; DROP TABLE run; --"},
                                         {}});
  EXPECT_EQ(result.columns, (std::vector<std::string>{"i", "r", "t", "n"}));
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0][0].integer, 7);
  EXPECT_EQ(result.rows[0][1].real, 0.5);
  EXPECT_EQ(result.rows[0][2].text, "'; DROP TABLE run; --");
  EXPECT_EQ(result.rows[0][3].type, Cell::Type::null);
  EXPECT_NE(refusal("SELECT ?").find("1 parameters, 0 values"), std::string::npos);
  EXPECT_NE(refusal("SELECT 1", {{}}), "");
}

TEST_F(StoreQuery, OnlyOneReadingStatementIsTaken) {
  EXPECT_EQ(store_.query("SELECT 1; -- and nothing more\n ").rows.size(), 1U);
  EXPECT_EQ(store_
                .query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) "
                       "SELECT i FROM n")
                .rows.size(),
            4U);
  EXPECT_NE(refusal("SELECT 1; SELECT 2").find("one statement"), std::string::npos);
  EXPECT_NE(refusal("").find("no statement"), std::string::npos);
  EXPECT_NE(refusal("-- nothing"), "");
  EXPECT_NE(refusal(std::string("SELECT 1\0; DROP TABLE run", 25)), "");
}

TEST_F(StoreQuery, NothingThatWritesIsTaken) {
  for (const char* sql :
       {"DELETE FROM run", "INSERT INTO pin VALUES ('a', 'b', 'c', NULL)", "UPDATE run SET label = 'x'",
        "DROP TABLE metric", "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)", "PRAGMA query_only=OFF",
        "PRAGMA user_version=7", "PRAGMA journal_mode=DELETE", "PRAGMA writable_schema=ON", "BEGIN", "VACUUM",
        "ATTACH ':memory:' AS x", "SELECT 1; DELETE FROM run", "WITH x AS (SELECT 1) DELETE FROM run", "REINDEX",
        "SELECT load_extension('x')", "ANALYZE"}) {
    EXPECT_NE(refusal(sql), "") << sql;
  }
  EXPECT_EQ(count(store_, "SELECT count(*) FROM run"), 1);
  // After a refusal the store still writes: the guard covers the query alone.
  store_.finish_attempt(run_, an_attempt(1));
}

TEST_F(StoreQuery, AnEndlessOneEndsWithItsReason) {
  const std::string endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";
  const auto began = std::chrono::steady_clock::now();
  const std::string told = refusal(endless + "count(*) FROM n", {}, std::chrono::milliseconds{1500});
  EXPECT_NE(told.find("longer than 1.5 s"), std::string::npos) << told;
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(7));
  EXPECT_NE(refusal(endless + "i FROM n").find("more than 1000000 rows"), std::string::npos);
  EXPECT_NE(refusal(endless + "zeroblob(100000000) FROM n").find("more than 512.00 MiB"), std::string::npos);
  EXPECT_EQ(store_.query("SELECT 1").rows.size(), 1U);  // none of it is left over
}

TEST_F(StoreQuery, FunctionsThatTakePointersOrLoadCodeAreOff) {
  for (const char* sql : {"SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('simple', x'4141414141414141')",
                          "SELECT FTS3_Tokenizer('porter')", "SELECT load_extension('x')"}) {
    EXPECT_NE(refusal(sql), "") << sql;
  }
}

TEST_F(StoreQuery, PragmasThatOnlyTellAreTaken) {
  EXPECT_GT(store_.query("PRAGMA table_info(run)").rows.size(), 3U);
  EXPECT_GT(store_.query("SELECT name FROM pragma_table_info('metric')").rows.size(), 3U);
  EXPECT_EQ(count(store_, "PRAGMA user_version"), store_.schema_version());
}

TEST_F(StoreQuery, AnUnknownNameBringsTheNearest) {
  EXPECT_NE(refusal("SELECT * FROM v_reslt").find("v_result"), std::string::npos) << refusal("SELECT * FROM v_reslt");
  EXPECT_NE(refusal("SELECT experimnt FROM v_result").find("did you mean experiment"), std::string::npos);
  EXPECT_NE(refusal("SELECT v.experimnt FROM v_result v").find("did you mean experiment"), std::string::npos);
  const std::string elsewhere = refusal("SELECT status FROM run");
  EXPECT_NE(elsewhere.find("no such column: status in what this asks; it is one of attempt"), std::string::npos)
      << elsewhere;
  EXPECT_NE(refusal("SELEC 1").find("syntax error"), std::string::npos) << "SQLite's own words";
  EXPECT_NE(refusal("SELECT \"experimnt\" FROM v_result"), "") << "a name in quotes must not turn into a text";
}

TEST_F(StoreQuery, AnErrorWhileRunningIsTheQuerysOwn) {
  EXPECT_NE(refusal("SELECT json_extract('{', '$.a')").find("JSON"), std::string::npos);
}

// The database may be a stranger's, whose values may be any text. `change` reads "UPDATE TABLE …".
void change_past_triggers(const fs::path& file, const std::string& change) {
  Connection raw(file.string(), Connection::Access::read_write, file);
  raw.checkpoint_on_close();
  const std::string table = change.substr(7, change.find(' ', 7) - 7), name = table + "_no_update";
  const std::string trigger = raw.text("SELECT sql FROM sqlite_schema WHERE name = '" + name + "'");
  raw.execute("DROP TRIGGER " + name);
  raw.execute(change);
  ASSERT_GT(raw.changes(), 0);
  raw.execute(trigger);
}

class MalformedJson : public StoreQuery {
 protected:
  std::string refusal_with(const std::string& change, const std::function<void(Store&)>& read) {
    Folder folder;
    const fs::path file = folder / "b.db";
    {
      Store store = Store::open(file, Mode::create);
      store.finish_attempt(store.begin_run(a_run(), a_plan(2)), an_attempt(0));
    }
    change_past_triggers(file, change);
    Store store = Store::open(file, Mode::read_only);
    const std::string said = error_of(ErrorKind::store, [&] { read(store); });
    EXPECT_NE(said.find("b.db'"), std::string::npos) << said;
    return said;
  }
};

TEST_F(MalformedJson, IsNamedWithTheDatabaseAndTheColumn) {
  const auto runs = [](const Store& store) { store.query("SELECT * FROM v_run"); };
  EXPECT_NE(refusal_with("UPDATE run SET protocol = '{oops'", runs).find("run.protocol is malformed JSON"),
            std::string::npos);
  EXPECT_NE(refusal_with("UPDATE build SET facts = '{oops'", runs).find("build.facts is malformed JSON"),
            std::string::npos);
}

TEST_F(MalformedJson, IsNamedInAnyColumnThatHoldsJson) {
  const auto columns = json_columns();
  EXPECT_EQ(columns.size(), 13U);
  for (const auto& [table, column] : columns) {
    Folder folder;
    Store::open(folder / "b.db", Mode::create);
    Connection raw((folder / "b.db").string(), Connection::Access::read_write, folder / "b.db");
    raw.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
    std::string names, values;  // of a row that holds nothing else, whatever its columns want
    Statement all(raw, fmt::format("SELECT name, type FROM pragma_table_info('{}') WHERE \"notnull\"", table));
    while (all.step()) {
      if (all.text(0) == column) continue;
      names += all.text(0) + ", ";
      values += all.text(1) == "TEXT" ? "'{}', " : "1, ";
    }
    raw.execute(fmt::format("INSERT INTO {} ({}{}) VALUES ({}'{{oops')", table, names, column, values));
    EXPECT_NE(malformed_json_in(raw).find(fmt::format("its {}.{} is malformed", table, column)), std::string::npos);
  }
}

TEST_F(MalformedJson, IsNamedWhereAReportKeepsItsViews) {
  const auto report = [](Store& store) { store.hold_still({}); };
  EXPECT_NE(refusal_with("UPDATE run SET protocol = '{oops'", report).find("its run.protocol is malformed JSON"),
            std::string::npos);
}

TEST_F(MalformedJson, IsNamedWhereARunIsRead) {
  const auto run = [](const Store& store) { store.find_run("latest"); };
  const auto plan = [](const Store& store) { store.plan_state(1); };
  const auto expect = [&](const std::string& change, const std::function<void(const Store&)>& read,
                          const std::string& part) {
    const std::string said = refusal_with(change, read);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  const std::string deep = std::string(60'000, '[') + std::string(60'000, ']');
  expect("UPDATE run SET protocol = '{}'", run,
         "its run.protocol is a JSON object without a text 'name'; expected one with");
  expect("UPDATE run SET protocol = '{\"name\": 5}'", run, "its run.protocol is a JSON object without a text 'name'");
  expect("UPDATE run SET protocol = '7'", run, "its run.protocol is no JSON object; expected one with a text 'name'");
  expect("UPDATE run SET argv = '{oops'", run, "its run.argv is malformed JSON; expected a JSON list");
  expect("UPDATE run SET argv = '" + deep + "'", run, "its run.argv is nested 60000 levels deep; expected at most 100");
  expect("UPDATE case_def SET params = '{oops'", plan, "its case_def.params is malformed JSON; expected a JSON object");
  expect("UPDATE case_def SET params = '7'", plan, "its case_def.params is no JSON object; expected a JSON object");
}

TEST_F(StoreQuery, AReaderSeesOneStateWhileAWriterGoesOn) {
  const Store reader = Store::open(folder_ / "a.db", Mode::read_only);
  EXPECT_EQ(count(reader, "SELECT count(*) FROM metric"), 1);
  store_.finish_attempt(run_, an_attempt(1));
  EXPECT_EQ(count(reader, "SELECT count(*) FROM metric"), 2);
}

TEST_F(StoreQuery, ARunIsFoundByUidBeginningEndingAndLatest) {
  const std::string uid = store_.run_uid(run_);
  RunRow other = a_run();
  other.uid = uid.substr(0, 9) + "ffff-7fff-bfff-ffffffffffff";  // made in the same minute
  store_.begin_run(other, {});
  EXPECT_EQ(store_.find_run(uid)->uid, uid);
  EXPECT_EQ(store_.find_run(uid.substr(uid.size() - 6))->uid, uid);
  EXPECT_EQ(store_.find_run(uid.substr(24, 8))->uid, uid) << "the random part's beginning, as `log` shows it";
  EXPECT_EQ(store_.find_run(uid.substr(19, 8)), std::nullopt) << "no piece from anywhere";
  EXPECT_EQ(store_.find_run(other.uid.substr(0, 13))->uid, other.uid);
  EXPECT_EQ(store_.find_run("FFFFFFFF")->uid, other.uid);
  EXPECT_EQ(store_.find_run("latest")->uid, other.uid);
  EXPECT_EQ(store_.find_run("latest")->argv, (std::vector<std::string>{"run", "toy"}));
  EXPECT_EQ(store_.find_run("latest")->build_sha, "abc");
  EXPECT_EQ(store_.find_run("no such thing"), std::nullopt);
  EXPECT_EQ(store_.find_run(""), std::nullopt);
  const std::string message = error_of(ErrorKind::usage, [&] { store_.find_run(uid.substr(0, 8)); });
  EXPECT_NE(message.find(uid), std::string::npos) << "the candidates are listed: " << message;
}

TEST(StoreQueryEmpty, AnEmptyStoreHasNoLatestRun) {
  const Folder folder;
  EXPECT_EQ(Store::open(folder / "a.db", Mode::create).find_run("latest"), std::nullopt);
}

TEST_F(StoreQuery, ACheckIsFoundWithAllThatReplayNeeds) {
  PlanRow law = a_law(0, "toy.law", "me");
  law.implementation.is_mine = true;
  law.implementation.path = "k.so";
  const RowId run = store_.begin_run(a_run(), {law});
  worker::CheckRecord check = a_check(Outcome::falsified);
  check.name = "toy.law";
  check.contract = Contract::full;
  check.reproduce = "BcuX";
  check.counterexample_json = R"({"n": "3"})";
  check.message = "wrong at 3";
  AttemptRow attempt = a_failure(0, Status::check_failed, "toy.law is false");
  attempt.records = {check};
  store_.finish_attempt(run, attempt);
  const std::string uid = text(store_, "SELECT check_uid FROM v_properties WHERE kind = 'law'");
  const StoredCheck found = store_.find_check(uid.substr(uid.size() - 8)).value();
  EXPECT_EQ(found.uid, uid);
  EXPECT_EQ(found.experiment, "toy");
  EXPECT_EQ(found.implementation, "me");
  EXPECT_EQ(found.law, "toy.law");
  EXPECT_EQ(found.outcome, Outcome::falsified);
  EXPECT_EQ(found.seed, "18446744073709551613");
  EXPECT_EQ(found.reproduce, "BcuX");
  EXPECT_EQ(found.counterexample_json, R"({"n": "3"})");
  EXPECT_EQ(found.message, "wrong at 3");
  EXPECT_EQ(found.params, law.params);
  EXPECT_EQ(found.mine_path, "k.so");
  EXPECT_EQ(found.implementation_digest, "d-me");
  EXPECT_EQ(store_.find_check("0000"), std::nullopt);
}

}  // namespace
}  // namespace syslab::store
