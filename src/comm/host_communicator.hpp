// What the backends of the CPU share (local, shm, gloo): operations run in the thread of their stream, one at a time
// and in the order of the calls. A backend says how one runs to its end.
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

  // Runs one collective, or one group of sends and receives, to its end. It waits for other ranks no longer than
  // options().limit and looks at failure_state() while it waits. What it throws becomes the failure of all ranks.
  virtual void perform(std::span<const Call> calls) = 0;

  // The first line of every backend's destructor: waits for the works that were queued (at most the limit; not after a
  // failure), lets a running one end, and makes those that come later fail without touching this object.
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
