// The implementation of a CPU stream with its own thread (OwnedStream::queue). Private to this room: use
// device/queue.hpp, device/stream.hpp and device/event.hpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/text/units.hpp"
#include "device/device.hpp"

namespace syslab::device {

// A position in a queue: set once its thread has reached it.
class HostMark {
 public:
  void set();
  void wait() const;
  bool done() const;
  Nanoseconds at() const;  // of the steady clock; zero before it is done

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  Nanoseconds at_{};
};

// First in, first out, in one thread. An exception from work is kept until synchronize() rethrows it; until then later
// work is dropped (and destroyed at once), while marks are still set and waited for, so that a failure makes nobody
// hang.
class HostQueue {
 public:
  HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;
  ~HostQueue() { finish(); }
  void finish() noexcept;  // completes the queued work, then ends the thread; no pushes after this

  void push(std::function<void()> work);
  void push_mark(std::shared_ptr<HostMark> mark);
  void push_wait(std::shared_ptr<HostMark> mark);
  bool idle() const;
  std::exception_ptr failure() const;  // kept, for synchronize()
  // Waits for all work pushed before. Error(usage) if called from this queue's own work, which would wait for itself.
  void wait();
  void synchronize();  // and rethrows a failure

 private:
  struct Item {
    std::function<void()> work;      // or
    std::shared_ptr<HostMark> mark;  // to set, or to wait for
    bool wait = false;
  };
  void push(Item item);
  void serve();
  void run(Item& item);

  mutable std::mutex mutex_;
  std::condition_variable more_, less_;
  std::deque<Item> items_;
  std::uint64_t pushed_ = 0, done_ = 0;
  bool stop_ = false, ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;   // behind all that it uses
  std::thread::id own_;  // a copy, since finish() changes thread_ while others may read the id
};

// A handle is a number unique in the process, never an address: a stream that outlives its owner is recognised and
// never mistaken for another queue.
void* create_host_queue();
void destroy_host_queue(void* handle) noexcept;  // when its work is done, even if others wait for it
// Waits for all live queues, for synchronize(Place), so that no side stream escapes. Throws a failure but leaves it in
// its queue for the owner.
void synchronize_host_queues();

inline bool is_queue(Stream stream) { return stream.kind == Kind::cpu && stream.handle != nullptr; }
// The queue of a queue stream. Error(internal) if its owner is gone.
std::shared_ptr<HostQueue> host_queue(Stream stream);
// For callers that cannot throw: terminates the process with the same message.
std::shared_ptr<HostQueue> host_queue_or_end(Stream stream) noexcept;

}  // namespace syslab::device
