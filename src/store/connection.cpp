#include "store/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <thread>

#include "core/files/user_file.hpp"
#include "store/damaged.hpp"
#include "store/file_header.hpp"
#include "store/json_columns.hpp"
#include "store/utf8.hpp"

namespace syslab::store {
namespace {

constexpr std::chrono::milliseconds kBusyTimeout{60'000};  // a merge of millions of rows takes less than this
// How often it is looked whether another process still holds a lock: at first, and when it has held it for some time.
constexpr std::chrono::milliseconds kShortLook{1}, kShortWait{200}, kLongLook{10};

constexpr std::string_view kDiskIsFull =
    "the disk is full; nothing of this write was kept and what was stored before is intact: free space and give the "
    "command again; `syslab resume` finishes a run that had begun";

// What a user can do about it, by primary result code and by what the system said. SQLite notes the latter with
// SQLITE_IOERR and SQLITE_CANTOPEN and keeps it: behind another code it is of an earlier failure.
std::string_view advice(int code, int system_error) {
  const bool no_room = system_error == ENOSPC || system_error == EDQUOT;
  switch (code & 0xff) {
    case SQLITE_FULL:
      return kDiskIsFull;
    case SQLITE_IOERR:
      if (no_room) return kDiskIsFull;
      return "the system refused to read or write (disk full, a file size limit, or a failing disk); nothing of this "
             "write was kept and what was stored before is intact";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process kept the file locked for a minute; wait for it, or give this run its own --db and "
             "`syslab "
             "merge` later";
    case SQLITE_READONLY:
      return "the file or its folder cannot be written: change its permissions or choose another --db";
    case SQLITE_CANTOPEN:
      if (no_room) return kDiskIsFull;
      [[fallthrough]];
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "the file, or a file beside it, cannot be opened: check that the folder exists and its permissions";
    case SQLITE_NOMEM:
      return "out of memory";
    default:
      return {};
  }
}

// SQLite's usual access to files, without super-journals. SQLite opens one before it deletes it, so this closes the gap
// between refuse_harmful_companions() and the moment at which SQLite reads the journal.
sqlite3_vfs* usual_files = nullptr;

int open_no_super_journal(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* opened_with) {
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_SUPER_JOURNAL) != 0) return SQLITE_CANTOPEN;
  return usual_files->xOpen(usual_files, name, file, flags, opened_with);
}

// Settings of SQLite in this process, made before the first connection.
bool set_up_sqlite() {
  // SQLite counts its memory under a lock, at each of some thousand allocations an attempt; nobody here asks it how
  // much.
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  usual_files = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs files = *usual_files;
  files.zName = "syslab";
  files.pNext = nullptr;
  files.xOpen = open_no_super_journal;
  return sqlite3_vfs_register(&files, /*makeDflt=*/1) == SQLITE_OK;
}

}  // namespace

// --- Statement ------------------------------------------------------------------------------------------------------

void Statement::Finalize::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

Statement::Statement(Connection& connection, std::string_view sql) : connection_(&connection) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(connection.handle(), sql.data(), static_cast<int>(sql.size()), &raw, /*pzTail=*/nullptr);
  handle_.reset(raw);
  if (code != SQLITE_OK) connection.fail(code, "prepare a statement");
}

void Statement::bind(int index, std::int64_t value) {
  if (const int code = sqlite3_bind_int64(handle_.get(), index, value)) connection_->fail(code, "bind an integer");
}

void Statement::bind(int index, double value) {
  if (const int code = sqlite3_bind_double(handle_.get(), index, value)) connection_->fail(code, "bind a number");
}

void Statement::bind(int index, std::string_view value) {
  const std::optional<std::string> repaired = repaired_utf8(value);
  const std::string_view text = repaired ? std::string_view(*repaired) : value;
  // An empty string_view may have a null pointer, which SQLite would take for NULL.
  const char* data = text.empty() ? "" : text.data();
  if (const int code = sqlite3_bind_text64(handle_.get(), index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8)) {
    connection_->fail(code, "bind a text");
  }
}

void Statement::bind(int index, std::nullopt_t) {
  if (const int code = sqlite3_bind_null(handle_.get(), index)) connection_->fail(code, "bind NULL");
}

void Statement::bind_blob(int index, std::string_view bytes) {
  const char* data = bytes.empty() ? "" : bytes.data();
  if (const int code = sqlite3_bind_blob64(handle_.get(), index, data, bytes.size(), SQLITE_TRANSIENT)) {
    connection_->fail(code, "bind bytes");
  }
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  connection_->fail(code, sqlite3_stmt_readonly(handle_.get()) != 0 ? "read" : "write");
}

