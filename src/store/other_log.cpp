#include "store/other_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "core/files/user_file.hpp"
#include "core/process/process.hpp"
#include "store/connection.hpp"
#include "store/damaged.hpp"
#include "store/file_header.hpp"
#include "store/open.hpp"

namespace syslab::store {
namespace {

namespace fs = std::filesystem;

// Databases up to this size are read whole together with their log: about a second.
constexpr std::uintmax_t kMostRead = std::uintmax_t{256} << 20;

bool is_nonempty(const fs::path& file) {
  std::error_code missing;
  const std::uintmax_t size = fs::file_size(file, missing);
  return !missing && size > 0;
}

// Each process that has a WAL database open holds a lock on this byte of the -shm file (UNIX_SHM_DMS in SQLite's
// os_unix.c).
bool is_locked(const fs::path& index) {
  constexpr off_t kDeadManSwitch = 128;
  const FileDescriptor opened(::open(index.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return errno != ENOENT;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kDeadManSwitch;
  lock.l_len = 1;
  return ::fcntl(opened.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Whether any process, this one included, has the database open.
bool is_open_somewhere(const fs::path& database) {
  bool open = true;
  without_cost_of_locks([&] { open = is_locked(database.string() + "-shm"); });
  return open;
}

using Runs = std::set<std::string>;

Runs runs_in(Connection& db) {
  Runs runs;
  Statement all(db, "SELECT uid FROM main.run");
  while (all.step()) runs.insert(all.text(0));
  return runs;
}

// Of the file alone; nothing where it cannot be read so, as in the middle of a checkpoint.
std::optional<Runs> runs_without_log(const fs::path& database, const fs::path& shown_as) {
  try {
    Connection alone(file_uri(database, "mode=ro&immutable=1"), Connection::Access::read_only, shown_as);
    return runs_in(alone);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// With the log, as SQLite would replay it; nothing where that makes no database. In exclusive mode SQLite keeps its
// index of the log in memory, and without locks (unix-none) it does so for a file that is opened to be read.
std::optional<Runs> runs_with_log(const fs::path& database, const fs::path& shown_as) {
  try {
    Connection both(file_uri(database, "mode=ro&vfs=unix-none"), Connection::Access::read_only, shown_as);
    both.execute("PRAGMA locking_mode=EXCLUSIVE");
    Runs runs = runs_in(both);
    std::error_code unknown;
    if (const auto size = fs::file_size(database, unknown); !unknown && size <= kMostRead) require_whole(both);
    return runs;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether a checkpoint had written parts of pages when it was cut off. What such a page says is no evidence: its log
// has the whole one, and both together were found whole. False of a file that is too large for that.
bool is_torn(const fs::path& database, const fs::path& shown_as) {
  try {
    if (fs::file_size(database) > kMostRead) return false;
    Connection alone(file_uri(database, "mode=ro&immutable=1"), Connection::Access::read_only, shown_as);
    require_whole(alone);
    return false;
  } catch (const DamagedDatabase&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void refuse_other_log(const fs::path& path) {
  const fs::path database = behind_links(path);
  const fs::path log = database.string() + "-wal";
  const auto is_left = [&] {
    return is_nonempty(log) && !is_nonempty(database.string() + "-journal") && !is_open_somewhere(database);
  };
  if (!is_left()) return;
  const std::optional<Runs> alone = runs_without_log(database, path);
  if (!alone) return;
  const std::optional<Runs> both = runs_with_log(database, path);
  const auto lost = both ? std::ranges::count_if(*alone, [&](const std::string& run) { return !both->contains(run); })
                         : std::ptrdiff_t{0};
  if (both && (lost == 0 || is_torn(database, path))) return;
  if (!is_left()) return;  // somebody has opened it meanwhile, and may have been writing while it was read here
  const std::string with_it = both ? fmt::format("{} of {} runs would be gone", lost, alone->size())
                                   : std::string("the file is no valid database");
  throw DamagedDatabase(path,
                        fmt::format("the log '{}' belongs to another database: with it {}", log.string(), with_it),
                        fmt::format("move '{}' away, or restore the database that it belongs to", log.string()));
}

}  // namespace syslab::store
