// Attempts that have ended and wait to be stored: all that wait go into one transaction and share its sync of the disk.
// In a run of one case after the other these are those that are not tried (skipped, unsupported, too large for the
// memory), of which hundreds may come at once. Each is acknowledged behind the sync, at most 20 ms after it came.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runner/runner.hpp"
#include "store/store.hpp"

namespace syslab::cli {

// An attempt that ended, as the store takes it.
store::AttemptRow attempt_row(std::string uid, const runner::AttemptResult& result);

class AttemptQueue {
 public:
  // Called for each once it is stored, in the order in which they came.
  using Acknowledge = std::function<void(const std::string& uid, const runner::AttemptResult& result)>;
  // Half of the 20 ms is left to the transaction and its sync.
  AttemptQueue(store::Store& store, store::RowId run, Acknowledge acknowledge,
               std::chrono::milliseconds longest_wait = std::chrono::milliseconds(10));

  // `uid` as announced by attempt_started(); empty for one that was not tried, which may wait for the next.
  void add(std::string uid, runner::AttemptResult result);
  // Error(store) of the first that could not be stored, when the others are acknowledged.
  void store_all();

 private:
  store::Store& store_;
  store::RowId run_;
  Acknowledge acknowledge_;
  std::chrono::milliseconds longest_wait_;
  std::vector<std::string> uids_;
  std::vector<runner::AttemptResult> waiting_;
  std::chrono::steady_clock::time_point oldest_;
};

}  // namespace syslab::cli
