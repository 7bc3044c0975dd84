#include "store/open.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/files/secret.hpp"
#include "core/text/units.hpp"
#include "store/damaged.hpp"
#include "store/file_header.hpp"
#include "store/other_log.hpp"
#include "store/schema_check.hpp"

namespace syslab::store {
namespace {

namespace fs = std::filesystem;

// Databases up to this size are checked whole before they are used (about 6 ms of CPU a MiB). Damage deep in a larger
// one is an error when it is met, and the transaction that met it is rolled back.
constexpr std::int64_t kWholeCheckBytes = 4 << 20;

// A write beyond RLIMIT_FSIZE raises SIGXFSZ, which kills by default; ignored, it is an error that SQLite reports.
void let_size_limits_be_errors() {
  struct sigaction found {};
  if (::sigaction(SIGXFSZ, nullptr, &found) == 0 && found.sa_handler == SIG_DFL) ::signal(SIGXFSZ, SIG_IGN);
}

bool nonempty(const fs::path& path) {
  std::error_code missing;
  const std::uintmax_t size = fs::file_size(path, missing);
  return !missing && size > 0;
}

fs::path beside(const fs::path& path, const char* suffix) { return path.string() + suffix; }

// Bytes 18 and 19 of the header are 2 for a file in WAL mode. That lasts when all have closed it.
bool is_wal_file(Connection& connection) { return connection.text("PRAGMA journal_mode") == "wal"; }

void check_small_file(Connection& connection) {
  // With what is in a write-ahead log, and is not yet in the file.
  if (connection.integer("PRAGMA page_count") * connection.integer("PRAGMA page_size") > kWholeCheckBytes) return;
  require_whole(connection);
}

// Through SQLite, so with a write-ahead log taken into account, which the file's own first bytes do not show.
std::int64_t accepted_version(Connection& connection, int newest) {
  const std::int64_t version = connection.integer("PRAGMA user_version");
  require_known_version(connection.shown_as(), version, newest);
  return version;
}

void use_rollback_journal(Connection& connection, const std::string& file_system, std::vector<std::string>& notices) {
  // EXTRA: a transaction ends with the removal of the journal, which a power cut would undo until the folder is synced.
  connection.execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA");
  notices.push_back(fmt::format(
      "'{}' lies on a network file system ({}): using a rollback journal, which is slower, and safe only if "
      "its locks work. Better: --db on a local disk, then `syslab merge`",
      connection.shown_as().string(), file_system));
}

void use_wal(Connection& connection) {
  // The switch needs the file exclusively for a moment and does not wait by the busy timeout; another start may be
  // doing the same.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!is_wal_file(connection)) {
    try {
      connection.execute("PRAGMA journal_mode=WAL");
    } catch (const Error&) {
      if (std::chrono::steady_clock::now() > deadline) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  connection.execute("PRAGMA synchronous=NORMAL");  // Transaction::commit() syncs
}

// Of a file without a byte, which is there, and of none.
std::string no_database(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none) ? fmt::format("there is no database in '{}', an empty file", path.string())
                                : fmt::format("there is no database '{}'", path.string());
}

// --- reading --------------------------------------------------------------------------------------------------------

constexpr const char* kReadWrite = "mode=rw";
constexpr const char* kReadOnly = "mode=ro";
constexpr const char* kImmutable = "mode=ro&immutable=1";

// URI parameters by which `path` can be read, best first. A file that may be written is opened so, although nothing
// will be (query_only): only then are the -wal and -shm files, that every reader of a WAL database needs, cleared away
// on closing. `immutable` reads past locks, and only where no -wal says that somebody may be writing.
std::vector<const char*> ways_to_read(const fs::path& path) {
  std::vector<const char*> ways;
  const fs::path folder = fs::absolute(path).parent_path();
  const bool wal_there = nonempty(beside(path, "-wal"));
  if (::access(path.c_str(), W_OK) == 0 && ::access(folder.c_str(), W_OK) == 0) {
    ways.push_back(kReadWrite);
  }
  ways.push_back(wal_there || nonempty(beside(path, "-journal")) ? kReadOnly : kImmutable);
  return ways;
}

// To attach a file while we hold it open to write: only as a reader, so that no lock of ours stops its writers.
std::string attach_uri(const fs::path& path, const char* way) {
  return file_uri(path, way == kReadWrite ? kReadOnly : way);
}

void read_by(OpenedFile& file, const fs::path& path, const char* way, const fs::path& shown_as) {
  file.connection = std::make_unique<Connection>(file_uri(path, way), Connection::Access::read_write, shown_as);
  file.connection->integer("SELECT count(*) FROM sqlite_master");
  file.uri = attach_uri(path, way);
}

void copy_with_companions(const fs::path& path, const fs::path& target) {
  for (const char* suffix : {"", "-wal", "-journal"}) {
    std::error_code failed;
    if (*suffix != '\0' && !nonempty(beside(path, suffix))) continue;
    fs::copy_file(beside(path, suffix), beside(target, suffix), failed);
    if (failed) throw_errno(ErrorKind::store, fmt::format("copy '{}'", path.string()), failed.value(), "copy_file");
    fs::permissions(beside(target, suffix), fs::perms::owner_read | fs::perms::owner_write, failed);
  }
}

void connect_for_reading(OpenedFile& file, const fs::path& path) {
  for (const char* way : ways_to_read(path)) {
    try {
      read_by(file, path, way, path);
      return;
    } catch (const Error&) {
      // Cannot be read in place this way; if a copy cannot be read either, the user gets that error.
    }
  }
  file.folder = std::make_unique<TemporaryFolder>();
  const fs::path copy = fs::path(file.folder->path()) / "copy.db";
  copy_with_companions(path, copy);
  read_by(file, copy, kReadWrite, path);
}

void migrate_a_copy(OpenedFile& file, const OpenOptions& options) {
  auto folder = std::make_unique<TemporaryFolder>();
  const fs::path copy = fs::path(folder->path()) / "migrated.db";
  file.connection->back_up_to(copy);
  file.connection->checkpoint_on_close();  // it is one of our files, and reading it leaves no additional files
  read_by(file, copy, kReadWrite, fs::path(file.connection->shown_as()));
  file.folder = std::move(folder);
  migrate(*file.connection, options.schema, options.now(), /*keep_copy=*/false);
}

}  // namespace

void require_whole(Connection& connection) {
  std::string found = connection.text("PRAGMA integrity_check(1)");
  if (found == "ok") return;
  constexpr std::string_view kWhere = "*** in database main ***\n";
  if (found.starts_with(kWhere)) found.erase(0, kWhere.size());
  std::ranges::replace(found, '\n', ' ');
  throw DamagedDatabase(connection.shown_as(), "it is damaged: " + found);
}

OpenOptions default_options() {
  return {embedded_schema(), [](const fs::path& path) { return network_file_system(path); }, [] { return utc_now(); },
          this_writer(), [] { return secret("runs"); }};
}

OpenedFile open_for_writing(const fs::path& path, bool create, const OpenOptions& options) {
  let_size_limits_be_errors();
  const int newest = options.schema.version();
  const FileState state = inspect_file(path, newest);
  if (state == FileState::absent && !create) {
    throw Error(ErrorKind::store, no_database(path));
  }
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder)) {
    throw Error(ErrorKind::store, fmt::format("cannot make database '{}': there is no folder '{}'; make it first",
                                              path.string(), folder.string()));
  }
  if (state == FileState::absent && ::access(folder.c_str(), W_OK | X_OK) != 0) {
    const int refused = errno;
    throw Error(ErrorKind::store,
                fmt::format("cannot make database '{}': the folder '{}' may not be written ({}); choose another place "
                            "with --db FILE or SYSLAB_DB",
                            path.string(), folder.string(), std::generic_category().message(refused)));
  }
  if (state == FileState::ours) refuse_other_log(path);

  OpenedFile file;
  file.uri = file_uri(path, create ? "mode=rwc" : "mode=rw");
  file.connection = std::make_unique<Connection>(
      file.uri, create ? Connection::Access::create : Connection::Access::read_write, path);
  Connection& connection = *file.connection;
  if (connection.is_read_only()) {  // SQLite silently opens a file that it may not write
    throw Error(ErrorKind::store, fmt::format("database '{}' is read-only here: `query` and `report` work; to run, "
                                              "choose another file with --db",
                                              path.string()));
  }
  const std::int64_t version = accepted_version(connection, newest);
  require_our_schema(connection, options.schema);
  if (version > 0) {
    check_small_file(connection);
    verify_history(connection, options.schema);
  }
  if (const auto copy = migrate(connection, options.schema, options.now(), /*keep_copy=*/true)) {
    file.notices.push_back(fmt::format("'{}' was brought to schema version {}; the file as it was: '{}'", path.string(),
                                       newest, copy->string()));
  }
  if (const auto network = options.network_file_system(path)) {
    use_rollback_journal(connection, *network, file.notices);
  } else {
    use_wal(connection);
  }
  make_views(connection, options.schema);
  connection.execute(options.schema.checks);
  Transaction can_write(connection);  // a folder or disk that is not writable shows here, before any work
  connection.checkpoint_on_close();
  return file;
}

OpenedFile open_for_reading(const fs::path& path, const OpenOptions& options) {
  const int newest = options.schema.version();
  if (inspect_file(path, newest) == FileState::absent) {
    throw Error(ErrorKind::store, fmt::format("{}: `syslab run` makes one, --db names another", no_database(path)));
  }
  refuse_other_log(path);
  OpenedFile file;
  connect_for_reading(file, path);
  const std::int64_t version = accepted_version(*file.connection, newest);
  require_our_schema(*file.connection, options.schema);
  check_small_file(*file.connection);
  if (version == newest) {
    verify_history(*file.connection, options.schema);
  } else {
    migrate_a_copy(file, options);
  }
  make_views(*file.connection, options.schema);
  file.connection->execute("PRAGMA query_only=ON");
  file.connection->checkpoint_on_close();
  return file;
}

}  // namespace syslab::store
