// A file whose schema holds what no migration made is refused before anything of it is evaluated.
#include <gtest/gtest.h>

#include "store/connection.hpp"
#include "store/options.hpp"
#include "store/schema_check.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

void change(const fs::path& path, const std::string& sql) {
  Connection raw(path.string(), Connection::Access::read_write, path);
  raw.checkpoint_on_close();
  raw.execute(sql);
}

class SchemaCheck : public testing::Test {
 protected:
  SchemaCheck() { Store::open(folder_ / "a.db", Mode::create).begin_run(a_run(), a_plan(1)); }
  std::string refusal(Mode mode) {
    return error_of(ErrorKind::store, [&] { Store::open(folder_ / "a.db", mode); });
  }
  Folder folder_;
};

TEST_F(SchemaCheck, WhatNoMigrationMadeIsNamed) {
  const std::vector<std::pair<std::string, std::string>> planted{
      {"CREATE TRIGGER evil AFTER INSERT ON run BEGIN SELECT 1; END", "trigger 'evil' is none"},
      {"CREATE VIEW evil AS SELECT 1", "view 'evil' is none"},
      {"CREATE VIEW v_attempt AS SELECT 1", "view 'v_attempt' is none"},
      {"CREATE TABLE evil (x)", "table 'evil' is none"},
      {"CREATE INDEX evil ON run (upper(label))", "index 'evil' is none"},
      {"ALTER TABLE pin ADD COLUMN evil TEXT AS (upper(note))", "table 'pin' is not as"},
      {"DROP TRIGGER run_no_update; CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT 1; END",
       "trigger 'run_no_update' is not as"},
      {"DROP TABLE pin", "there is no table 'pin'"}};
  const std::string whole = bytes_of(folder_ / "a.db");
  for (const auto& [sql, told] : planted) {
    write_bytes(folder_ / "a.db", whole);
    change(folder_ / "a.db", sql);
    const std::string before = bytes_of(folder_ / "a.db");
    for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
      EXPECT_NE(refusal(mode).find(told), std::string::npos) << sql << ": " << refusal(mode);
    }
    Store other = Store::open(folder_ / "b.db", Mode::create);
    EXPECT_NE(error_of(ErrorKind::store, [&] { other.merge(folder_ / "a.db"); }).find(told), std::string::npos) << sql;
    EXPECT_TRUE(bytes_of(folder_ / "a.db") == before) << sql;
  }
}

TEST(SchemaDigests, AreOfWhatTheMigrationsMake) {
  const Schema schema = embedded_schema();
  for (int version = kFirstVersion; version <= schema.version(); ++version) {
    const auto known = schema.digests.find(version);
    EXPECT_EQ(known == schema.digests.end() ? "none" : known->second, schema_digest(schema, version))
        << "line " << version << " of db/schema_digests.txt";
  }
}

TEST_F(SchemaCheck, AMissingTriggerOrIndexRefusesNothing) {
  change(folder_ / "a.db", "DROP TRIGGER run_no_update; DROP INDEX attempt_by_plan");
  EXPECT_EQ(count(Store::open(folder_ / "a.db", Mode::read_write), "SELECT count(*) FROM v_run"), 1);
}

TEST_F(SchemaCheck, AFileHoldsNoViewsAndOpensWithoutTrust) {
  Connection raw((folder_ / "a.db").string(), Connection::Access::read_write, folder_ / "a.db");
  EXPECT_EQ(
      raw.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'view' OR sql LIKE '%json%' OR sql LIKE '% AS (%'"),
      0);
  raw.execute("INSERT INTO pin VALUES ('a', 'now', 'r', NULL)");
}

TEST_F(SchemaCheck, WhatIsStoredAsJsonIsJsonAlthoughTheTablesDoNotSay) {
  // A file whose rows are no JSON: other programs may have written it.
  change(
      folder_ / "a.db",
      "INSERT INTO run SELECT 77, 'f', environment_id, build_id, verb, started_at, label, argv, 'no JSON', root_seed "
      "FROM run LIMIT 1");
  Store other = Store::open(folder_ / "b.db", Mode::create);
  const std::string said = error_of(ErrorKind::store, [&] { other.merge(folder_ / "a.db"); });
  EXPECT_NE(said.find("its run.protocol is malformed JSON; expected JSON (run f)"), std::string::npos) << said;
  EXPECT_EQ(count(other, "SELECT count(*) FROM run"), 0);
}

}  // namespace
}  // namespace syslab::store
