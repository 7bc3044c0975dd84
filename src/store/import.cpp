// import_run: results that another program measured, taken in whole.
#include "store/impl.hpp"
#include "store/write.hpp"

namespace syslab::store {

std::optional<std::string> Store::import_run(const RunRow& run, const std::vector<PlanRow>& plan,
                                             const std::vector<AttemptRow>& attempts, const std::string& digest) {
  Connection& db = impl_->writable();
  const std::string now = impl_->options.now();
  Transaction transaction(db);  // before looking: two imports of one file at once must not both write
  Statement& known = db.cached("SELECT 1 FROM arrival WHERE how = 'import' AND source = ?").with(digest);
  const bool was_here = known.step();
  known.reset();
  if (was_here) return std::nullopt;
  const RowId row = write_run(db, run, plan, attempts.empty() ? now : attempts.front().started_at);
  std::string uid = run_uid(row);
  for (const AttemptRow& attempt : attempts) write_attempt(db, row, attempt, now, impl_->options.writer);
  db.cached("INSERT INTO arrival (run_uid, at, how, source, trusted) VALUES (?, ?, 'import', ?, 0)")
      .run(uid, now, digest);
  transaction.commit();
  return uid;
}

}  // namespace syslab::store
