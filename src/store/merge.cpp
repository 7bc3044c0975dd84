// merge: everything of another file that is not here yet, in one transaction.
//
// Rows are identified by what names them in every file: uids, or keys made of uids and never of counters of one file.
// So merging twice changes nothing, and the order of merging does not matter.
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "store/damaged.hpp"
#include "store/impl.hpp"
#include "store/impossible.hpp"
#include "store/json_columns.hpp"
#include "store/schema_check.hpp"

namespace syslab::store {
namespace {

struct Reference {
  std::string_view column, table;  // `column` holds a local id of `table`
};

struct TableToMerge {
  std::string_view name;
  std::array<Reference, 3> references{};
  // Columns that identify a row in every file, for tables that others refer to by local ids. Empty: no table does.
  std::string_view identity = {};
  // Which rows belong to the wanted runs, if the references alone do not say so.
  std::string_view belongs = {};
};

constexpr Reference kOfAttempt{"attempt_id", "attempt"};

// In an order in which every reference goes to a table above.
constexpr std::array kFacts{
    TableToMerge{
        "environment", {}, "uid", "o.id IN (SELECT environment_id FROM other.run WHERE uid IN temp.wanted_run)"},
    TableToMerge{"build", {}, "uid", "o.id IN (SELECT build_id FROM other.run WHERE uid IN temp.wanted_run)"},
    TableToMerge{"implementation",
                 {},
                 "uid",
                 "o.id IN (SELECT p.implementation_id FROM other.plan_case p JOIN other.run r ON r.id = p.run_id "
                 "WHERE r.uid IN temp.wanted_run)"},
    TableToMerge{"case_def",
                 {},
                 "uid",
                 "o.id IN (SELECT p.case_id FROM other.plan_case p JOIN other.run r ON r.id = p.run_id "
                 "WHERE r.uid IN temp.wanted_run)"},
    TableToMerge{
        "run", {{{"environment_id", "environment"}, {"build_id", "build"}}}, "uid", "o.uid IN temp.wanted_run"},
    TableToMerge{"plan_case", {{{"run_id", "run"}, {"case_id", "case_def"}, {"implementation_id", "implementation"}}}},
    TableToMerge{"rung_fact", {{{"run_id", "run"}}}},
    TableToMerge{"run_mac", {}, {}, "o.run_uid IN temp.wanted_run"},
    TableToMerge{"pin", {}, {}, "o.run_uid IN temp.wanted_run"},
    TableToMerge{"submission",
                 {},
                 "uid",
                 "o.id IN (SELECT s.submission_id FROM other.run_submission s JOIN other.run r ON r.id = s.run_id "
                 "WHERE r.uid IN temp.wanted_run)"},
    // A submission never gets more files: those of one that is here already are here.
    TableToMerge{"submission_implementation",
                 {{{"submission_id", "submission"}, {"implementation_id", "implementation"}}},
                 {},
                 "r_submission.id NOT IN (SELECT submission_id FROM main.submission_implementation)"},
    TableToMerge{"run_submission", {{{"run_id", "run"}, {"submission_id", "submission"}}}},
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

std::string_view wanted(const TableToMerge& table) { return table.belongs.empty() ? "true" : table.belongs; }

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
                  "INSERT INTO temp.map_{0} SELECT o.id, m.id {1} JOIN main.{0} m ON {2} WHERE {3}",
                  table.name, t.from, condition, wanted(table)));
}

// The other file has a row that no file of ours may hold.
class RefusedRow : public Error {
 public:
  RefusedRow(const std::filesystem::path& other, const std::string& fault)
      : Error(ErrorKind::store, fmt::format("cannot merge '{}': {}; nothing was merged", other.string(), fault)) {}
};

std::int64_t copy_rows(Connection& db, const TableToMerge& table, const std::filesystem::path& other) {
  const Translation t = translate(db, table);
  try {
    db.execute(fmt::format("INSERT INTO main.{} ({}) SELECT {} {} WHERE {} ON CONFLICT DO NOTHING", table.name,
                           joined(t.columns), joined(t.expressions), t.from, wanted(table)));
  } catch (const Error&) {
    if ((sqlite3_errcode(db.handle()) & 0xff) != SQLITE_CONSTRAINT) throw;
    throw RefusedRow(other, fmt::format("a row of its {} is refused: {}", table.name, sqlite3_errmsg(db.handle())));
  }
  const std::int64_t added = db.changes();
  if (!table.identity.empty()) make_map(db, table);
  return added;
}

// Rows that both files call the same must be the same: a uid that means two things would mix their results. What a map
// leads to is then a fact of both, or hangs on a run that this merge may add to.
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