void Statement::reset() {
  sqlite3_reset(handle_.get());  // repeats the error of the last step, which was already thrown
  sqlite3_clear_bindings(handle_.get());
}

int Statement::columns() const { return sqlite3_column_count(handle_.get()); }

int Statement::type(int column) const { return sqlite3_column_type(handle_.get(), column); }
bool Statement::is_null(int column) const { return type(column) == SQLITE_NULL; }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_.get(), column); }

std::string Statement::text(int column) const {
  // Bytes of a blob come as they are; sqlite3_column_blob leaves a text as it is, too.
  const void* data = type(column) == SQLITE_BLOB ? sqlite3_column_blob(handle_.get(), column)
                                                 : sqlite3_column_text(handle_.get(), column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

// --- Connection -----------------------------------------------------------------------------------------------------

void Connection::Close::operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }

Connection::Connection(const std::string& target, Access access, std::filesystem::path shown_as)
    : shown_as_(std::move(shown_as)) {
  // Only the user may read what was measured. SQLite gives its additional files the database's own mode.
  if (access == Access::create) {
    const int made = ::open(behind_links(shown_as_).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made >= 0) ::close(made);
  }
  int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  switch (access) {
    case Access::read_only:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Access::read_write:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Access::create:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
  }
  static const bool is_set_up = set_up_sqlite();
  if (!is_set_up) throw Error(ErrorKind::internal, "SQLite takes no layer over its files");
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(target.c_str(), &raw, flags, nullptr);
  handle_.reset(raw);
  if (code != SQLITE_OK) fail(code, "open the file");
  if (const char* file = sqlite3_db_filename(raw, "main"); file != nullptr && *file != '\0') {  // links followed
    refuse_harmful_companions(file, shown_as_);
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_LOOKASIDE, nullptr, 1200,
                    400);  // a statement's small pieces, ten times as many
  wait_for_locks(kBusyTimeout);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // No function and no virtual table that may do harm is evaluated on behalf of a file's schema; our temporary views
  // may use them.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);  // "x" is a column, never a text
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  // recursive_triggers: without it INSERT OR REPLACE would delete past the append-only triggers.
  execute("PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON; PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON");
}

void Connection::execute(const char* sql) {
  if (const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr)) {
    std::string_view shown = sql;
    shown = shown.substr(0, shown.find('\n'));
    fail(code, fmt::format("run \"{}\"", shown.substr(0, 80)));
  }
}

void Connection::carry_out(std::string_view sql) {
  struct Done {
    Statement& statement;
    ~Done() { statement.reset(); }  // one that failed would keep its transaction busy
  } done{cached(sql)};
  done.statement.step();
}

std::int64_t Connection::integer(std::string_view sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Connection::text(std::string_view sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.text(0) : std::string();
}

Statement& Connection::cached(std::string_view sql) {
  const auto found = cache_.find(sql);
  Statement& statement =
      found != cache_.end() ? found->second : cache_.emplace(sql, Statement(*this, sql)).first->second;
  statement.reset();
  return statement;
}

// SQLite's own waiting grows to a tenth of a second between two looks, and a transaction takes a fraction of a
// millisecond: many writers would keep each other waiting for nothing.
int Connection::wait_a_moment(void* connection, int times) {
  auto& self = *static_cast<Connection*>(connection);
  const auto now = std::chrono::steady_clock::now();
  if (times == 0) self.waiting_since_ = now;
  const auto waited = now - self.waiting_since_;
  if (waited >= self.patience_) return 0;
  std::this_thread::sleep_for(waited < kShortWait ? kShortLook : kLongLook);
  return 1;
}

void Connection::wait_for_locks(std::chrono::milliseconds at_most) {
  patience_ = at_most;
  sqlite3_busy_handler(handle_.get(), wait_a_moment, this);
}

void Connection::sync_log() {
  sqlite3_file* log = nullptr;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log == nullptr || log->pMethods == nullptr) return;
  sync_failed_ = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) != SQLITE_OK;
  require_synced();
}

void Connection::require_synced() const {
  if (!sync_failed_) return;
  throw Error(
      ErrorKind::store,
      fmt::format("database '{}': the system could not bring what was written to the disk (disk I/O error); what "
                  "was acknowledged before is intact, nothing more is written: see `dmesg` for the disk, then "
                  "`syslab resume`",
                  shown_as_.string()),
      "fdatasync");
}

