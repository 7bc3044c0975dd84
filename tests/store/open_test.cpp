#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/connection.hpp"
#include "store/damaged.hpp"
#include "store/file_system.hpp"
#include "store/options.hpp"
#include "tests/store/fixture.hpp"
#include "tests/store/hot_journal.hpp"

namespace syslab::store {
namespace {

using namespace test;

// What every refusal must leave behind: the same bytes, and nothing beside them.
void expect_refused_untouched(const fs::path& path, const std::string& reason) {
  const std::string before = bytes_of(path);
  for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
    const std::string message = error_of(ErrorKind::store, [&] { Store::open(path, mode); });
    EXPECT_NE(message.find(reason), std::string::npos) << "found: " << message;
    EXPECT_NE(message.find(path.string()), std::string::npos) << "the file must be named: " << message;
    EXPECT_TRUE(bytes_of(path) == before) << "the file was changed";
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
      EXPECT_FALSE(fs::exists(path.string() + suffix)) << suffix << " was left, mode " << static_cast<int>(mode);
    }
  }
}

void make_store(const fs::path& path, int attempts = 3) {
  Store store = Store::open(path, Mode::create);
  const RowId run = store.begin_run(a_run(), a_plan(attempts));
  for (int seq = 0; seq < attempts; ++seq) store.finish_attempt(run, an_attempt(seq));
}

void raw_sql(const fs::path& path, const std::string& sql) {
  Connection connection(path.string(), Connection::Access::create, path);
  connection.checkpoint_on_close();
  connection.execute(sql);
}

// Of a folder: not for its owner either, who is the one that runs the tests where they do not run as root.
constexpr fs::perms kNoWriting =
    fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec;

// Runs `body` in a child without a superuser's rights; its result is the child's exit code.
template <typename Body>
int as_nobody(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(99);
    int code = 98;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StoreOpen, AFileThatIsNoDatabaseIsRefusedAndUntouched) {
  const Folder folder;
  write_bytes(folder / "notes.txt", std::string(5000, 'x'));
  expect_refused_untouched(folder / "notes.txt", "not an SQLite database");
  write_bytes(folder / "short", "abc");
  expect_refused_untouched(folder / "short", "not an SQLite database");
}

TEST(StoreOpen, AnotherProgramsDatabaseIsRefusedAndUntouched) {
  const Folder folder;
  raw_sql(folder / "plain.db", "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
  expect_refused_untouched(folder / "plain.db", "another program");
  raw_sql(folder / "marked.db", "PRAGMA application_id=42; CREATE TABLE theirs (x)");
  expect_refused_untouched(folder / "marked.db", "0x0000002a");
}

// SQLite deletes the file that the end of a journal names, once it has played the journal back.
TEST(StoreOpen, AJournalThatNamesASuperJournalIsRefusedAndNothingIsDeleted) {
  const Folder folder;
  make_store(folder / "a.db");
  make_store(folder / "mine.db");
  leave_wal_mode(folder / "a.db");
  write_bytes(folder / "thesis.tex", "thesis");
  fs::create_symlink(folder / "a.db", folder / "link.db");
  const std::string journal = hot_journal(folder / "a.db", (folder / "thesis.tex").string());
  write_bytes(folder / "a.db-journal", journal);
  const std::string before = bytes_of(folder / "a.db");

  for (const char* name : {"a.db", "link.db"}) {
    const fs::path path = folder / name;
    for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
      const std::string told = error_of(ErrorKind::store, [&] { Store::open(path, mode); });
      EXPECT_NE(told.find("a.db-journal' names a super-journal"), std::string::npos) << told;
      EXPECT_NE(told.find(fmt::format("database '{}'", path.string())), std::string::npos) << told;
    }
    Store mine = Store::open(folder / "mine.db", Mode::create);
    error_of(ErrorKind::store, [&] { mine.merge(path, {}); });
  }
  // Nor where there is no database yet.
  write_bytes(folder / "none.db-journal", journal);
  error_of(ErrorKind::store, [&] { Store::open(folder / "none.db", Mode::create); });
  EXPECT_FALSE(fs::exists(folder / "none.db"));
  EXPECT_EQ(bytes_of(folder / "thesis.tex"), "thesis");
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
  EXPECT_TRUE(bytes_of(folder / "a.db-journal") == journal);
}

