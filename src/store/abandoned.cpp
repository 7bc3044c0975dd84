// close_abandoned: attempts with a writer that died silently. writer_at_work: runs with a writer that did not.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/text/json_text.hpp"
#include "store/impl.hpp"

namespace syslab::store {
namespace {

// The `started` event names the writer; an attempt that was merged while it ran has it, too.
constexpr std::string_view kOpenAttempts = R"(
SELECT a.id,
       (SELECT s.detail FROM attempt_event s WHERE s.attempt_id = a.id AND s.status = 'started' LIMIT 1),
       (julianday(?) - julianday((SELECT max(h.at) FROM attempt_event h WHERE h.attempt_id = a.id))) * 86400.0
  FROM attempt a
 WHERE NOT EXISTS (SELECT 1 FROM attempt_event e
                    WHERE e.attempt_id = a.id AND e.status NOT IN ('started', 'heartbeat')))";

}  // namespace

int Store::close_abandoned() {
  Connection& db = impl_->writable();
  const std::string now = impl_->options.now();
  Transaction transaction(db);  // before reading: two starts at once must not both close the same attempt
  std::vector<RowId> abandoned;
  Statement open_attempts(db, kOpenAttempts);
  open_attempts.with(now);
  while (open_attempts.step()) {
    const Json detail = json_or_discarded(open_attempts.text(1));
    if (is_gone(writer_from_json(detail), open_attempts.real(2))) abandoned.push_back(open_attempts.integer(0));
  }
  for (const RowId attempt : abandoned) {
    db.cached("INSERT INTO attempt_event (attempt_id, at, status, detail) VALUES (?, ?, 'aborted', ?)")
        .run(attempt, now, R"({"message":"the process that ran it is gone; closed by a later start","inferred":true})");
  }
  transaction.commit_unsynced();
  return static_cast<int>(abandoned.size());
}

// Judged by the newest attempt. A writer that can be seen counts even between two attempts, when none is open.
std::optional<std::string> Store::writer_at_work(RowId run) const {
  Connection& db = impl_->db();
  Statement newest(db, R"(
SELECT (SELECT s.detail FROM attempt_event s WHERE s.attempt_id = a.id AND s.status = 'started' LIMIT 1),
       EXISTS (SELECT 1 FROM attempt_event e WHERE e.attempt_id = a.id AND e.status NOT IN ('started', 'heartbeat'))
  FROM attempt a
 WHERE a.run_id = ?
 ORDER BY a.uid DESC LIMIT 1)");
  if (!newest.with(run).step()) return std::nullopt;
  const Writer writer = writer_from_json(json_or_discarded(newest.text(0)));
  const bool ended = newest.integer(1) != 0;
  switch (liveness(writer)) {
    case Liveness::alive:
      if (writer.pid == this_writer().pid) return std::nullopt;
      return describe(writer);
    case Liveness::unknown:
      if (ended) return std::nullopt;
      return describe(writer);
    case Liveness::dead:
      break;
  }
  return std::nullopt;
}

}  // namespace syslab::store
