#include "session/attempt_queue.hpp"

#include <utility>

#include "core/error.hpp"

namespace syslab::cli {
namespace {

constexpr std::size_t kMostAtOnce = 64;

}  // namespace

store::AttemptRow attempt_row(std::string uid, const runner::AttemptResult& result) {
  store::AttemptRow row;
  row.uid = std::move(uid);
  row.plan_seq = result.planned->index;
  row.status = result.status;
  row.detail = result.detail;
  row.facts_json = result.facts_json;
  row.started_at = result.started_at;
  row.ended_at = result.ended_at;
  row.records = result.records;
  return row;
}

AttemptQueue::AttemptQueue(store::Store& store, store::RowId run, Acknowledge acknowledge,
                           std::chrono::milliseconds longest_wait)
    : store_(store), run_(run), acknowledge_(std::move(acknowledge)), longest_wait_(longest_wait) {}

void AttemptQueue::add(std::string uid, runner::AttemptResult result) {
  const auto now = std::chrono::steady_clock::now();
  if (waiting_.empty()) oldest_ = now;
  const bool may_wait = uid.empty();
  uids_.push_back(std::move(uid));
  waiting_.push_back(std::move(result));
  if (!may_wait || waiting_.size() >= kMostAtOnce || now - oldest_ >= longest_wait_) store_all();
}

void AttemptQueue::store_all() {
  const std::vector<std::string> uids = std::exchange(uids_, {});
  const std::vector<runner::AttemptResult> results = std::exchange(waiting_, {});
  if (results.empty()) return;
  std::vector<store::AttemptRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) rows.push_back(attempt_row(uids[i], results[i]));
  const std::vector<store::StoredAttempt> stored = store_.finish_attempts(run_, rows);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!stored[i].refused) acknowledge_(stored[i].uid, results[i]);
  }
  for (const store::StoredAttempt& attempt : stored) {
    if (attempt.refused) throw Error(*attempt.refused);
  }
}

}  // namespace syslab::cli