TEST(StoreOpen, AJournalThatComesAfterTheCheckDeletesNothingEither) {
  const Folder folder;
  make_store(folder / "a.db");
  leave_wal_mode(folder / "a.db");
  write_bytes(folder / "thesis.tex", "thesis");
  Connection db((folder / "a.db").string(), Connection::Access::read_write, folder / "a.db");
  write_bytes(folder / "a.db-journal", hot_journal(folder / "a.db", (folder / "thesis.tex").string()));
  error_of(ErrorKind::store, [&] { db.integer("SELECT count(*) FROM run"); });
  EXPECT_EQ(bytes_of(folder / "thesis.tex"), "thesis");
}

TEST(StoreOpen, AJournalOfADeadWriterIsPlayedBack) {
  const Folder folder;
  make_store(folder / "a.db");
  leave_wal_mode(folder / "a.db");
  const std::string journal = hot_journal(folder / "a.db"), whole = bytes_of(folder / "a.db");
  for (const Mode mode : {Mode::read_only, Mode::read_write}) {
    std::string half = whole;
    half.replace(half.size() - 2048, 2048, 2048, '\xa5');
    write_bytes(folder / "a.db", half);
    write_bytes(folder / "a.db-journal", journal);
    EXPECT_EQ(count(Store::open(folder / "a.db", mode), "SELECT count(*) FROM attempt"), 3);
    EXPECT_FALSE(fs::exists(folder / "a.db-journal"));
  }
}

// SQLite would wait for a writer of a FIFO.
TEST(StoreOpen, WhatIsNoPlainFileBesideADatabaseIsRefused) {
  const Folder folder;
  make_store(folder / "a.db");
  leave_wal_mode(folder / "a.db");
  write_bytes(folder / "elsewhere", hot_journal(folder / "a.db"));
  for (const char* name : {"a.db-journal", "a.db-wal", "a.db-shm"}) {
    const auto refused = [&] {
      for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
        const std::string told = error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", mode); });
        EXPECT_NE(told.find(fmt::format("{}' next to it is not a plain file", name)), std::string::npos) << told;
      }
      fs::remove(folder / name);
    };
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    refused();
    fs::create_symlink(folder / "elsewhere", folder / name);
    refused();
  }
}

TEST(StoreOpen, ADatabaseFromANewerSyslabIsRefusedAndUntouched) {
  const Folder folder;
  make_store(folder / "new.db");
  raw_sql(folder / "new.db", "PRAGMA user_version=999");
  expect_refused_untouched(folder / "new.db", "newer");
}

TEST(StoreOpen, ANewerVersionThatStandsOnlyInADeadWritersLogIsRefusedAndTheLogStays) {
  const Folder folder;
  make_store(folder / "new.db");
  const pid_t child = ::fork();
  if (child == 0) {
    Connection newer((folder / "new.db").string(), Connection::Access::read_write, folder / "new.db");
    newer.execute("PRAGMA user_version=999");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const std::string file = bytes_of(folder / "new.db");
  const std::string log = bytes_of(folder / "new.db-wal");
  ASSERT_FALSE(log.empty());
  for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
    EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "new.db", mode); }).find("newer"),
              std::string::npos);
    EXPECT_TRUE(bytes_of(folder / "new.db") == file) << "the log was folded into the file";
    EXPECT_TRUE(bytes_of(folder / "new.db-wal") == log) << "the log was changed";
  }
}

TEST(StoreOpen, ADamagedDatabaseIsRefusedAndUntouched) {
  const Folder folder;
  make_store(folder / "a.db", 200);
  const std::string whole = bytes_of(folder / "a.db");

  write_bytes(folder / "cut.db", whole.substr(0, whole.size() / 2));
  expect_refused_untouched(folder / "cut.db", "cut short");

  std::string scrambled = whole;  // pages 2 and on: the tables
  for (std::size_t i = 4096; i < scrambled.size(); i += 7) scrambled[i] = static_cast<char>(i * 31);
  write_bytes(folder / "scrambled.db", scrambled);
  const std::string before = bytes_of(folder / "scrambled.db");
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "scrambled.db", Mode::create); }), "");
  EXPECT_TRUE(bytes_of(folder / "scrambled.db") == before);
}

