// A rank's communicator of NCCL's, and what it takes to make, ask, end and abort one without hanging on it.
//
// Whoever calls NCCL with it holds a lock while inside, so that an abort finds nobody there. Between questions the lock
// is free, and `throw_if_failed` tells whether to go on asking.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/nccl/library.hpp"
#include "comm/nccl/options.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/socket.hpp"
#include "core/error.hpp"

namespace syslab::comm {

class NcclHandle {
 public:
  // `limit`: of waiting for other ranks. `options.exit` must be there.
  NcclHandle(std::shared_ptr<NcclLibrary> library, NcclOptions options, std::chrono::milliseconds limit,
             std::function<void()> throw_if_failed);
  ~NcclHandle();  // waits for an abort that is under way
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  const NcclLibrary& library() const { return *library_; }
  const NcclOptions& options() const { return options_; }

  // Returns when all ranks of the store have theirs. Error(comm) at the limit, or in NCCL's words; then give_up().
  void make(Store& store);

  // body(const nccl::Api&, nccl::Comm), alone inside NCCL.
  template <typename Body>
  void call(const Body& body) {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) throw_if_failed_();
    body(library_->api(), comm_);
  }
  // For who measures what all else costs: without the lock.
  nccl::Comm unlocked() const { return comm_; }

  // Where NCCL_COMM_BLOCKING=0 makes communicators non-blocking all the same, they answer "in progress": asks until
  // that is over. `call`: what was called, for messages.
  void settle(const char* call, Deadline deadline);
  // Asks nothing while another thread is inside NCCL: it may be stuck there, and whoever watches over it must not be.
  void expect_no_async_error();

  // In peace: all ranks finalise, then each destroys its own. Nothing is left to do where it was aborted.
  void end(Deadline deadline);
  // ncclCommAbort, once, however often it is called. Nobody waits for it here: whoever found the failure has others to
  // tell of it.
  void give_up() noexcept;

 private:
  Error in_progress(const char* call) const;
  void abort_within_budget() noexcept;

  std::shared_ptr<NcclLibrary> library_;
  NcclOptions options_;
  std::chrono::milliseconds limit_;
  std::function<void()> throw_if_failed_;
  std::mutex mutex_;  // of every call that takes comm_
  nccl::Comm comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  std::once_flag given_up_;
  std::thread aborting_;
};

}  // namespace syslab::comm
