// What stands behind a stream of the CPU with a thread of its own (OwnedStream::queue). Nobody outside this room
// includes this: device/queue.hpp, device/stream.hpp and device/event.hpp are the way in.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/units.hpp"
#include "device/device.hpp"

namespace syslab::device {

// A place in the order of a queue: set once its thread has come there.
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

// First in, first out, in one thread. What work throws is kept until synchronize() throws it; until then the work
// behind it is dropped (and destroyed at once), while marks are set and waited for as ever: nobody hangs on a failure.
class HostQueue {
 public:
  HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;
  ~HostQueue() { finish(); }
  void finish() noexcept;  // does what is queued, then ends the thread; nothing is pushed any more

  void push(std::function<void()> work);
  void push_mark(std::shared_ptr<HostMark> mark);
  void push_wait(std::shared_ptr<HostMark> mark);
  bool idle() const;
  std::exception_ptr failure() const;  // kept, for synchronize()
  // Waits for what was pushed before. Error(usage) from work of this queue itself, which would wait for its own end.
  void wait();
  void synchronize();  // and throws what failed

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
  std::thread::id own_;  // kept, since finish() changes the above while others may ask
};

// A handle is a number that no two queues of a process share, never an address: a stream whose owner is gone is known
// for what it is, and no other queue is taken for it.
void* create_host_queue();
void destroy_host_queue(void* handle) noexcept;  // when its work is done, whoever else waits for it
// All that live, for synchronize(Place): no side stream escapes. What failed in one is told and stays there: it is its
// owner's to take.
void synchronize_host_queues();

inline bool is_queue(Stream stream) { return stream.kind == Kind::cpu && stream.handle != nullptr; }
// The queue behind a stream that is one. Error(internal) where its owner is gone.
std::shared_ptr<HostQueue> host_queue(Stream stream);
// For who cannot throw: ends the process then, in the same words.
std::shared_ptr<HostQueue> host_queue_or_end(Stream stream) noexcept;

}  // namespace syslab::device
