// add_comparison, add_sweep_verdicts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "store/impl.hpp"
#include "store/write.hpp"

namespace syslab::store {
namespace {

// SQLite checks that a text is JSON; that it is an object with a label is our own promise to the views.
void require_side(const std::string& text) {
  const Json side = json_or_discarded(text);
  if (!side.is_object() || !side.contains("label")) {
    throw Error(ErrorKind::internal, fmt::format("a side of a comparison has no label: {}", text));
  }
}

void write_blocks(Connection& db, RowId comparison, const std::vector<ComparisonRow::Block>& blocks) {
  Statement& insert = db.cached(
      "INSERT INTO comparison_block (comparison_id, launch, block, order_of, seconds_1, seconds_2, seconds_3, "
      "seconds_4, log_ratio) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const ComparisonRow::Block& block : blocks) {
    insert.run(comparison, block.launch, block.block, block.order, block.seconds[0], block.seconds[1], block.seconds[2],
               block.seconds[3], block.log_ratio);
  }
}

void write_links(Connection& db, RowId comparison, const std::vector<ComparisonRow::Attempt>& attempts) {
  for (const ComparisonRow::Attempt& attempt : attempts) {
    db.cached(
          "INSERT INTO comparison_attempt (comparison_id, side, launch, attempt_id) "
          "SELECT ?, ?, ?, id FROM attempt WHERE uid = ?")
        .run(comparison, std::string(1, attempt.side), attempt.launch, attempt.uid);
    if (db.changes() != 1) {
      throw Error(ErrorKind::internal,
                  fmt::format("a comparison names attempt '{}', which is not stored", attempt.uid));
    }
  }
}

}  // namespace

std::string Store::add_comparison(RowId run, const ComparisonRow& row) {
  Connection& db = impl_->writable();
  require_side(row.side_a_json);
  require_side(row.side_b_json);
  std::string uid = row.uid.empty() ? new_uuid7() : row.uid;
  Transaction transaction(db);
  db.cached(
        "INSERT INTO comparison (uid, run_id, experiment, params, metric, side_a, side_b, blocks, log_ratio, ci_low, "
        "ci_high, verdict, reason, at, mode, unit, value_a, value_b, launches, delta, p_value, confirms, facts) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(uid, run, row.experiment, json_text(row.params.to_json()), row.metric, row.side_a_json, row.side_b_json,
           row.block_count, row.log_ratio, row.low, row.high, row.verdict, unless_empty(row.reason),
           impl_->options.now(), row.mode, row.unit, row.value_a, row.value_b, row.launches, row.delta, row.p_value,
           unless_empty(row.confirms), row.facts_json);
  const RowId comparison = db.last_insert_rowid();
  write_blocks(db, comparison, row.blocks);
  write_links(db, comparison, row.attempts);
  transaction.commit();
  return uid;
}

void Store::add_sweep_verdicts(const std::vector<SweepVerdict>& verdicts) {
  Connection& db = impl_->writable();
  Transaction transaction(db);
  for (const SweepVerdict& row : verdicts) {
    db.cached(
          "INSERT INTO comparison_sweep (comparison_id, tests, q_value, verdict, reason) "
          "SELECT id, ?2, ?3, ?4, ?5 FROM comparison WHERE uid = ?1")
        .run(row.comparison_uid, row.tests, row.q_value, row.verdict, unless_empty(row.reason));
    if (db.changes() != 1) {
      throw Error(ErrorKind::internal, fmt::format("there is no comparison '{}'", row.comparison_uid));
    }
  }
  transaction.commit();
}

}  // namespace syslab::store
