// merge: everything of another file that is not here yet, in one transaction.
//
// Rows are found again by what names them everywhere: uids, or keys made of uids and of nothing that counts up within
// one file. So merging twice changes nothing, and the order of merging does not matter.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "store/impl.hpp"

namespace syslab::store {
namespace {

struct Reference {
  std::string_view column, table;  // `column` holds a local id of `table`
};

struct TableToMerge {
  std::string_view name;
  std::array<Reference, 3> references{};
  // Columns that name a row everywhere, where others refer to it by its local id. Empty: nobody does.
  std::string_view identity = {};
};

constexpr Reference kOfAttempt{"attempt_id", "attempt"};

// In an order in which every reference goes to a table above.
constexpr std::array kFacts{
    TableToMerge{"environment", {}, "uid"},
    TableToMerge{"build", {}, "uid"},
    TableToMerge{"implementation", {}, "uid"},
    TableToMerge{"case_def", {}, "uid"},
    TableToMerge{"run", {{{"environment_id", "environment"}, {"build_id", "build"}}}, "uid"},
    TableToMerge{"plan_case", {{{"run_id", "run"}, {"case_id", "case_def"}, {"implementation_id", "implementation"}}}},
    TableToMerge{"pin"},
    TableToMerge{"submission", {}, "uid"},
    TableToMerge{"submission_implementation",
                 {{{"submission_id", "submission"}, {"implementation_id", "implementation"}}}},
    TableToMerge{"comparison", {{{"run_id", "run"}}}, "uid"},
    TableToMerge{"comparison_block", {{{"comparison_id", "comparison"}}}},
    TableToMerge{"comparison_sweep", {{{"comparison_id", "comparison"}}}},
};
constexpr TableToMerge kAttempt{"attempt", {{{"run_id", "run"}}}, "uid"};
constexpr TableToMerge kComparisonAttempt{"comparison_attempt", {{{"comparison_id", "comparison"}, kOfAttempt}}};
constexpr TableToMerge kEvents{"attempt_event", {{kOfAttempt}}};
constexpr std::array kFindings{
    TableToMerge{"attempt_facts", {{kOfAttempt}}},
    TableToMerge{"series", {{kOfAttempt}}, "attempt_id, name, unit"},
    TableToMerge{"sample", {{{"series_id", "series"}}}},
    TableToMerge{"metric", {{kOfAttempt}}},
    TableToMerge{"check_result", {{kOfAttempt}}, "uid"},
    TableToMerge{"artifact", {{kOfAttempt}}, "uid"},
    TableToMerge{"device_state", {{kOfAttempt}}},
    TableToMerge{"mem_event", {{kOfAttempt}}},
    TableToMerge{"kernel_stat", {{kOfAttempt}}},
    TableToMerge{"span", {{kOfAttempt}}},
};

std::string_view reference_of(const TableToMerge& table, std::string_view column) {
  for (const Reference& reference : table.references) {
    if (reference.column == column) return reference.table;
  }
  return {};
}

// The columns to copy: all but a local id and what is generated.
std::vector<std::string> columns_of(Connection& db, std::string_view table) {
  std::vector<std::string> columns;
  Statement found(db, "SELECT name FROM pragma_table_info(?) WHERE name <> 'id'");
  found.with(table);
  while (found.step()) columns.push_back(found.text(0));
  return columns;
}

// "FROM other.series o JOIN map_attempt ref0 ON …" and the expression of each column, local ids translated.
struct Translation {
  std::string from;
  std::vector<std::string> columns, expressions;
};

Translation translate(Connection& db, const TableToMerge& table) {
  Translation t;
  t.from = fmt::format("FROM other.{} o", table.name);
  t.columns = columns_of(db, table.name);
  for (const std::string& column : t.columns) {
    const std::string_view target = reference_of(table, column);
    if (target.empty()) {
      t.expressions.push_back("o." + column);
    } else {
      t.from += fmt::format(" JOIN temp.map_{0} r_{0} ON r_{0}.other_id = o.{1}", target, column);
      t.expressions.push_back(fmt::format("r_{}.id", target));
    }
  }
  return t;
}

std::string joined(std::span<const std::string> parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

// temp.map_TABLE: the other file's ids and ours.
void make_map(Connection& db, const TableToMerge& table) {
  const Translation t = translate(db, table);
  std::string condition;
  for (std::size_t i = 0; i < t.columns.size(); ++i) {
    if (fmt::format(", {},", table.identity).find(fmt::format(" {},", t.columns[i])) == std::string::npos) continue;
    condition += fmt::format("{}m.{} = {}", condition.empty() ? "" : " AND ", t.columns[i], t.expressions[i]);
  }
  db.execute(
      fmt::format("CREATE TEMP TABLE map_{0} (other_id INTEGER PRIMARY KEY, id INTEGER NOT NULL);"
                  "INSERT INTO temp.map_{0} SELECT o.id, m.id {1} JOIN main.{0} m ON {2}",
                  table.name, t.from, condition));
}

std::int64_t copy_rows(Connection& db, const TableToMerge& table) {
  const Translation t = translate(db, table);
  db.execute(fmt::format("INSERT INTO main.{} ({}) SELECT {} {} WHERE true ON CONFLICT DO NOTHING", table.name,
                         joined(t.columns), joined(t.expressions), t.from));
  const std::int64_t added = db.changes();
  if (!table.identity.empty()) make_map(db, table);
  return added;
}

// Rows that both files call the same must be the same: a uid that means two things would mix their results.
void check_same(Connection& db, const TableToMerge& table, std::string_view key, const std::filesystem::path& other) {
  const Translation t = translate(db, table);
  std::string same_key, same_row;
  for (std::size_t i = 0; i < t.columns.size(); ++i) {
    const bool is_key = fmt::format(", {},", key).find(fmt::format(" {},", t.columns[i])) != std::string::npos;
    std::string& target = is_key ? same_key : same_row;
    target += fmt::format("{}m.{} IS {}", target.empty() ? "" : " AND ", t.columns[i], t.expressions[i]);
  }
  Statement differing(db, fmt::format("SELECT m.{} {} JOIN main.{} m ON {} WHERE NOT ({}) LIMIT 1",
                                      key.substr(0, key.find(',')), t.from, table.name, same_key, same_row));
  if (differing.step()) {
    throw Error(ErrorKind::store, fmt::format("cannot merge '{}': its {} {} is not the one of that name in '{}'; "
                                              "nothing was merged",
                                              other.string(), table.name, differing.text(0), db.shown_as().string()));
  }
}

// Findings are written with the end of their attempt, in one transaction. So those of attempts that have a real end
// here are here, and only the others are asked for: merging a file again costs little.
void forget_finished_attempts(Connection& db) {
  db.execute(
      "DELETE FROM temp.map_attempt WHERE id IN (SELECT attempt_id FROM main.attempt_event "
      "WHERE status NOT IN ('started', 'heartbeat', 'aborted'))");
}

void drop_map(Connection& db, const TableToMerge& table) {
  if (!table.identity.empty()) db.execute(fmt::format("DROP TABLE temp.map_{}", table.name));
}

MergeCounts merge_attached(Connection& db, const std::filesystem::path& other) {
  MergeCounts counts;
  Transaction transaction(db);
  for (const TableToMerge& table : kFacts) {
    const std::int64_t added = copy_rows(db, table);
    if (table.name == "run") {
      counts.runs = added;
      check_same(db, table, "uid", other);
    } else if (table.name == "plan_case") {
      check_same(db, table, "run_id, seq", other);
    }
  }
  counts.attempts = copy_rows(db, kAttempt);
  counts.already_there = db.integer("SELECT count(*) FROM other.attempt") - counts.attempts;
  check_same(db, kAttempt, "uid", other);
  copy_rows(db, kComparisonAttempt);  // before finished attempts are forgotten: the comparison may be new

  // Findings before events: an end that arrives with this merge must not make its own findings look merged already.
  db.execute("CREATE TEMP TABLE every_attempt AS SELECT * FROM temp.map_attempt");
  forget_finished_attempts(db);
  for (const TableToMerge& table : kFindings) copy_rows(db, table);
  db.execute("DELETE FROM temp.map_attempt; INSERT INTO temp.map_attempt SELECT * FROM temp.every_attempt");
  copy_rows(db, kEvents);

  for (const TableToMerge& table : kFacts) drop_map(db, table);
  for (const TableToMerge& table : kFindings) drop_map(db, table);
  drop_map(db, kAttempt);
  db.execute("DROP TABLE temp.every_attempt");
  transaction.commit();
  return counts;
}

// The other file beside ours, for as long as this lives.
class Attached {
 public:
  Attached(Connection& db, const std::string& uri) : db_(db) { Statement(db, "ATTACH DATABASE ? AS other").run(uri); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    try {
      db_.execute("DETACH DATABASE other");
    } catch (const Error&) {
      // Still in use after a failure: it goes when the connection closes.
    }
  }

 private:
  Connection& db_;
};

}  // namespace

MergeCounts Store::merge(const std::filesystem::path& other) {
  Connection& db = impl_->writable();
  std::error_code ignored;
  if (std::filesystem::equivalent(impl_->path, other, ignored)) {
    return {.already_there = db.integer("SELECT count(*) FROM attempt")};
  }
  const OpenedFile file = open_for_reading(other, impl_->options);
  const Attached attached(db, file.uri);
  return merge_attached(db, other);
}

}  // namespace syslab::store
