// A journal or the index of a log next to a database that SQLite would delete: refused, and left as it is.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "store/connection.hpp"
#include "store/store.hpp"
#include "tests/store/fixture.hpp"
#include "tests/store/hot_journal.hpp"

namespace syslab::store {
namespace {

using namespace test;

void make_empty_store(const fs::path& path) { Store::open(path, Mode::create); }

TEST(Companions, AJournalOrIndexThatIsNotOfSqliteIsRefusedAndStays) {
  const Folder folder;
  make_empty_store(folder / "there.db");
  write_bytes(folder / "empty.db", "");
  fs::create_symlink("target.db", folder / "link.db");
  const std::vector<std::pair<std::string, std::string>> files{
      {"new.db", "new.db"}, {"empty.db", "empty.db"}, {"there.db", "there.db"}, {"link.db", "target.db"}};
  for (const auto& [name, file] : files) {
    for (const char* suffix : {"-journal", "-shm"}) {
      for (const std::string& text : {std::string("x"), std::string("my notes\n"), std::string(40000, 'x')}) {
        const fs::path foreign = folder.path() / (file + suffix);
        write_bytes(foreign, text);
        for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
          const std::string told = error_of(ErrorKind::store, [&] { Store::open(folder.path() / name, mode); });
          EXPECT_NE(told.find(foreign.string() + "' next to it is not a file of SQLite"), std::string::npos) << told;
          EXPECT_NE(told.find("\ntry: move "), std::string::npos) << told;
          EXPECT_EQ(bytes_of(foreign), text);
        }
        fs::remove(foreign);
      }
    }
    EXPECT_NO_THROW(Store::open(folder.path() / name, Mode::create)) << name;
  }
}

TEST(Companions, AJournalWithRowsIsRefusedWhereItsDatabaseIsEmptyOrMissing) {
  const Folder folder;
  make_empty_store(folder / "a.db");
  leave_wal_mode(folder / "a.db");
  const fs::path path = folder / "b.db", journal = folder / "b.db-journal";
  const std::string rows = hot_journal(folder / "a.db");
  write_bytes(journal, rows);
  for (const std::string state : {"missing", "empty"}) {
    const std::string told = error_of(ErrorKind::store, [&] { Store::open(path, Mode::create); });
    EXPECT_NE(told.find("it is " + state + ", but its journal"), std::string::npos) << told;
    EXPECT_TRUE(bytes_of(journal) == rows);
    write_bytes(path, "");
  }
}

// By a writer that was killed: what it left has no rows, and costs nobody any.
TEST(Companions, WhatSqliteLeavesAtTheVeryStartIsNoReasonToRefuse) {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Connection first((folder / "a.db").string(), Connection::Access::create, folder / "a.db");
    first.execute("PRAGMA cache_size=1; BEGIN; CREATE TABLE t(x)");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_GT(fs::file_size(folder / "a.db-journal"), 0U) << "it was to leave a journal";
  EXPECT_NO_THROW(Store::open(folder / "a.db", Mode::create));

  make_empty_store(folder / "b.db");
  const Store live = Store::open(folder / "b.db", Mode::read_write);
  write_bytes(folder / "c.db-shm", bytes_of(folder / "b.db-shm"));
  write_bytes(folder / "c.db-wal", "");
  EXPECT_NO_THROW(Store::open(folder / "c.db", Mode::create)) << "its database was removed";
  write_bytes(folder / "d.db-shm", bytes_of(folder / "b.db-shm").substr(0, 3));
  EXPECT_NO_THROW(Store::open(folder / "d.db", Mode::create)) << "as SQLite cuts it while it opens it";
}

}  // namespace
}  // namespace syslab::store