TEST(StoreOpen, DamageDeepInATableIsFoundBeforeAnythingIsWritten) {
  const Folder folder;
  make_store(folder / "a.db", 200);
  std::string bytes = bytes_of(folder / "a.db");
  // The last page belongs to some table's leaf: break its cell pointers only.
  for (std::size_t i = bytes.size() - 4096; i < bytes.size() - 4096 + 40; ++i) bytes[i] = '\x7f';
  write_bytes(folder / "a.db", bytes);
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::read_write); }).find("damaged"),
            std::string::npos);
  EXPECT_TRUE(bytes_of(folder / "a.db") == bytes);
}

TEST(StoreOpen, DamageIsATypeOfItsOwnWithTheFileAndWhatWasFound) {
  const Folder folder;
  make_store(folder / "a.db", 200);
  const std::string whole = bytes_of(folder / "a.db");
  const auto damage_of = [&](const std::string& name, const std::string& bytes) {
    const fs::path file = folder.path() / name;
    write_bytes(file, bytes);
    for (const Mode mode : {Mode::create, Mode::read_write, Mode::read_only}) {
      try {
        Store::open(file, mode);
        ADD_FAILURE() << name << " was opened, mode " << static_cast<int>(mode);
      } catch (const DamagedDatabase& damaged) {
        EXPECT_EQ(damaged.file(), file);
        EXPECT_NE(std::string(damaged.what()).find("\ntry: "), std::string::npos) << damaged.what();
        EXPECT_EQ(damaged.found().find('\n'), std::string::npos) << damaged.found();
      }
    }
  };
  damage_of("text.db", std::string(5000, 'x'));
  damage_of("cut.db", whole.substr(0, whole.size() / 2));
  damage_of("page.db", whole.substr(0, whole.size() - 4096) + std::string(4096, '\x7f'));
}

TEST(StoreOpen, AnEmptyOrMissingFileDoesNotCostTheRowsInItsLog) {
  const Folder folder;
  const fs::path log = folder / "a.db-wal";
  write_bytes(log, "rows");
  const auto refused = [&](const std::string& state) {
    const std::string message = error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::create); });
    EXPECT_NE(message.find(state + ", but its log"), std::string::npos) << message;
    EXPECT_EQ(bytes_of(log), "rows");
  };
  refused("it is missing");
  write_bytes(folder / "a.db", "");
  refused("it is empty");
  write_bytes(log, "");
  EXPECT_EQ(Store::open(folder / "a.db", Mode::create).schema_version(), embedded_schema().version());
}

TEST(StoreOpen, AnEmptyFileIsCalledEmpty) {
  const Folder folder;
  write_bytes(folder / "empty.db", "");
  for (const Mode mode : {Mode::read_write, Mode::read_only}) {
    const std::string message = error_of(ErrorKind::store, [&] { Store::open(folder / "empty.db", mode); });
    EXPECT_NE(message.find("empty.db', an empty file"), std::string::npos) << message;
  }
}

TEST(StoreOpen, AnEmptyFileBecomesAStoreAndAMissingOneOnlyWhenAskedFor) {
  const Folder folder;
  write_bytes(folder / "empty.db", "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "empty.db", Mode::read_only); }), "");
  EXPECT_EQ(Store::open(folder / "empty.db", Mode::create).schema_version(), embedded_schema().version());
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "none.db", Mode::read_write); }), "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "none.db", Mode::read_only); }), "");
  EXPECT_FALSE(fs::exists(folder / "none.db"));
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder / "no/folder.db", Mode::create); }).find("no folder"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::store, [&] { Store::open(folder.path(), Mode::create); }).find("folder"),
            std::string::npos);
}

