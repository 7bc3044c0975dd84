// Store::hold_still(): views that many queries of a report stand on, computed once.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "store/impl.hpp"

namespace syslab::store {
namespace {

struct KeptView {
  const char* name;
  const char* index;  // a column
  bool of_scope = true;
};

// Each view uses those before it. The indices serve the queries that follow: a row by its attempt, of a run, rows of an
// experiment.
constexpr KeptView kAll[] = {{"v_attempt", "attempt_id"}, {"v_run", "run_id", false}};
constexpr KeptView kOfMeaning[] = {
    {"v_newest", "experiment"}, {"v_measured", "experiment"}, {"v_ceiling", "comparability_key", false}};

// Replaces the view of that name by one over a table of its rows.
void keep(Connection& db, const KeptView& view) {
  db.execute(fmt::format(
      "CREATE TEMP TABLE kept_{0} AS SELECT * FROM {0}; CREATE INDEX temp.kept_{0}_by_{1} ON kept_{0} ({1});"
      "DROP VIEW temp.{0}; CREATE TEMP VIEW {0} AS SELECT * FROM temp.kept_{0}{2}",
      view.name, view.index, view.of_scope ? " WHERE measured_here >= (SELECT least FROM temp.scope)" : ""));
}

// While it lives, the kept views of this connection have only what was measured here.
class OnlyOwn {
 public:
  explicit OnlyOwn(Connection& db) : db_(db) { set(1); }
  OnlyOwn(const OnlyOwn&) = delete;
  OnlyOwn& operator=(const OnlyOwn&) = delete;
  ~OnlyOwn() { set(0); }

 private:
  void set(int least) {  // of a temporary table, which no disk can refuse
    db_.execute(fmt::format("PRAGMA query_only=OFF; UPDATE temp.scope SET least = {}; PRAGMA query_only=ON", least));
  }

  Connection& db_;
};

void leave_out_other_versions(Connection& db, const std::map<std::string, std::string>& versions) {
  // A look at each row for all experiments; of one that is not named every version stays.
  Statement(
      db, "DELETE FROM temp.kept_v_attempt WHERE task = 'measure' AND version <> ?1 ->> ('$.\"' || experiment || '\"')")
      .run(json_text(Json(versions)));
}

}  // namespace

void Store::hold_still(const std::map<std::string, std::string>& versions) {
  if (impl_->mode != Mode::read_only) {
    throw Error(ErrorKind::internal, "hold_still() is for a store that is only read");
  }
  Connection& db = impl_->db();
  db.execute("PRAGMA query_only=OFF");  // forbids temporary tables, too
  db.execute("BEGIN");                  // one state of the file for all of them
  db.execute("CREATE TEMP TABLE scope (least INTEGER NOT NULL); INSERT INTO temp.scope VALUES (0)");
  for (const KeptView& view : kAll) keep(db, view);
  leave_out_other_versions(db, versions);
  for (const KeptView& view : kOfMeaning) keep(db, view);
  db.execute("COMMIT");
  db.execute("PRAGMA query_only=ON");
}

ResultSet Store::query_own(const std::string& sql, const std::vector<Cell>& parameters) const {
  Connection& db = impl_->db();
  if (db.integer("SELECT count(*) FROM temp.sqlite_master WHERE name = 'scope'") == 0) return query(sql, parameters);
  const OnlyOwn only(db);
  return query(sql, parameters);
}

std::int64_t Store::count_other_versions(const std::string& experiment, const std::string& version) const {
  Statement statement(impl_->db(),
                      "SELECT count(*) FROM attempt a JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq"
                      " JOIN case_def c ON c.id = p.case_id"
                      " WHERE p.task = 'measure' AND c.experiment = ? AND c.version <> ?");
  statement.with(experiment, version).step();
  return statement.integer(0);
}

}  // namespace syslab::store
