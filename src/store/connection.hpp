// Owners of SQLite's handles: a connection, a statement, a transaction. Every failure becomes an Error(store) that
// says which file and what SQLite found. The rest of the room speaks to SQLite through these three.
//
//   Transaction write(db);                         // BEGIN IMMEDIATE; rolled back unless committed
//   db.cached("INSERT INTO run (uid) VALUES (?)").run(uid);
//   write.commit();
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace syslab::store {

class Connection;

// A prepared statement. Texts are copied when they are bound; bytes that are not UTF-8 (a worker's standard error may
// hold anything) become U+FFFD, because one bad byte must not make a result unreadable as JSON. NaN binds as NULL.
class Statement {
 public:
  Statement(Connection& connection, std::string_view sql);

  void bind(int index, std::int64_t value);
  void bind(int index, int value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, bool value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, double value);
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bind(int index, std::nullopt_t);
  template <typename T>
  void bind(int index, const std::optional<T>& value) {
    if (value) {
      bind(index, *value);
    } else {
      bind(index, std::nullopt);
    }
  }
  void bind_blob(int index, std::string_view bytes);

  // Binds from the first parameter on; parameters left out stay NULL.
  template <typename... Values>
  Statement& with(const Values&... values) {
    reset();
    [[maybe_unused]] int index = 0;
    (bind(++index, values), ...);
    return *this;
  }
  // Binds, runs to the end and leaves the statement ready for the next values.
  template <typename... Values>
  void run(const Values&... values) {
    with(values...);
    while (step()) {
    }
    reset();
  }

  bool step();  // true: a row is there
  void reset();

  int columns() const;
  int type(int column) const;  // SQLITE_INTEGER, …
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

  sqlite3_stmt* handle() const { return handle_.get(); }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

class Connection {
 public:
  enum class Access { read_only, read_write, create };
  // `target` is a path, or a URI ("file:…?immutable=1"). Nothing is read yet. Closing does not checkpoint until
  // checkpoint_on_close() was called: a file that is about to be refused must stay as it is.
  Connection(const std::string& target, Access access, std::filesystem::path shown_as);
  Connection(Connection&&) = delete;  // statements point to it
  Connection& operator=(Connection&&) = delete;
  ~Connection() = default;

  void execute(const char* sql);
  // One statement without a result, kept for the next time.
  void carry_out(std::string_view sql);
  void execute(const std::string& sql) { execute(sql.c_str()); }
  std::int64_t integer(std::string_view sql);  // first column of the first row; 0 when there is none
  std::string text(std::string_view sql);
  // A statement that is kept prepared; reset before it is handed out. `sql` must be a literal.
  Statement& cached(std::string_view sql);

  void checkpoint_on_close();
  void wait_for_locks(std::chrono::milliseconds at_most);  // a minute, unless told otherwise
  // With a write-ahead log: what was committed is on the disk when this returns. (With a rollback journal it already
  // is.) After a failure nothing can be written any more, because what the system failed to write it may have dropped,
  // and what is written behind a gap is lost with a power cut.
  void sync_log();
  void require_synced() const;  // Error(store) after such a failure
  bool is_read_only() const;
  bool in_transaction() const;
  std::int64_t changes() const;  // rows changed by the last statement
  std::int64_t last_insert_rowid() const;
  // Copies this database to a file at `target`, which is synced before this returns.
  void back_up_to(const std::filesystem::path& target);

  // Throws Error(store) for SQLite's result `code`; DamagedDatabase where it says so. `action` reads "write the
  // attempt".
  [[noreturn]] void fail(int code, std::string_view action);

  const std::filesystem::path& shown_as() const { return shown_as_; }
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* connection) const noexcept;
  };
  static int wait_a_moment(void* connection, int times);

  std::filesystem::path shown_as_;
  std::chrono::milliseconds patience_{};  // with locks of other processes
  std::chrono::steady_clock::time_point waiting_since_;
  bool sync_failed_ = false;
  std::unique_ptr<sqlite3, Close> handle_;
  std::map<std::string_view, Statement> cache_;  // finalised before the connection closes
};

// BEGIN IMMEDIATE: waits its turn to write instead of failing in the middle. The destructor rolls back.
//
// commit() returns when what was written is on the disk. Where there is a log, it syncs behind the transaction and not
// in it: while one process waits for the disk others commit, and the system gives them one sync together.
class Transaction {
 public:
  explicit Transaction(Connection& connection);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();
  // For what nobody misses after a power cut, such as signs of life.
  void commit_unsynced();

 private:
  Connection& connection_;
  bool open_ = true;
};

// BEGIN, unless there is a transaction: while this lives, all that is read is of one state of the file.
class ReadTransaction {
 public:
  explicit ReadTransaction(Connection& connection);
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  ~ReadTransaction();

 private:
  Connection& connection_;
  bool begun_;
};

// A part of a transaction that can fail alone. The destructor undoes it unless it is kept.
class Savepoint {
 public:
  explicit Savepoint(Connection& connection);
  Savepoint(const Savepoint&) = delete;
  Savepoint& operator=(const Savepoint&) = delete;
  ~Savepoint();
  void keep();

 private:
  Connection& connection_;
  bool open_ = true;
};

// While this lives, a lock of another process is waited for only a moment.
class HurriedTurn {
 public:
  explicit HurriedTurn(Connection& connection);
  HurriedTurn(const HurriedTurn&) = delete;
  HurriedTurn& operator=(const HurriedTurn&) = delete;
  ~HurriedTurn();

 private:
  Connection& connection_;
};

// "file:/a%20b.db?mode=ro": a URI for `path`, with query parameters as given ("mode=ro&immutable=1").
std::string file_uri(const std::filesystem::path& path, std::string_view parameters);

}  // namespace syslab::store
