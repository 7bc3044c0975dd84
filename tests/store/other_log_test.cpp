// A log beside a database: replayed if it is the database's own, refused before anything is written otherwise.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/connection.hpp"
#include "store/store.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

void make_backup(const fs::path& path, int attempts = 3) {
  Store store = Store::open(path, Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(attempts));
  for (int seq = 0; seq < attempts; ++seq) store.finish_attempt(run, an_attempt(seq));
}

// What a process leaves that is killed while it has a store open: its file and its log.
void copy_as_killed(const fs::path& live, const fs::path& killed) {
  write_bytes(killed, bytes_of(live));
  write_bytes(killed.string() + "-wal", bytes_of(live.string() + "-wal"));
}

TEST(OtherLog, TheLogOfAnotherDatabaseCostsNoRun) {
  const Folder folder;
  make_backup(folder / "backup.db");
  {
    Store live = Store::open(folder / "live.db", Mode::create);
    live.begin_run(a_run(), a_plan(1));
    copy_as_killed(folder / "live.db", folder / "a.db");
  }
  const fs::path path = folder / "a.db", log = folder / "a.db-wal";
  write_bytes(path, bytes_of(folder / "backup.db"));
  const std::string before = bytes_of(path), rows = bytes_of(log);
  ASSERT_FALSE(rows.empty());
  for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
    const std::string message = error_of(ErrorKind::store, [&] { Store::open(path, mode); });
    EXPECT_NE(message.find("a.db-wal' belongs to another database: with it 1 of 1 runs would be gone"),
              std::string::npos)
        << message;
    EXPECT_TRUE(bytes_of(path) == before);
    EXPECT_TRUE(bytes_of(log) == rows);
    EXPECT_FALSE(fs::exists(folder / "a.db-shm"));
  }
  fs::remove(log);
  EXPECT_EQ(Store::open(path, Mode::read_only).query("SELECT * FROM attempt").rows.size(), 3U);
}

TEST(OtherLog, ALogWithWhichTheFileIsNoDatabaseIsAnothersToo) {
  const Folder folder;
  make_backup(folder / "a.db");
  {
    Connection other((folder / "other.db").string(), Connection::Access::create, folder / "other.db");
    other.execute("PRAGMA journal_mode=WAL; CREATE TABLE theirs (x)");
    write_bytes(folder / "a.db-wal", bytes_of(folder / "other.db-wal"));
  }
  const std::string before = bytes_of(folder / "a.db");
  const std::string message = error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::create); });
  EXPECT_NE(message.find("belongs to another database: with it the file is no valid database"), std::string::npos)
      << message;
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
}

TEST(OtherLog, TheLogThatAKilledProcessLeftIsReplayed) {
  const Folder folder;
  make_backup(folder / "live.db");  // one run in the file, and another in its log
  {
    Store live = Store::open(folder / "live.db", Mode::create);
    live.begin_run(a_run(), a_plan(1));
    copy_as_killed(folder / "live.db", folder / "a.db");
  }
  EXPECT_EQ(Store::open(folder / "a.db", Mode::read_only).query("SELECT * FROM run").rows.size(), 2U);
  EXPECT_EQ(Store::open(folder / "a.db", Mode::create).query("SELECT * FROM run").rows.size(), 2U);
}

TEST(OtherLog, APageThatACheckpointHadWrittenInPartIsNoEvidence) {
  const Folder folder;
  make_backup(folder / "live.db");
  {
    Store live = Store::open(folder / "live.db", Mode::create);
    live.begin_run(a_run(), a_plan(1));
    copy_as_killed(folder / "live.db", folder / "a.db");
  }  // now live.db holds what the log does
  const std::string after = bytes_of(folder / "live.db");
  std::string torn = bytes_of(folder / "a.db");
  const std::int64_t page = Connection((folder / "live.db").string(), Connection::Access::read_only, folder / "live.db")
                                .integer("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_run_1'");
  constexpr std::size_t kPage = 4096, kSector = 512;
  const std::size_t at = static_cast<std::size_t>(page - 1) * kPage;
  ASSERT_NE(torn.substr(at, kSector), after.substr(at, kSector));
  torn.replace(at, kSector, after, at, kSector);
  write_bytes(folder / "a.db", torn);
  EXPECT_EQ(Store::open(folder / "a.db", Mode::read_only).query("SELECT * FROM run").rows.size(), 2U);
  EXPECT_EQ(Store::open(folder / "a.db", Mode::create).query("SELECT * FROM run").rows.size(), 2U);
}

// POSIX locks are a process's own, and closing a file lets go of them: others must still see that the store is open.
TEST(OtherLog, LookingForALogOfAnotherDatabaseCostsNoLock) {
  const Folder folder;
  Store live = Store::open(folder / "a.db", Mode::create);
  live.begin_run(a_run(), a_plan(1));
  EXPECT_EQ(Store::open(folder / "a.db", Mode::read_only).query("SELECT * FROM run").rows.size(), 1U);
  const pid_t child = ::fork();
  if (child == 0) {
    const int index = ::open((folder / "a.db-shm").c_str(), O_RDONLY | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = 128;
    lock.l_len = 1;
    ::_exit(index >= 0 && ::fcntl(index, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "another process takes the store for one that nobody has open";
}

}  // namespace
}  // namespace syslab::store
