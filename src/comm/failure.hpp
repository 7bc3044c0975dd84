// Why a communicator has failed: set once, by whoever sees it first, and reported by every later operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include "core/rank_error.hpp"

namespace syslab::comm {

enum class EndingKind : std::uint8_t { failure, death, time_out, silence, left, disagreement };

// What happened, and to which rank.
struct Blame {
  EndingKind kind = EndingKind::failure;
  int culprit = -1;  // −1: unknown
};

Fault fault_of(const Blame& blame, int rank);  // as seen from `rank`
// For an exception in a rank's own work: that rank, unless the error names another.
Blame blame_of(const std::exception& error, int rank);

class Failure {
 public:
  // False if a failure was already set, which remains the reason.
  bool set(std::string_view text, const Blame& blame) {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    text_ = text;
    blame_ = blame;
    failed_ = true;
    return true;
  }
  bool failed() const { return failed_; }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  Blame blame() const {
    const std::lock_guard lock(mutex_);
    return blame_;
  }
  void throw_if_failed(int rank) const {
    if (failed()) throw RankError(fault_of(blame(), rank), text());
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::string text_;
  Blame blame_;
};

}  // namespace syslab::comm
