// begin_run, attempt_started, heartbeat, finish_attempt: each is one transaction.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/files/hash.hpp"
#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "store/impl.hpp"
#include "store/own_runs.hpp"
#include "store/records.hpp"
#include "store/submission.hpp"
#include "store/utf8.hpp"
#include "store/write.hpp"

namespace syslab::store {
namespace {

std::string dump(const Json& json) { return repaired_json_text(json); }

// Canonical text of an object given as text; an empty text is an empty object.
std::string canonical_object(const std::string& text, std::string_view what) {
  if (text.empty()) return "{}";
  const Json json = json_or_discarded(text);
  if (!json.is_object()) throw Error(ErrorKind::internal, fmt::format("{} is not a JSON object: {}", what, text));
  return dump(json);
}

// The row of a shared fact: found by its uid, or inserted. `find` tells its id and whether it is the same fact. A row
// that only has the uid was put there by somebody: a run that took it would mean what that row says.
template <typename... Values>
RowId ensure(Connection& db, std::string_view find, std::string_view insert, const std::string& uid,
             const Values&... values) {
  Statement& found = db.cached(find).with(uid, values...);
  if (found.step()) {
    const RowId id = found.integer(0);
    const bool is_same = found.integer(1) != 0;
    found.reset();
    if (is_same) return id;
    throw Error(
        ErrorKind::store,
        fmt::format("database '{}' was changed: its row with SHA-256 {} has other content; expected the content "
                    "that has this SHA-256\ntry: another database, --db FILE",
                    db.shown_as().string(), uid));
  }
  db.cached(insert).run(uid, values...);
  return db.last_insert_rowid();
}

RowId ensure_environment(Connection& db, const RunRow& run) {
  const std::string facts = canonical_object(run.environment_json, "the environment");
  return ensure(db, "SELECT id, (comparability_key, facts) IS (?2, ?3) FROM environment WHERE uid = ?1",
                "INSERT INTO environment (uid, comparability_key, facts) VALUES (?, ?, ?)",
                environment_uid(run.comparability_key, facts), run.comparability_key, facts);
}

RowId ensure_build(Connection& db, const RunRow& run) {
  const std::string facts = canonical_object(run.build_json, "the build");
  return ensure(db, "SELECT id, facts IS ?2 FROM build WHERE uid = ?1", "INSERT INTO build (uid, facts) VALUES (?, ?)",
                build_uid(facts), facts);
}

RowId ensure_implementation(Connection& db, const ImplementationRow& row) {
  return ensure(db,
                "SELECT id, (name, digest, language, is_mine) IS (?2, ?3, ?4, ?5) FROM implementation WHERE uid = ?1",
                "INSERT INTO implementation (uid, name, digest, language, is_mine) VALUES (?, ?, ?, ?, ?)",
                implementation_uid(row), row.name, row.digest, row.language, row.is_mine);
}

RowId ensure_case(Connection& db, const PlanRow& row) {
  return ensure(db, "SELECT id, (experiment, version, params) IS (?2, ?3, ?4) FROM case_def WHERE uid = ?1",
                "INSERT INTO case_def (uid, experiment, version, params) VALUES (?, ?, ?, ?)", row.case_uid,
                row.experiment, row.version, dump(row.params.to_json()));
}

void write_plan_row(Connection& db, RowId run, const PlanRow& row) {
  const RowId case_id = ensure_case(db, row);
  const RowId implementation = ensure_implementation(db, row.implementation);
  db.cached(
        "INSERT INTO plan_case (run_id, seq, case_id, implementation_id, role, world_size, task, law, seed, "
        "skip_reason, mine_path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(run, row.seq, case_id, implementation, unless_empty(row.implementation.role), row.world_size,
           to_string(row.task), unless_empty(row.law), row.seed, unless_empty(row.skip_reason),
           unless_empty(row.implementation.path));
}

void write_event(Connection& db, RowId attempt, const std::string& at, std::string_view status,
                 const std::optional<std::string>& detail) {
  db.cached("INSERT INTO attempt_event (attempt_id, at, status, detail) VALUES (?, ?, ?, ?)")
      .run(attempt, at, status, detail);
}

std::optional<RowId> find_attempt(Connection& db, const std::string& uid) {
  Statement& found = db.cached("SELECT id FROM attempt WHERE uid = ?").with(uid);
  std::optional<RowId> id;
  if (found.step()) id = found.integer(0);
  found.reset();
  return id;
}

// A process that works on a run has claimed it, if there is a claim; a sign of life of an attempt also renews the
// claim.
void renew_claim(Connection& db, const std::string& attempt_uid, const std::string& at, const Writer& writer) {
  db.cached(
        "UPDATE run_claim SET at = ?1 WHERE owner = ?3 AND run_uid = (SELECT r.uid FROM run r JOIN attempt a ON "
        "a.run_id = r.id WHERE a.uid = ?2)")
      .run(at, attempt_uid, dump(to_json(writer)));
}

RowId insert_attempt(Connection& db, RowId run, int plan_seq, const std::string& uid, const std::string& at,
                     const Writer& writer) {
  db.cached("INSERT INTO attempt (uid, run_id, plan_seq) VALUES (?, ?, ?)").run(uid, run, plan_seq);
  const RowId attempt = db.last_insert_rowid();
  write_event(db, attempt, at, "started", dump(to_json(writer)));
  return attempt;
}

// The attempt announced as `uid`: it must be this planned case's and still open. An `aborted` written by another start
// that thought this process dead does not close it.
void check_open(Connection& db, RowId attempt, RowId run, const AttemptRow& row) {
  Statement& found = db.cached(
      "SELECT a.run_id = ? AND a.plan_seq = ?, EXISTS (SELECT 1 FROM attempt_event e WHERE e.attempt_id = a.id AND "
      "e.status NOT IN ('started', 'heartbeat', 'aborted')) FROM attempt a WHERE a.id = ?");
  found.with(run, row.plan_seq, attempt);
  const bool there = found.step();
  const bool same = there && found.integer(0) != 0;
  const bool ended = there && found.integer(1) != 0;
  found.reset();
  if (!same) throw Error(ErrorKind::internal, fmt::format("attempt {} was started for another case", row.uid));
  if (ended) throw Error(ErrorKind::internal, fmt::format("attempt {} has already ended", row.uid));
}

// An end's detail. Repaired here because a NUL inside JSON text would pass the binding as an escape and cut the
// message.
std::optional<std::string> message_json(const std::string& message) {
  if (message.empty()) return std::nullopt;
  return json_text(Json{{"message", repaired_utf8(message).value_or(message)}});
}

Json facts_of(const AttemptRow& row) {
  Json facts = json_or_discarded(row.facts_json);
  if (facts.is_object()) return facts;
  // It may come from a foreign worker: not worth losing the attempt.
  return row.facts_json.empty() ? Json::object() : Json{{"unreadable_facts", row.facts_json}};
}

}  // namespace

std::string environment_uid(const std::string& comparability_key, const std::string& facts) {
  return sha256_hex(comparability_key + "\n" + facts);
}

std::string build_uid(const std::string& facts) { return sha256_hex(facts); }

std::string implementation_uid(const ImplementationRow& row) {
  const Json identity{{"name", row.name}, {"digest", row.digest}, {"language", row.language}, {"mine", row.is_mine}};
  return sha256_hex(dump(identity));
}

RowId write_run(Connection& db, const RunRow& run, const std::vector<PlanRow>& plan, const std::string& started_at) {
  const RowId environment = ensure_environment(db, run);
  const RowId build = ensure_build(db, run);
  db.cached(
        "INSERT INTO run (uid, environment_id, build_id, verb, started_at, label, argv, protocol, root_seed) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(run.uid.empty() ? new_uuid7() : run.uid, environment, build, run.verb, started_at, unless_empty(run.label),
           dump(Json(run.argv)), canonical_object(run.protocol_json, "the protocol"), run.root_seed);
  const RowId id = db.last_insert_rowid();
  for (const PlanRow& row : plan) write_plan_row(db, id, row);
  for (const RungFactRow& row : run.rung_facts) {
    db.cached("INSERT INTO rung_fact (run_id, experiment, rung, fact, value, unit) VALUES (?, ?, ?, ?, ?, ?)")
        .run(id, row.experiment, row.rung, row.fact, row.value, unless_empty(row.unit));
  }
  if (!run.author.empty()) register_submission(db, id, run.author, started_at);
  return id;
}

std::string write_attempt(Connection& db, RowId run, const AttemptRow& row, const std::string& now,
                          const Writer& writer) {
  const std::string uid = row.uid.empty() ? new_uuid7() : row.uid;
  const std::string ended_at = row.ended_at.empty() ? now : row.ended_at;
  RowId attempt = 0;
  if (const std::optional<RowId> announced = find_attempt(db, uid)) {
    attempt = *announced;
    check_open(db, attempt, run, row);
  } else {
    attempt = insert_attempt(db, run, row.plan_seq, uid, row.started_at.empty() ? ended_at : row.started_at, writer);
  }
  Json facts = facts_of(row);
  write_records(db, attempt, uid, row.records, facts);
  db.cached("INSERT INTO attempt_facts (attempt_id, facts) VALUES (?, ?)").run(attempt, dump(facts));
  write_event(db, attempt, ended_at, syslab::to_string(row.status), message_json(row.detail));
  return uid;
}

RowId Store::begin_run(const RunRow& run, const std::vector<PlanRow>& plan) {
  Connection& db = impl_->writable();
  Transaction transaction(db);
  const RowId id = write_run(db, run, plan, impl_->options.now());
  if (loads_files(db, id) || std::ranges::any_of(plan, &PlanRow::names_files)) {
    try {
      sign_run(db, id, impl_->options.key());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::config) throw;
      impl_->file.notices.push_back(fmt::format(
          "this run cannot be marked as yours: `resume`, `replay` and `gate` will not use the files that it names: {}",
          error.what()));
    }
  }
  transaction.commit();
  return id;
}

