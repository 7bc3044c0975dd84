#include "store/own_runs.hpp"

#include <fmt/format.h>

#include "store/impl.hpp"

namespace syslab::store {
namespace {

// What of a run and its plan decides what is loaded, read and written when it is run again.
constexpr std::string_view kRun = "SELECT uid, verb, protocol, root_seed FROM run WHERE id = ?";
constexpr std::string_view kPlan =
    "SELECT p.seq, c.experiment, c.version, c.params, i.name, i.digest, i.language, i.is_mine, p.mine_path, p.role, "
    "p.world_size, p.task, p.law, p.seed, p.skip_reason FROM plan_case p JOIN case_def c ON c.id = p.case_id JOIN "
    "implementation i ON i.id = p.implementation_id WHERE p.run_id = ? ORDER BY p.seq";

// Each cell is preceded by its length, so that the text can be divided in only one way; NULL has none.
void say_row(const Statement& row, std::string& said) {
  for (int column = 0; column < row.columns(); ++column) {
    if (row.is_null(column)) {
      said += '-';
      continue;
    }
    const std::string text = row.text(column);
    said += fmt::format("{}:{}", text.size(), text);
  }
  said += '\n';
}

Mac mac_of_run(Connection& db, RowId run, const Key& key) {
  std::string said;
  for (const std::string_view sql : {kRun, kPlan}) {
    Statement rows(db, sql);
    rows.with(run);
    while (rows.step()) say_row(rows, said);
  }
  return mac_of(key, {"syslab run 2\n", said});
}

}  // namespace

bool loads_files(Connection& db, RowId run) {
  return Statement(
             db,
             "SELECT 1 FROM plan_case p JOIN implementation i ON i.id = p.implementation_id WHERE p.run_id = ? AND "
             "(i.is_mine OR p.mine_path IS NOT NULL) LIMIT 1")
      .with(run)
      .step();
}

void sign_run(Connection& db, RowId run, const Key& key) {
  const Mac mac = mac_of_run(db, run, key);
  Statement insert(db, "INSERT INTO run_mac (run_uid, mac) SELECT uid, ?2 FROM run WHERE id = ?1");
  insert.bind(1, run);
  insert.bind_blob(2, bytes_of(mac));
  insert.step();
}

OneState::OneState(const Store& store) : transaction_(std::make_unique<ReadTransaction>(store.impl_->db())) {}
OneState::~OneState() = default;

bool Store::is_own(RowId run) const {
  Connection& db = impl_->db();
  Statement stored(db, "SELECT mac FROM run_mac WHERE run_uid = (SELECT uid FROM run WHERE id = ?)");
  stored.with(run);
  if (!stored.step()) return false;  // a question that does not need the key does not create one
  const Mac expected = mac_of_run(db, run, impl_->options.key());
  do {
    if (same(expected, stored.text(0))) return true;
  } while (stored.step());
  return false;
}

}  // namespace syslab::store
