// Store::hold_still(): views that many queries of a report stand on, computed once.
#include <fmt/format.h>

#include "store/impl.hpp"
#include "store/migrate.hpp"

namespace syslab::store {
namespace {

struct KeptView {
  const char* name;
  const char* index;  // a column
};

// Each stands on the one before it. What is asked of them next: a row by its attempt, rows of an experiment.
constexpr KeptView kKept[] = {{"v_attempt", "attempt_id"}, {"v_newest", "experiment"}, {"v_measured", "experiment"}};

// The view of that name becomes one over a table of what it held.
void keep(Connection& db, const KeptView& view) {
  db.execute(fmt::format(
      "CREATE TEMP TABLE kept_{0} AS SELECT * FROM {0}; CREATE INDEX temp.kept_{0}_by_{1} ON kept_{0} ({1});"
      "DROP VIEW temp.{0}; CREATE TEMP VIEW {0} AS SELECT * FROM temp.kept_{0}",
      view.name, view.index));
}

}  // namespace

void Store::hold_still() {
  if (impl_->mode != Mode::read_only) {
    throw Error(ErrorKind::internal, "hold_still() is for a store that is only read");
  }
  Connection& db = impl_->db();
  db.execute("PRAGMA query_only=OFF");  // forbids temporary tables, too
  db.execute("BEGIN");                  // one state of the file for all of them
  lay_views_over(db, impl_->options.schema);
  for (const KeptView& view : kKept) keep(db, view);
  db.execute("COMMIT");
  db.execute("PRAGMA query_only=ON");
}

}  // namespace syslab::store