std::string Store::run_uid(RowId run) const {
  Statement& found = impl_->db().cached("SELECT uid FROM run WHERE id = ?").with(run);
  if (!found.step()) throw Error(ErrorKind::internal, fmt::format("there is no run with row {}", run));
  std::string uid = found.text(0);
  found.reset();
  return uid;
}

void Store::attempt_started(RowId run, int plan_seq, const std::string& attempt_uid) {
  Connection& db = impl_->writable();
  Transaction transaction(db);
  insert_attempt(db, run, plan_seq, attempt_uid, impl_->options.now(), impl_->options.writer);
  renew_claim(db, attempt_uid, impl_->options.now(), impl_->options.writer);
  transaction.commit_unsynced();
}

void Store::heartbeat(const std::string& attempt_uid) {
  Connection& db = impl_->writable();
  const HurriedTurn hurried(db);
  try {
    Transaction transaction(db);
    // Two heartbeats within one millisecond count as one.
    db.cached(
          "INSERT INTO attempt_event (attempt_id, at, status) SELECT id, ?, 'heartbeat' FROM attempt WHERE uid = ? "
          "ON CONFLICT DO NOTHING")
        .run(impl_->options.now(), attempt_uid);
    renew_claim(db, attempt_uid, impl_->options.now(), impl_->options.writer);
    transaction.commit_unsynced();
  } catch (const Error&) {
    // Whatever is wrong (a long write of another process, a full disk), the end of the attempt will wait for it, or
    // report it.
  }
}

std::string Store::finish_attempt(RowId run, const AttemptRow& row) {
  Connection& db = impl_->writable();
  Transaction transaction(db);
  std::string uid = write_attempt(db, run, row, impl_->options.now(), impl_->options.writer);
  transaction.commit();
  return uid;
}

std::vector<StoredAttempt> Store::finish_attempts(RowId run, const std::vector<AttemptRow>& attempts) {
  Connection& db = impl_->writable();
  std::vector<StoredAttempt> stored;
  Transaction transaction(db);
  for (const AttemptRow& row : attempts) {
    try {
      Savepoint savepoint(db);
      std::string uid = write_attempt(db, run, row, impl_->options.now(), impl_->options.writer);
      savepoint.keep();
      stored.push_back({std::move(uid), std::nullopt});
    } catch (const Error& error) {
      if (!db.in_transaction()) throw;  // such as a full disk, for which SQLite gives up all of it
      stored.push_back({row.uid, error});
    }
  }
  transaction.commit();
  return stored;
}

}  // namespace syslab::store
