// find_run, plan_state, find_check.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "store/impl.hpp"

namespace syslab::store {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view word) {
  throw Error(ErrorKind::store,
              fmt::format("the database has the {} '{}', which this syslab does not know", what, one_line(word)));
}

Task task_in(std::string_view word) {
  const std::optional<Task> task = task_of(word);
  if (!task) refuse("task", word);
  return *task;
}

Outcome outcome_in(std::string_view word) {
  const std::optional<Outcome> outcome = outcome_of(word);
  if (!outcome) refuse("outcome", word);
  return *outcome;
}

constexpr std::size_t kListedMatches = 5;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// A uid is hexadecimal digits and hyphens; anything else could only match by mistake.
bool looks_like_uid(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

// The one uid of `table` that begins or ends with `part`, or whose last group begins with it: that one is random, while
// the first groups are the time. Endings shorter than four digits are not taken.
std::optional<std::string> resolve_uid(Connection& db, const std::string& table, const std::string& what,
                                       const std::string& asked) {
  const std::string part = lower(asked);
  if (!looks_like_uid(part)) return std::nullopt;
  Statement found(db, fmt::format("SELECT uid FROM {} WHERE substr(uid, 1, length(?1)) = ?1 OR "
                                  "(length(?1) <= 12 AND substr(uid, -12, length(?1)) = ?1) OR "
                                  "(length(?1) >= 4 AND substr(uid, -length(?1)) = ?1) ORDER BY uid DESC",
                                  table));
  found.with(part);
  std::vector<std::string> uids;
  std::size_t matches = 0;
  while (found.step()) {
    if (++matches <= kListedMatches) uids.push_back(found.text(0));
  }
  if (matches == 0) return std::nullopt;
  if (matches == 1 || uids.front() == part) return uids.front();
  std::string message = fmt::format("'{}' names {} {}s; give more of the uid, or its ending:", asked, matches, what);
  for (const std::string& uid : uids) message += "\n  " + uid;
  if (matches > uids.size()) message += "\n  …";
  throw Error(ErrorKind::usage, message);
}

// `column` of a row is not what the writer of a run stores there.
[[noreturn]] void refuse_value(const Connection& db, std::string_view column, const std::string& found,
                               std::string_view expected) {
  throw Error(ErrorKind::store,
              fmt::format("database '{}': its {} is {}; expected {}", db.shown_as().string(), column, found, expected));
}

Json json_in(const Connection& db, std::string_view column, const std::string& text, std::string_view expected) {
  if (const std::string fault = nesting_fault(text); !fault.empty()) {
    throw Error(ErrorKind::store, fmt::format("database '{}': its {} is {}", db.shown_as().string(), column, fault));
  }
  Json json = json_or_discarded(text);
  if (json.is_discarded()) refuse_value(db, column, "malformed JSON", expected);
  return json;
}

std::vector<std::string> argv_in(const Connection& db, const std::string& text) {
  std::vector<std::string> texts;
  for (const Json& item : json_in(db, "run.argv", text, "a JSON list"))
    texts.push_back(item.is_string() ? item.get<std::string>() : json_text(item));
  return texts;
}

Params params_in(const Connection& db, const std::string& text) {
  const Json json = json_in(db, "case_def.params", text, "a JSON object");
  if (!json.is_object()) refuse_value(db, "case_def.params", "no JSON object", "a JSON object");
  return Params::from_json(json);
}

std::string protocol_in(const Connection& db, const std::string& text) {
  constexpr std::string_view kExpected = "one with a text 'name'";
  const Json json = json_in(db, "run.protocol", text, "a JSON object");
  if (!json.is_object()) refuse_value(db, "run.protocol", "no JSON object", kExpected);
  if (!json.contains("name") || !json["name"].is_string()) {
    refuse_value(db, "run.protocol", "a JSON object without a text 'name'", kExpected);
  }
  return text;
}

}  // namespace

