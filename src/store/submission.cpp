#include "store/submission.hpp"

#include <set>
#include <vector>

#include "core/files/hash.hpp"
#include "core/ids.hpp"

namespace syslab::store {
namespace {

struct HandedIn {
  std::vector<RowId> implementations;
  std::string digest;    // of all of them together
  std::string language;  // "C", "C, Python"
};

HandedIn handed_in(Connection& db, RowId run) {
  HandedIn found;
  std::string identities;
  std::set<std::string> languages;
  Statement rows(db,
                 "SELECT DISTINCT i.id, i.uid, i.language FROM plan_case p JOIN implementation i ON i.id = "
                 "p.implementation_id WHERE p.run_id = ? AND i.is_mine ORDER BY i.uid");
  rows.with(run);
  while (rows.step()) {
    found.implementations.push_back(rows.integer(0));
    identities += rows.text(1) + "\n";
    languages.insert(rows.text(2));
  }
  found.digest = sha256_hex(identities);
  for (const std::string& language : languages) found.language += (found.language.empty() ? "" : ", ") + language;
  return found;
}

}  // namespace

void register_submission(Connection& db, RowId run, const std::string& author, const std::string& at) {
  const HandedIn files = handed_in(db, run);
  if (files.implementations.empty()) return;
  RowId submission = 0;
  Statement& known = db.cached("SELECT id FROM submission WHERE author = ? AND digest = ? ORDER BY uid LIMIT 1");
  if (known.with(author, files.digest).step()) submission = known.integer(0);
  known.reset();
  if (submission == 0) {
    db.cached("INSERT INTO submission (uid, at, author, digest, language) VALUES (?, ?, ?, ?, ?)")
        .run(new_uuid7(), at, author, files.digest, files.language);
    submission = db.last_insert_rowid();
    for (const RowId implementation : files.implementations) {
      db.cached("INSERT INTO submission_implementation (submission_id, implementation_id) VALUES (?, ?)")
          .run(submission, implementation);
    }
  }
  db.cached("INSERT INTO run_submission (run_id, submission_id) VALUES (?, ?)").run(run, submission);
}

}  // namespace syslab::store
