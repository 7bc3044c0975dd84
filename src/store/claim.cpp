// claim_run, release_run: if two want to work on one run, only one does.
//
// The row is read and written inside one BEGIN IMMEDIATE, so two simultaneous requests are handled one after the other.
// A claim of an owner that is gone does not count. That is judged as for abandoned attempts: by its process if that can
// be seen, otherwise by a minute without a sign of life.
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "store/impl.hpp"

namespace syslab::store {

std::optional<std::string> Store::claim_run(RowId run) {
  Connection& db = impl_->writable();
  const std::string uid = run_uid(run);
  const std::string now = impl_->options.now();
  const std::string owner = json_text(to_json(impl_->options.writer));
  Transaction transaction(db);
  {
    Statement found(db, "SELECT owner, (julianday(?2) - julianday(at)) * 86400.0 FROM run_claim WHERE run_uid = ?1");
    if (found.with(uid, now).step() && found.text(0) != owner) {
      const Writer other = writer_from_json(json_or_discarded(found.text(0)));
      if (!is_gone(other, found.real(1))) return describe(other);
    }
  }
  db.cached(
        "INSERT INTO run_claim (run_uid, owner, at) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (run_uid) DO UPDATE SET owner = excluded.owner, at = excluded.at")
      .run(uid, owner, now);
  transaction.commit_unsynced();
  return std::nullopt;
}

void Store::release_run(RowId run) {
  Connection& db = impl_->writable();
  const std::string uid = run_uid(run);
  Transaction transaction(db);
  db.cached("DELETE FROM run_claim WHERE run_uid = ? AND owner = ?")
      .run(uid, json_text(to_json(impl_->options.writer)));
  transaction.commit_unsynced();
}

}  // namespace syslab::store
