// Migrations: proved with a next version made up for the purpose.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/build_info.hpp"
#include "store/connection.hpp"
#include "store/file_header.hpp"
#include "store/options.hpp"
#include "tests/store/dump.hpp"

namespace syslab::store {
namespace {

using namespace test;

const int kThis = embedded_schema().version();

// "a.db.v2.bak"
std::string copy_of_this_version(const std::string& more = "") {
  return "a.db.v" + std::to_string(kThis) + more + ".bak";
}

OpenOptions with_next_version(const std::string& sql = "ALTER TABLE pin ADD COLUMN colour TEXT") {
  OpenOptions options = default_options();
  options.schema.migrations.push_back({kThis + 1, "next_colour", sql});
  options.schema.views.push_back({"v_pin", "-- Pins.\nCREATE VIEW v_pin AS SELECT name, colour FROM pin"});
  return options;
}

void make_this_version(const fs::path& path) {
  Store store = Store::open(path, Mode::create);
  store.finish_attempt(store.begin_run(a_run(), a_plan(1)), an_attempt(0));
}

TEST(StoreMigrate, AnOlderFileIsCopiedAsideAndBroughtUp) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const std::string before = dump(Store::open(folder / "a.db", Mode::read_only));
  {
    const Store store = Store::open(folder / "a.db", Mode::create, with_next_version());
    EXPECT_EQ(store.schema_version(), kThis + 1);
    EXPECT_EQ(count(store, "SELECT count(*) FROM v_pin"), 0);
    EXPECT_EQ(count(store, "SELECT count(*) FROM v_result"), 1);
    EXPECT_EQ(text(store, "SELECT group_concat(version) FROM schema_migration"),
              std::to_string(kThis) + "," + std::to_string(kThis + 1));
    ASSERT_EQ(store.notices().size(), 1U);
    EXPECT_NE(store.notices()[0].find(copy_of_this_version()), std::string::npos);
  }
  EXPECT_EQ(dump(Store::open(folder.path() / copy_of_this_version(), Mode::read_only)), before)
      << "the copy is the file as it was";
  EXPECT_TRUE(Store::open(folder / "a.db", Mode::create, with_next_version()).notices().empty()) << "once";
}

TEST(StoreMigrate, AMigrationThatFailsChangesNothing) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  const OpenOptions broken = with_next_version("CREATE TABLE extra (x); INSERT INTO no_such_table VALUES (1)");
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::create, broken); }), "");
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
  EXPECT_EQ(Store::open(folder / "a.db", Mode::create).schema_version(), kThis);
}

TEST(StoreMigrate, AMigrationThatBreaksReferencesChangesNothing) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const OpenOptions broken =
      with_next_version("PRAGMA defer_foreign_keys=ON; DROP TRIGGER run_no_delete; DELETE FROM run");
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::create, broken); }).find("references"),
            std::string::npos);
  EXPECT_EQ(count(Store::open(folder / "a.db", Mode::read_only), "SELECT count(*) FROM run"), 1);
}

TEST(StoreMigrate, AFileOfAnotherHistoryIsRefused) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  OpenOptions other = default_options();
  other.schema.migrations[0].sql += "-- changed after it was released\n";
  for (const Mode mode : {Mode::create, Mode::read_only}) {
    EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", mode, other); }).find("0007_init"),
              std::string::npos);
  }
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
}

TEST(StoreMigrate, StartsAtOnceMigrateOnce) {
  const Folder folder;
  make_this_version(folder / "a.db");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      int code = 1;
      try {
        code = Store::open(folder / "a.db", Mode::create, with_next_version()).schema_version() == kThis + 1 ? 0 : 2;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "in the child: %s\n", error.what());
      }
      ::_exit(code);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_FALSE(fs::exists(folder.path() / copy_of_this_version("-1"))) << "copied once";
  EXPECT_TRUE(fs::exists(folder.path() / copy_of_this_version()));
}