TEST(StoreOpen, ANewFileIsItsUsersAlone) {
  const Folder folder;
  const mode_t before = ::umask(0);
  const auto restore = [](const mode_t* mask) { ::umask(*mask); };
  const std::unique_ptr<const mode_t, decltype(restore)> restored(&before, restore);
  const Store store = Store::open(folder / "a.db", Mode::create);
  for (const char* name : {"a.db", "a.db-wal", "a.db-shm"}) {
    const auto open_to = std::filesystem::status(folder / name).permissions();
    EXPECT_EQ(static_cast<unsigned>(open_to), 0600U) << name;
  }
}

TEST(StoreOpen, AFileThatALinkNamesIsItsUsersAlone) {
  const Folder folder;
  const mode_t before = ::umask(022);
  const auto restore = [](const mode_t* mask) { ::umask(*mask); };
  const std::unique_ptr<const mode_t, decltype(restore)> restored(&before, restore);
  fs::create_symlink("there.db", folder / "link.db");
  const Store store = Store::open(folder / "link.db", Mode::create);
  EXPECT_EQ(static_cast<unsigned>(fs::status(folder / "there.db").permissions()), 0600U);
}

TEST(StoreOpen, AReadOnlyFileIsReadAndNeverWritten) {
  const Folder folder;
  make_store(folder / "a.db");
  fs::permissions(folder / "a.db", fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const std::string before = bytes_of(folder / "a.db");
  const auto child = [&] {
    const Store store = Store::open(folder / "a.db", Mode::read_only);
    if (count(store, "SELECT count(*) FROM v_result WHERE metric = 'time'") != 3) return 1;
    const std::string refusal = error_of(ErrorKind::store, [&] { Store::open(folder / "a.db", Mode::create); });
    return refusal.find("read-only") == std::string::npos ? 2 : 0;
  };
  EXPECT_EQ(as_nobody(child), 0);
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
}

TEST(StoreOpen, AWritableFileInAFolderThatIsNotIsRefusedBeforeAnyWork) {
  const Folder folder;
  fs::create_directory(folder / "closed");
  make_store(folder / "closed" / "a.db");
  fs::permissions(folder / "closed" / "a.db", fs::perms::all);
  fs::permissions(folder / "closed", kNoWriting);
  const auto child = [&] {
    if (error_of(ErrorKind::store, [&] { Store::open(folder / "closed" / "a.db", Mode::create); }).empty()) return 1;
    const Store store = Store::open(folder / "closed" / "a.db", Mode::read_only);
    return count(store, "SELECT count(*) FROM attempt") == 3 ? 0 : 2;
  };
  EXPECT_EQ(as_nobody(child), 0);
  fs::permissions(folder / "closed", fs::perms::owner_all);  // so that it can be removed
}

TEST(StoreOpen, WhatADeadWriterLeftInTheLogIsReadFromAFolderThatCannotBeWritten) {
  const Folder folder;
  fs::create_directory(folder / "closed");
  const fs::path path = folder / "closed" / "a.db";
  // A child writes and dies without closing: its commits stand in the log alone.
  const pid_t child = ::fork();
  if (child == 0) {
    Store store = Store::open(path, Mode::create);
    const RowId run = store.begin_run(a_run(), a_plan(1));
    store.finish_attempt(run, an_attempt(0));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_GT(fs::file_size(path.string() + "-wal"), 0U);
  fs::remove(path.string() + "-shm");
  fs::permissions(path, fs::perms::others_read | fs::perms::owner_read);
  fs::permissions(path.string() + "-wal", fs::perms::others_read | fs::perms::owner_read);
  fs::permissions(folder / "closed", kNoWriting);
  const auto reader = [&] {
    return count(Store::open(path, Mode::read_only), "SELECT count(*) FROM metric") == 1 ? 0 : 1;
  };
  EXPECT_EQ(as_nobody(reader), 0);
  fs::permissions(folder / "closed", fs::perms::owner_all);  // so that it can be removed
}

TEST(StoreOpen, AStoreOpenedToReadRefusesEveryWrite) {
  const Folder folder;
  make_store(folder / "a.db");
  Store store = Store::open(folder / "a.db", Mode::read_only);
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.begin_run(a_run(), {}); }), "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.finish_attempt(1, an_attempt(0)); }), "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.heartbeat("x"); }), "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.close_abandoned(); }), "");
  EXPECT_NE(error_of(ErrorKind::store, [&] { store.merge(folder / "a.db"); }), "");
}