// temp.wanted_run: uids of the other file's runs to take.
void choose_runs(Connection& db, const MergeOptions& options, const std::filesystem::path& other) {
  db.execute("CREATE TEMP TABLE wanted_run (uid TEXT PRIMARY KEY) WITHOUT ROWID");
  if (!options.runs) return db.execute("INSERT INTO temp.wanted_run SELECT uid FROM other.run");
  for (const std::string& uid : *options.runs) {
    Statement(db, "INSERT OR IGNORE INTO temp.wanted_run SELECT uid FROM other.run WHERE uid = ?").run(uid);
  }
  const auto found = db.integer("SELECT count(*) FROM temp.wanted_run");
  if (found < static_cast<std::int64_t>(options.runs->size())) {
    throw Error(ErrorKind::internal,
                fmt::format("'{}' has {} of the {} runs asked for", other.string(), found, options.runs->size()));
  }
}

// Whether the rows may count as measured here, and the names of runs as ours.
bool are_ours(const MergeOptions& options) { return options.trusted || options.keep_arrivals; }

// Runs that were measured here take rows only from those who vouch for them: else theirs would count as measured here.
void leave_out_own_runs(Connection& db, MergeCounts& counts) {
  db.execute(
      "CREATE TEMP TABLE own_run AS SELECT uid FROM temp.wanted_run WHERE uid IN (SELECT uid FROM main.run) "
      "AND uid NOT IN (SELECT run_uid FROM main.arrival WHERE NOT trusted)");
  const auto rows = [&](std::string_view table, std::string_view there) {
    return db.integer(
        fmt::format("SELECT count(*) FROM other.{0} o JOIN other.run r ON r.id = o.run_id "
                    "WHERE r.uid IN temp.own_run AND o.uid {1} (SELECT uid FROM main.{0})",
                    table, there));
  };
  counts.already_there = rows("attempt", "IN");
  counts.left_out = rows("attempt", "NOT IN") + rows("comparison", "NOT IN") +
                    db.integer(
                        "SELECT count(*) FROM (SELECT name, at, run_uid FROM other.pin "
                        "EXCEPT SELECT name, at, run_uid FROM main.pin)");
  db.execute("DELETE FROM temp.wanted_run WHERE uid IN temp.own_run; DROP TABLE temp.own_run");
}

// Before runs are copied: those that are not here yet are marked as measured elsewhere. A run that is trusted now and
// was not before has been vouched for since.
void note_arrivals(Connection& db, const MergeOptions& options, const std::filesystem::path& other,
                   const std::string& now) {
  if (options.keep_arrivals) {
    return db.execute(
        "INSERT INTO main.arrival SELECT * FROM other.arrival WHERE run_uid IN temp.wanted_run ON CONFLICT DO NOTHING");
  }
  Statement(db,
            "INSERT INTO main.arrival (run_uid, at, how, source, trusted) "
            "SELECT w.uid, ?1, coalesce(a.how, 'merge'), coalesce(a.source, ?2), ?3 AND coalesce(a.trusted, 1) "
            "  FROM temp.wanted_run w LEFT JOIN other.arrival a ON a.run_uid = w.uid "
            " WHERE w.uid NOT IN (SELECT uid FROM main.run) "
            "    OR w.uid IN (SELECT run_uid FROM main.arrival) AND ?3 "
            "ON CONFLICT (run_uid) DO UPDATE SET trusted = max(trusted, excluded.trusted)")
      .run(now, other.filename().string(), options.trusted);
}

// A shared fact under a uid that is none, or with another text than the one that is written here, would take the place
// of what a run that is made later means, and that run would be refused.
void check_facts(Connection& db, const std::filesystem::path& other) {
  for (const std::string& wrong : wrong_facts(db, "other", 1)) {
    throw Error(ErrorKind::store,
                fmt::format("cannot merge '{}': its {} is not what its SHA-256 says; nothing of it was merged",
                            other.string(), wrong));
  }
}

// What may be compared with what hangs on this key, so it must be that of the machine that the facts describe. A
// machine without a description is comparable with itself alone, and so with none that has one.
void check_keys(Connection& db, const MergeOptions& options, const std::filesystem::path& other) {
  if (options.key_of_machine == nullptr) return;
  std::set<std::string> described;
  for (const char* const database : {"main", "other"}) {
    Statement keys(db, fmt::format("SELECT comparability_key FROM {}.environment WHERE facts <> '{{}}'", database));
    while (keys.step()) described.insert(keys.text(0));
  }
  Statement rows(db, "SELECT uid, comparability_key, facts FROM other.environment");
  while (rows.step()) {
    const Json facts = json_or_discarded(rows.text(2));
    const bool holds = facts.is_object() && (facts.empty() ? !described.contains(rows.text(1))
                                                           : options.key_of_machine(facts) == rows.text(1));
    if (holds) continue;
    throw Error(ErrorKind::store,
                fmt::format("cannot merge '{}': the kind of machine of its environment {} is not what its facts say: "
                            "found the comparability_key {}; nothing of it was merged",
                            other.string(), rows.text(0), printable(rows.text(1))));
  }
}