TEST(StoreMigrate, AnOlderFileOpenedToReadIsMigratedInACopy) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  {
    const Store store = Store::open(folder / "a.db", Mode::read_only, with_next_version());
    EXPECT_EQ(store.schema_version(), kThis + 1);
    EXPECT_EQ(count(store, "SELECT count(*) FROM v_pin"), 0);
    EXPECT_EQ(count(store, "SELECT count(*) FROM metric"), 1);
  }
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "nothing beside it";
}

TEST(StoreMigrate, AnOlderFileIsMergedThroughACopy) {
  const Folder folder;
  make_this_version(folder / "old.db");
  const std::string before = bytes_of(folder / "old.db");
  Store store = Store::open(folder / "new.db", Mode::create, with_next_version());
  EXPECT_EQ(store.merge(folder / "old.db").attempts, 1);
  EXPECT_EQ(count(store, "SELECT count(*) FROM v_result WHERE metric = 'time'"), 1);
  EXPECT_TRUE(bytes_of(folder / "old.db") == before);
}

TEST(StoreMigrate, ViewsFollowTheBinaryInFilesThatAreWritten) {
  const Folder folder;
  make_this_version(folder / "a.db");
  OpenOptions options = default_options();
  options.schema.views = {{"v_only", "-- One.\nCREATE VIEW v_only AS SELECT 7 AS seven"}};
  {
    const Store store = Store::open(folder / "a.db", Mode::read_write, options);
    EXPECT_EQ(count(store, "SELECT seven FROM v_only"), 7);
    EXPECT_NE(error_of(ErrorKind::usage, [&] { store.query("SELECT * FROM v_latest"); }), "") << "it is gone";
  }
  EXPECT_EQ(count(Store::open(folder / "a.db", Mode::read_write), "SELECT count(*) FROM v_latest"), 1);
}

TEST(StoreMigrate, ViewsFollowTheBinaryInFilesThatAreOnlyRead) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  OpenOptions options = default_options();
  for (View& view : options.schema.views) {
    if (view.name == "v_result") view.sql = "-- Changed.\nCREATE VIEW v_result AS SELECT 7 AS seven";
  }
  {
    const Store store = Store::open(folder / "a.db", Mode::read_only, options);
    EXPECT_EQ(count(store, "SELECT seven FROM v_result"), 7);
    EXPECT_EQ(count(store, "SELECT count(*) FROM v_attempt"), 1) << "the others as before";
  }
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
}

TEST(StoreMigrate, AFileFromBeforeTheFirstReleaseIsRefusedWithBothVersions) {
  const Folder folder;
  make_this_version(folder / "a.db");
  {
    Connection raw((folder / "a.db").string(), Connection::Access::read_write, folder / "a.db");
    raw.checkpoint_on_close();
    raw.execute("PRAGMA user_version=" + std::to_string(kFirstVersion - 1));
  }
  const std::string before = bytes_of(folder / "a.db");
  Store other = Store::open(folder / "b.db", Mode::create);
  const std::string merging = error_of(ErrorKind::store, [&] { other.merge(folder / "a.db"); });
  for (const std::string& said :
       {error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::create); }),
        error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::read_only); }), merging}) {
    EXPECT_NE(said.find("version 6, from before the first release; this syslab reads version 7: "), std::string::npos)
        << said;
  }
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
}

TEST(StoreMigrate, EveryFileSaysWhoseItIs) {
  const Folder folder;
  make_this_version(folder / "a.db");
  const Store store = Store::open(folder / "a.db", Mode::read_only);
  EXPECT_EQ(count(store, "PRAGMA application_id"), kApplicationId);
  EXPECT_EQ(count(store, "PRAGMA user_version"), kThis);
  EXPECT_NE(text(store, "SELECT tool FROM schema_migration").find(build_info().version), std::string::npos);
}

}  // namespace
}  // namespace syslab::store