TEST(StoreOpen, ReadingLeavesNothingBesideTheFile) {
  const Folder folder;
  make_store(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  { EXPECT_EQ(count(Store::open(folder / "a.db", Mode::read_only), "SELECT count(*) FROM attempt"), 3); }
  EXPECT_TRUE(bytes_of(folder / "a.db") == before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(StoreOpen, ALocalFileUsesAWriteAheadLog) {
  const Folder folder;
  const Store store = Store::open(folder / "a.db", Mode::create);
  EXPECT_EQ(store.journal_mode(), "wal");
  EXPECT_TRUE(store.notices().empty());
}

TEST(StoreOpen, OnANetworkFileSystemARollbackJournalIsUsedAndSaidOnce) {
  const Folder folder;
  OpenOptions options = default_options();
  options.network_file_system = [](const fs::path&) { return std::optional<std::string>("NFS"); };
  Store store = Store::open(folder / "a.db", Mode::create, options);
  EXPECT_EQ(store.journal_mode(), "delete");
  ASSERT_EQ(store.notices().size(), 1U);
  EXPECT_NE(store.notices()[0].find("NFS"), std::string::npos);
  const RowId run = store.begin_run(a_run(), a_plan(1));
  store.finish_attempt(run, an_attempt(0));
  EXPECT_FALSE(fs::exists(folder / "a.db-wal"));
}

TEST(StoreOpen, AFileMovedToANetworkFileSystemLeavesItsLogBehind) {
  const Folder folder;
  make_store(folder / "a.db");
  OpenOptions options = default_options();
  options.network_file_system = [](const fs::path&) { return std::optional<std::string>("Lustre"); };
  const Store store = Store::open(folder / "a.db", Mode::read_write, options);
  EXPECT_EQ(store.journal_mode(), "delete");
  EXPECT_EQ(count(store, "SELECT count(*) FROM attempt"), 3);
}

TEST(FileSystem, NetworkTypesAreToldByTheirMagicNumbers) {
  EXPECT_EQ(network_file_system_name(0x6969), "NFS");
  EXPECT_EQ(network_file_system_name(0x0BD00BD0), "Lustre");
  EXPECT_EQ(network_file_system_name(0x47504653), "GPFS");
  EXPECT_EQ(network_file_system_name(static_cast<long>(static_cast<int>(0xFF534D42))), "CIFS") << "sign-extended";
  EXPECT_EQ(network_file_system_name(0xEF53), std::nullopt) << "ext4";
  EXPECT_EQ(network_file_system_name(0x01021994), std::nullopt) << "tmpfs";
}

TEST(StoreOpen, NamesWithSpacesAndSignsAreOnlyNames) {
  const Folder folder;
  for (const char* name : {"a b?mode=memory.db", "100%.db", "a#b.db", "file:x.db"}) {
    make_store(folder / name);
    EXPECT_EQ(count(Store::open(folder.path() / name, Mode::read_only), "SELECT count(*) FROM attempt"), 3) << name;
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
}

TEST(StoreOpen, StoredRowsCannotBeChangedOrDeleted) {
  const Folder folder;
  make_store(folder / "a.db");
  Connection connection((folder / "a.db").string(), Connection::Access::read_write, folder / "a.db");
  for (const char* table :
       {"environment", "build", "implementation", "case_def", "run", "plan_case", "rung_fact", "attempt",
        "attempt_event", "attempt_facts", "series", "sample", "metric", "check_result", "schema_migration"}) {
    const std::string name = table;
    const std::string column = connection.text("SELECT name FROM pragma_table_info('" + name + "') LIMIT 1");
    for (const std::string& sql : {"DELETE FROM " + name, "UPDATE " + name + " SET " + column + " = " + column,
                                   "INSERT OR REPLACE INTO " + name + " SELECT * FROM " + name}) {
      EXPECT_NE(error_of(ErrorKind::store, [&] { connection.execute(sql); }).find("append-only"), std::string::npos)
          << sql;
    }
  }
}

}  // namespace
}  // namespace syslab::store
