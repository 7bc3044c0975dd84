// A rank's NCCL communicator: creates, queries, ends and aborts it without hanging.
//
// Callers hold a lock while inside NCCL, so that an abort never runs concurrently. Between polls the lock is free, and
// `throw_if_failed` decides whether to continue polling.
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
  // `limit`: for waiting for other ranks. `options.exit` must be set.
  NcclHandle(std::shared_ptr<NcclLibrary> library, NcclOptions options, std::chrono::milliseconds limit,
             std::function<void()> throw_if_failed);
  ~NcclHandle();  // waits for an abort in progress
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  const NcclLibrary& library() const { return *library_; }
  const NcclOptions& options() const { return options_; }

  // Returns when all ranks of the rendezvous have their communicators. Error(comm) at the limit, or with NCCL's
  // message; then call give_up().
  void make(Rendezvous& rendezvous);

  // body(const nccl::Api&, nccl::Comm), exclusively inside NCCL.
  template <typename Body>
  void call(const Body& body) {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) throw_if_failed_();
    body(library_->api(), comm_);
  }
  // Without the lock, for measuring the overhead of everything else.
  nccl::Comm unlocked() const { return comm_; }

  // If NCCL_COMM_BLOCKING=0 makes communicators non-blocking after all, calls return "in progress": polls until that
  // ends. `call`: the function called, for messages.
  void settle(const char* call, Deadline deadline);
  // Does nothing while another thread is inside NCCL: that thread may hang, and the monitor must not.
  void expect_no_async_error();

  // Orderly end: all ranks finalise, then each destroys its own. Does nothing after an abort.
  void end(Deadline deadline);
  // Calls ncclCommAbort, only once. Does not wait for it: the caller still has to notify other ranks of the failure.
  void give_up() noexcept;

 private:
  Error in_progress(const char* call) const;
  void abort_within_budget() noexcept;

  std::shared_ptr<NcclLibrary> library_;
  NcclOptions options_;
  std::chrono::milliseconds limit_;
  std::function<void()> throw_if_failed_;
  std::mutex mutex_;  // held by every call that uses comm_
  nccl::Comm comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  std::once_flag given_up_;
  std::thread aborting_;
};

}  // namespace syslab::comm
