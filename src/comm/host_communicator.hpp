// Base of the CPU backends (local, shm, gloo): operations run in their stream's thread, one at a time and in call
// order. A backend implements how one operation runs to completion.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "comm/communicator.hpp"

namespace syslab::comm {

class HostCommunicator : public Communicator {
 public:
  ~HostCommunicator() override;

 protected:
  using Communicator::Communicator;

  // Runs one collective, or one group of sends and receives, to completion. Waits for other ranks at most
  // options().limit and checks failure_state() while waiting. An exception becomes the failure of all ranks.
  virtual void perform(std::span<const Call> calls) = 0;

  // The first line of every backend's destructor: waits for queued operations (at most the limit; not after a failure),
  // lets a running one finish, and makes later ones fail without touching this object.
  void finish() noexcept;

  void queue(std::span<const Call> calls) final;
  void queue_alone(const Call& call) final;
  void wait_until_done(std::uint64_t work) final;

 private:
  class Turn;
  struct Line;
  void run(std::span<const Call> calls, bool alone);

  std::shared_ptr<Line> line_ = make_line();
  static std::shared_ptr<Line> make_line();
};

}  // namespace syslab::comm
