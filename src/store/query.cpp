// Queries by people and by the report: one statement that only reads, or a clear error.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "store/impl.hpp"
#include "store/json_columns.hpp"

namespace syslab::store {
namespace {

constexpr std::size_t kMostRows = 1'000'000;
constexpr std::size_t kMostBytes = std::size_t{512} << 20;
constexpr int kInstructionsBetweenLooks = 100'000;

bool is_one_of(const char* name, std::span<const char* const> names) {
  return std::ranges::any_of(names, [&](const char* known) { return sqlite3_stricmp(name, known) == 0; });
}

// Pragmas that change nothing. With an argument, those of the second list would set the value instead of reading it.
bool tells_only(const char* pragma, const char* argument) {
  static constexpr std::array kTellAboutAName{"table_info",  "table_xinfo",      "table_list",      "index_list",
                                              "index_xinfo", "foreign_key_list", "integrity_check", "quick_check"};
  static constexpr std::array kTellAlone{"user_version", "application_id", "page_count", "page_size"};
  return is_one_of(pragma, kTellAboutAName) || (argument == nullptr && is_one_of(pragma, kTellAlone));
}

// Functions that load code, take a pointer in a value, or are the inside of a full-text index.
bool reaches_outside(const char* function) {
  static constexpr std::array kRefused{
      "load_extension", "fts3_tokenizer", "fts5",       "fts5_decode", "fts5_expr",  "snippet", "offsets",
      "optimize",       "fts5_source_id", "matchinfo",  "highlight",   "bm25",       "carray",  "fts5_decode_none",
      "fts5_rowid",     "fts5_expr_tcl",  "rtreecheck", "rtreenode",   "rtreedepth", "edit",    "readfile",
      "writefile"};
  return is_one_of(function, kRefused);
}

// What a query may do. Read-only is not enough: "PRAGMA query_only=OFF" and ATTACH write nothing themselves.
int allow_reading(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second != nullptr && reaches_outside(second) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return tells_only(first, second) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_CREATE_TABLE:
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
      // Called while a table-valued pragma declares its columns. A statement that does the same by itself is not a
      // reader, and is refused for that.
      return SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

class ReadingOnly {
 public:
  explicit ReadingOnly(sqlite3* db) : db_(db) { sqlite3_set_authorizer(db_, allow_reading, nullptr); }
  ReadingOnly(const ReadingOnly&) = delete;
  ReadingOnly& operator=(const ReadingOnly&) = delete;
  ~ReadingOnly() { sqlite3_set_authorizer(db_, nullptr, nullptr); }

 private:
  sqlite3* db_;
};

// Interrupts a query that runs longer than it may.
class Deadline {
 public:
  Deadline(sqlite3* db, std::chrono::milliseconds longest) : db_(db), end_(std::chrono::steady_clock::now() + longest) {
    sqlite3_progress_handler(db_, kInstructionsBetweenLooks, is_over, this);
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() { sqlite3_progress_handler(db_, 0, nullptr, nullptr); }

 private:
  static int is_over(void* self) {
    return std::chrono::steady_clock::now() >= static_cast<const Deadline*>(self)->end_ ? 1 : 0;
  }

  sqlite3* db_;
  std::chrono::steady_clock::time_point end_;
};

std::vector<std::string> first_column(Connection& db, std::string_view sql) {
  std::vector<std::string> values;
  Statement statement(db, sql);
  while (statement.step()) values.push_back(statement.text(0));
  return values;
}

constexpr std::string_view kTablesAndViews =
    "SELECT name FROM (SELECT name, type FROM sqlite_schema UNION SELECT name, type FROM sqlite_temp_schema) "
    "WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name";
constexpr std::string_view kColumns =
    "SELECT DISTINCT c.name FROM (SELECT name, type FROM sqlite_schema UNION SELECT name, type FROM "
    "sqlite_temp_schema) m, "
    "pragma_table_xinfo(m.name) c WHERE m.type IN ('table', 'view')";
constexpr std::string_view kOwners =  // of a column, by its name
    "SELECT m.name FROM (SELECT name, type FROM sqlite_schema UNION SELECT name, type FROM sqlite_temp_schema) m, "
    "pragma_table_xinfo(m.name) c WHERE m.type IN ('table', 'view') AND c.name = '";

// SQLite says "no such column: sed"; we add the nearest names.
std::string with_nearest_names(Connection& db, const std::string& message) {
  const auto suggest = [&](std::string_view prefix, std::string_view candidates_sql) -> std::string {
    if (message.compare(0, prefix.size(), prefix) != 0) return {};
    std::string word = message.substr(prefix.size());
    if (const auto dot = word.rfind('.'); dot != std::string::npos) word.erase(0, dot + 1);
    const std::vector<std::string> candidates = first_column(db, candidates_sql);
    if (std::find(candidates.begin(), candidates.end(), word) != candidates.end()) {  // so `word` has no quotes in it
      const std::vector<std::string> owners = first_column(db, fmt::format("{}{}' ORDER BY 1", kOwners, word));
      return fmt::format(" in what this asks; it is one of {}", fmt::join(owners, ", "));
    }
    std::string text;
    for (const std::string& name : nearest(word, candidates)) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? text : fmt::format("; did you mean {}?", text);
  };
  const std::string table = suggest("no such table: ", kTablesAndViews);
  return message + (table.empty() ? suggest("no such column: ", kColumns) : table);
}

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, "query: " + why); }

// Owns a statement from a user's text; its errors are the user's, not the store's.
using UserStatement = std::unique_ptr<sqlite3_stmt, decltype([](sqlite3_stmt* s) { sqlite3_finalize(s); })>;

UserStatement prepare(Connection& db, const char* sql, const char** tail) {
  sqlite3_stmt* raw = nullptr;
  int code = SQLITE_OK;
  std::string message;
  {
    const ReadingOnly guard(db.handle());
    code = sqlite3_prepare_v2(db.handle(), sql, -1, &raw, tail);
    message = sqlite3_errmsg(db.handle());
  }
  UserStatement statement(raw);
  if (code == SQLITE_AUTH) refuse("only reading is allowed here: one SELECT (or VALUES, WITH … SELECT)");
  if ((code & 0xff) == SQLITE_ERROR) refuse(with_nearest_names(db, message));
  if (code != SQLITE_OK) db.fail(code, "read the query");
  return statement;
}

void bind(Connection& db, sqlite3_stmt* statement, int index, const Cell& cell) {
  int code = SQLITE_OK;
  switch (cell.type) {
    case Cell::Type::null:
      code = sqlite3_bind_null(statement, index);
      break;
    case Cell::Type::integer:
      code = sqlite3_bind_int64(statement, index, cell.integer);
      break;
    case Cell::Type::real:
      code = sqlite3_bind_double(statement, index, cell.real);
      break;
    case Cell::Type::text:
      code = sqlite3_bind_text64(statement, index, cell.text.data(), cell.text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
      break;
  }
  if (code != SQLITE_OK) db.fail(code, "bind a parameter");
}

Cell cell_at(sqlite3_stmt* row, int column) {
  Cell cell;
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      cell.type = Cell::Type::integer;
      cell.integer = sqlite3_column_int64(row, column);
      break;
    case SQLITE_FLOAT:
      cell.type = Cell::Type::real;
      cell.real = sqlite3_column_double(row, column);
      break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
      cell.type = Cell::Type::text;
      const void* data = sqlite3_column_blob(row, column);
      if (data != nullptr) {
        cell.text.assign(static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
      }
      break;
    }
    default:
      break;
  }
  return cell;
}

}  // namespace

std::string query_takes_longer(std::chrono::milliseconds longest) {
  return fmt::format(
      "query: this takes longer than {:g} s; narrow it with a WHERE or a LIMIT (a recursion needs an end)",
      std::chrono::duration<double>(longest).count());
}

ResultSet Store::query(const std::string& sql, const std::vector<Cell>& parameters,
                       std::chrono::milliseconds longest) const {
  Connection& db = impl_->db();
  if (sql.find('\0') != std::string::npos) refuse("the text has a zero byte in it");
  const char* tail = nullptr;
  const UserStatement statement = prepare(db, sql.c_str(), &tail);
  if (!statement) refuse("there is no statement");
  if (sqlite3_stmt_readonly(statement.get()) == 0) refuse("only reading is allowed here: one SELECT");
  // Comments and white space may follow, since they are not a statement.
  if (prepare(db, tail, &tail)) refuse("one statement at a time");
  const int wanted = sqlite3_bind_parameter_count(statement.get());
  if (wanted != static_cast<int>(parameters.size())) {
    refuse(fmt::format("the statement has {} parameters, {} values were given", wanted, parameters.size()));
  }
  for (int i = 0; i < wanted; ++i) bind(db, statement.get(), i + 1, parameters[static_cast<std::size_t>(i)]);

  ResultSet result;
  const int columns = sqlite3_column_count(statement.get());
  for (int i = 0; i < columns; ++i) result.columns.emplace_back(sqlite3_column_name(statement.get(), i));
  int code = SQLITE_OK;
  std::size_t bytes = 0;
  const Deadline deadline(db.handle(), longest);
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (result.rows.size() == kMostRows) {
      refuse(fmt::format("this gives more than {} rows; add a WHERE or a LIMIT", kMostRows));
    }
    auto& row = result.rows.emplace_back();
    row.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) {
      row.push_back(cell_at(statement.get(), i));
      bytes += sizeof(Cell) + row.back().text.size();
    }
    if (bytes > kMostBytes) {
      refuse(fmt::format("this gives more than {}; ask for fewer rows or columns", format_bytes(kMostBytes)));
    }
  }
  if (code == SQLITE_DONE) return result;
  if (code == SQLITE_INTERRUPT) {
    throw Error(ErrorKind::usage, query_takes_longer(longest));
  }
  if (std::string_view(sqlite3_errmsg(db.handle())) == "malformed JSON") {
    if (const std::string what = malformed_json_in(db); !what.empty()) throw Error(ErrorKind::store, what);
    refuse("malformed JSON");
  }
  const int primary = code & 0xff;
  // "malformed JSON", "integer overflow": the query's own mistakes, unlike a damaged or locked file.
  if (primary == SQLITE_ERROR || primary == SQLITE_MISMATCH || primary == SQLITE_TOOBIG)
    refuse(sqlite3_errmsg(db.handle()));
  db.fail(code, "run the query");
}

std::string Store::journal_mode() const { return impl_->db().text("PRAGMA journal_mode"); }

int Store::schema_version() const { return static_cast<int>(impl_->db().integer("PRAGMA user_version")); }

}  // namespace syslab::store
