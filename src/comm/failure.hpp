// Why a communicator works no more: said once, by whoever sees it first, and from then on by every operation.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "core/error.hpp"

namespace syslab::comm {

class Failure {
 public:
  // False where something failed before: then that stays the reason.
  bool set(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    text_ = text;
    failed_ = true;
    return true;
  }
  bool failed() const { return failed_; }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  void throw_if_failed() const {
    if (failed()) throw Error(ErrorKind::comm, text());
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::string text_;
};

}  // namespace syslab::comm