HurriedTurn::HurriedTurn(Connection& connection) : connection_(connection) {
  connection_.wait_for_locks(std::chrono::milliseconds(200));
}
HurriedTurn::~HurriedTurn() { connection_.wait_for_locks(kBusyTimeout); }

void Connection::checkpoint_on_close() {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

bool Connection::is_read_only() const { return sqlite3_db_readonly(handle_.get(), "main") == 1; }
bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
std::int64_t Connection::changes() const { return sqlite3_changes64(handle_.get()); }
std::int64_t Connection::last_insert_rowid() const { return sqlite3_last_insert_rowid(handle_.get()); }

void Connection::back_up_to(const std::filesystem::path& target) {
  {
    Connection copy(target.string(), Access::create, target);
    copy.checkpoint_on_close();
    sqlite3_backup* backup = sqlite3_backup_init(copy.handle(), "main", handle_.get(), "main");
    if (backup == nullptr) copy.fail(sqlite3_errcode(copy.handle()), "copy the database");
    const int stepped = sqlite3_backup_step(backup, -1);
    const int finished = sqlite3_backup_finish(backup);
    if (stepped != SQLITE_DONE) copy.fail(finished != SQLITE_OK ? finished : stepped, "copy the database");
    // One file, without additional files: a copy of a WAL database says it is one, too.
    copy.execute("PRAGMA journal_mode=DELETE");
  }
  const int fd = ::open(target.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) throw_errno(ErrorKind::store, fmt::format("sync the copy '{}'", target.string()), error, "fsync");
}

void Connection::fail(int code, std::string_view action) {
  if (code == SQLITE_IOERR_FSYNC) sync_failed_ = true;
  const std::string found = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const int system_error = handle_ ? sqlite3_system_errno(handle_.get()) : 0;
  if (found == "malformed JSON") {
    if (const std::string what = malformed_json_in(*this); !what.empty()) throw Error(ErrorKind::store, what);
  }
  std::string message = fmt::format("database '{}': cannot {}: {}", shown_as_.string(), action, found);
  const int primary = code & 0xff;
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
    throw DamagedDatabase(shown_as_, fmt::format("it is damaged: cannot {}: {}", action, found));
  }
  if (system_error != 0 && (primary == SQLITE_IOERR || primary == SQLITE_FULL || primary == SQLITE_CANTOPEN)) {
    message += fmt::format(" ({})", std::system_category().message(system_error));
  }
  if (const std::string_view help = advice(code, system_error); !help.empty()) message += fmt::format(". {}", help);
  throw Error(ErrorKind::store, message, fmt::format("sqlite3 {}", sqlite3_errstr(code)));
}

// --- Transaction ----------------------------------------------------------------------------------------------------

Transaction::Transaction(Connection& connection) : connection_(connection) {
  connection_.require_synced();
  connection_.carry_out("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // SQLite may have rolled back by itself (disk full); a second ROLLBACK would be an error nobody can act on.
  if (open_ && connection_.in_transaction()) sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  commit_unsynced();
  connection_.sync_log();
}

void Transaction::commit_unsynced() {
  connection_.carry_out("COMMIT");
  open_ = false;
}

ReadTransaction::ReadTransaction(Connection& connection)
    : connection_(connection), begun_(!connection.in_transaction()) {
  if (begun_) connection_.execute("BEGIN");
}

ReadTransaction::~ReadTransaction() {
  try {
    if (begun_ && connection_.in_transaction()) connection_.execute("ROLLBACK");  // nothing was written
  } catch (const Error&) {
    // It ends with the connection, which is about to be closed because of the error that led here.
  }
}

Savepoint::Savepoint(Connection& connection) : connection_(connection) { connection_.carry_out("SAVEPOINT part"); }

Savepoint::~Savepoint() {
  if (!open_ || !connection_.in_transaction()) return;
  sqlite3_exec(connection_.handle(), "ROLLBACK TO part; RELEASE part", nullptr, nullptr, nullptr);
}

void Savepoint::keep() {
  connection_.carry_out("RELEASE part");
  open_ = false;
}

std::string file_uri(const std::filesystem::path& path, std::string_view parameters) {
  std::string uri = "file:";
  for (const char character : std::filesystem::absolute(path).string()) {
    const auto byte = static_cast<unsigned char>(character);
    if (std::isalnum(byte) != 0 || std::string_view("/._-~").find(character) != std::string_view::npos) {
      uri += character;
    } else {
      uri += fmt::format("%{:02X}", byte);
    }
  }
  if (!parameters.empty()) uri += fmt::format("?{}", parameters);
  return uri;
}

}  // namespace syslab::store