void check_values(Connection& db, const std::filesystem::path& other) {
  if (const std::optional<std::string> found = impossible_time(db, "other")) {
    throw Error(ErrorKind::store,
                fmt::format("cannot merge '{}': {}; expected a time in UTC that exists, such as "
                            "2026-05-01T12:34:56.789Z; nothing of it was merged\ntry: another copy, as syslab wrote it",
                            other.string(), *found));
  }
  if (const std::optional<std::string> found = impossible_value(db, "other")) {
    throw Error(ErrorKind::store,
                fmt::format("cannot merge '{}': {}; expected what a measurement can say; nothing of it was merged\n"
                            "try: another copy, as syslab wrote it",
                            other.string(), *found));
  }
}

MergeCounts merge_attached(Connection& db, const Schema& schema, const std::filesystem::path& other,
                           const MergeOptions& options, const std::string& now) {
  MergeCounts counts;
  Transaction transaction(db);
  require_our_schema(db, schema, "other", other);  // again, and now nobody can change it before it is read
  if (!options.keep_arrivals) {
    check_facts(db, other);
    check_keys(db, options, other);
    check_values(db, other);
  }
  choose_runs(db, options, other);
  if (!are_ours(options)) leave_out_own_runs(db, counts);
  note_arrivals(db, options, other, now);
  for (const TableToMerge& table : kFacts) {
    if (table.name == "pin" && !are_ours(options)) continue;
    const std::int64_t added = copy_rows(db, table, other);
    if (table.name == "run") counts.runs = added;
    if (table.identity == "uid") {
      check_same(db, table, "uid", other);
    } else if (table.name == "plan_case") {
      check_same(db, table, "run_id, seq", other);
    } else if (table.name == "rung_fact") {
      check_same(db, table, "fact, run_id, experiment, rung", other);
    }
  }
  counts.attempts = copy_rows(db, kAttempt, other);
  counts.already_there += db.integer("SELECT count(*) FROM temp.map_attempt") - counts.attempts;
  check_same(db, kAttempt, "uid", other);
  copy_rows(db, kComparisonAttempt, other);  // before finished attempts are forgotten: the comparison may be new

  // Findings before events: an end that arrives with this merge must not make its own findings look merged already.
  db.execute("CREATE TEMP TABLE every_attempt AS SELECT * FROM temp.map_attempt");
  forget_finished_attempts(db);
  for (const TableToMerge& table : kFindings) {
    if (options.samples || table.name != "sample") copy_rows(db, table, other);
    if (table.identity == "uid") check_same(db, table, "uid", other);
  }
  db.execute("DELETE FROM temp.map_attempt; INSERT INTO temp.map_attempt SELECT * FROM temp.every_attempt");
  copy_rows(db, kEvents, other);

  for (const TableToMerge& table : kFacts) drop_map(db, table);
  for (const TableToMerge& table : kFindings) drop_map(db, table);
  drop_map(db, kAttempt);
  db.execute("DROP TABLE temp.every_attempt; DROP TABLE temp.wanted_run");
  transaction.commit();
  return counts;
}

// Attaches the other file during this object's lifetime.
class Attached {
 public:
  Attached(Connection& db, const std::string& uri) : db_(db) { Statement(db, "ATTACH DATABASE ? AS other").run(uri); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    try {
      db_.execute("DETACH DATABASE other");
    } catch (const Error&) {
      // Still in use after an error; it is detached when the connection closes.
    }
  }

 private:
  Connection& db_;
};

}  // namespace

MergeCounts Store::merge(const std::filesystem::path& other, const MergeOptions& options) {
  Connection& db = impl_->writable();
  std::error_code ignored;
  if (std::filesystem::equivalent(impl_->path, other, ignored)) {
    return {.already_there = db.integer("SELECT count(*) FROM attempt")};
  }
  const OpenedFile file = open_for_reading(other, impl_->options);
  try {
    const Attached attached(db, file.uri);
    return merge_attached(db, impl_->options.schema, other, options, impl_->options.now());
  } catch (const RefusedRow&) {  // SQLite does not say which row it is
    if (const std::string fault = json_fault_in(*file.connection); !fault.empty()) throw RefusedRow(other, fault);
    throw;
  } catch (const DamagedDatabase&) {  // SQLite does not say which of the two it is
    require_whole(*file.connection);
    throw;
  }
}

}  // namespace syslab::store