std::optional<StoredRun> Store::find_run(const std::string& asked) const {
  Connection& db = impl_->db();
  std::string uid;
  if (asked == "latest") {
    uid = db.text("SELECT run_uid FROM v_run_order ORDER BY run_order DESC, run_uid DESC LIMIT 1");
  } else {
    uid = resolve_uid(db, "run", "run", asked).value_or("");
  }
  if (uid.empty()) return std::nullopt;
  Statement found(db,
                  "SELECT r.id, r.uid, r.verb, r.started_at, r.label, r.protocol, r.root_seed, b.git_sha, r.argv "
                  "FROM run r JOIN v_build b ON b.build_id = r.build_id WHERE r.uid = ?");
  if (!found.with(uid).step()) return std::nullopt;
  StoredRun run;
  run.id = found.integer(0);
  run.uid = found.text(1);
  run.verb = found.text(2);
  run.started_at = found.text(3);
  run.label = found.text(4);
  run.protocol_json = protocol_in(db, found.text(5));
  run.root_seed = found.text(6);
  run.build_sha = found.text(7);
  run.argv = argv_in(db, found.text(8));
  return run;
}

std::int64_t Store::count_future_runs() const {
  return impl_->db().integer("SELECT count(*) FROM v_run_order WHERE in_future");
}

std::vector<PlanState> Store::plan_state(RowId run) const {
  Connection& db = impl_->db();
  // The newest finished attempt of each planned case, by uid, because uids sort by time.
  Statement rows(db, R"(
SELECT p.seq, c.experiment, c.version, c.uid, c.params, i.name, i.digest, i.language, i.is_mine, p.mine_path, p.role,
       p.world_size, p.task, p.law, p.seed, p.skip_reason,
       (SELECT count(*) FROM attempt a WHERE a.run_id = p.run_id AND a.plan_seq = p.seq) AS attempts,
       (SELECT v.status FROM v_attempt v WHERE v.run_id = p.run_id AND v.plan_seq = p.seq AND v.status <> 'running'
         ORDER BY v.attempt_uid DESC LIMIT 1) AS last_status
  FROM plan_case p
  JOIN case_def c       ON c.id = p.case_id
  JOIN implementation i ON i.id = p.implementation_id
 WHERE p.run_id = ?
 ORDER BY p.seq)");
  rows.with(run);
  std::vector<PlanState> states;
  while (rows.step()) {
    PlanState& state = states.emplace_back();
    PlanRow& plan = state.plan;
    plan.seq = static_cast<int>(rows.integer(0));
    plan.experiment = rows.text(1);
    plan.version = rows.text(2);
    plan.case_uid = rows.text(3);
    plan.params = params_in(db, rows.text(4));
    plan.implementation = {.name = rows.text(5),
                           .digest = rows.text(6),
                           .language = rows.text(7),
                           .is_mine = rows.integer(8) != 0,
                           .path = rows.text(9),
                           .role = rows.text(10)};
    plan.world_size = static_cast<int>(rows.integer(11));
    plan.task = task_in(rows.text(12));
    plan.law = rows.text(13);
    plan.seed = rows.text(14);
    plan.skip_reason = rows.text(15);
    state.attempts = static_cast<int>(rows.integer(16));
    if (!rows.is_null(17)) state.last_status = parse_status(rows.text(17));
  }
  return states;
}

std::optional<StoredCheck> Store::find_check(const std::string& uid_or_part) const {
  Connection& db = impl_->db();
  const std::optional<std::string> uid = resolve_uid(db, "check_result", "check", uid_or_part);
  if (!uid) return std::nullopt;
  Statement found(db, R"(
SELECT k.uid, c.experiment, i.name, k.name, k.outcome, k.seed, k.reproduce, k.counterexample, k.message,
       c.params, p.mine_path, i.digest, r.protocol, p.world_size, r.id
  FROM check_result k
  JOIN attempt a        ON a.id = k.attempt_id
  JOIN run r            ON r.id = a.run_id
  JOIN plan_case p      ON p.run_id = a.run_id AND p.seq = a.plan_seq
  JOIN case_def c       ON c.id = p.case_id
  JOIN implementation i ON i.id = p.implementation_id
 WHERE k.uid = ?)");
  if (!found.with(*uid).step()) return std::nullopt;
  StoredCheck check;
  check.uid = found.text(0);
  check.experiment = found.text(1);
  check.implementation = found.text(2);
  check.law = found.text(3);
  check.outcome = outcome_in(found.text(4));
  check.seed = found.text(5);
  check.reproduce = found.text(6);
  check.counterexample_json = found.text(7);
  check.message = found.text(8);
  check.params = params_in(db, found.text(9));
  check.mine_path = found.text(10);
  check.implementation_digest = found.text(11);
  check.protocol_json = protocol_in(db, found.text(12));
  check.world_size = static_cast<int>(found.integer(13));
  check.run = found.integer(14);
  return check;
}

}  // namespace syslab::store
