#include "device/host_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace syslab::device {
namespace {

constexpr const char* kGone =
    "a stream of the CPU is used after its owner has gone: declare the device::OwnedStream before all that queues work "
    "on it or waits for it, so that it goes last";

}  // namespace

void HostMark::set() {
  const std::lock_guard lock(mutex_);
  at_ = std::chrono::steady_clock::now().time_since_epoch();
  done_ = true;
  changed_.notify_all();
}

void HostMark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
}

bool HostMark::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

Nanoseconds HostMark::at() const {
  const std::lock_guard lock(mutex_);
  return at_;
}

HostQueue::HostQueue() : thread_([this] { serve(); }), own_(thread_.get_id()) {}

void HostQueue::finish() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    more_.notify_all();
  }
  thread_.join();
}

void HostQueue::push(Item item) {
  const std::lock_guard lock(mutex_);
  if (ended_) throw Error(ErrorKind::internal, kGone);  // by another thread while it ends
  items_.push_back(std::move(item));
  ++pushed_;
  more_.notify_one();
}

void HostQueue::push(std::function<void()> work) { push(Item{.work = std::move(work), .mark = nullptr}); }

void HostQueue::push_mark(std::shared_ptr<HostMark> mark) { push(Item{.work = {}, .mark = std::move(mark)}); }

void HostQueue::push_wait(std::shared_ptr<HostMark> mark) {
  push(Item{.work = {}, .mark = std::move(mark), .wait = true});
}

void HostQueue::run(Item& item) {
  if (item.mark != nullptr) return item.wait ? item.mark->wait() : item.mark->set();
  {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) return;
  }
  try {
    item.work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

void HostQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [this] { return stop_ || !items_.empty(); });
    if (items_.empty()) {
      ended_ = true;
      return;
    }
    {
      Item item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      run(item);
    }  // the work is destroyed before anyone learns that it is done
    lock.lock();
    ++done_;
    less_.notify_all();
  }
}

bool HostQueue::idle() const {
  const std::lock_guard lock(mutex_);
  return done_ == pushed_;
}

std::exception_ptr HostQueue::failure() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void HostQueue::wait() {
  if (std::this_thread::get_id() == own_) {
    throw Error(ErrorKind::usage,
                "work on a stream of the CPU waits for that same stream, which would never end: wait for an event "
                "of another stream, or from outside");
  }
  std::unique_lock lock(mutex_);
  const std::uint64_t last = pushed_;
  less_.wait(lock, [this, last] { return done_ >= last; });
}

void HostQueue::synchronize() {
  wait();
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

namespace {

struct Numbered {
  std::uintptr_t number = 0;
  std::shared_ptr<HostQueue> queue;
};

struct Queues {
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::vector<Numbered> all;  // by number

  std::vector<Numbered>::iterator find(const void* handle) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    const auto found = std::ranges::lower_bound(all, number, {}, &Numbered::number);
    return found != all.end() && found->number == number ? found : all.end();
  }
};

Queues& queues() {
  static auto* const kept = new Queues;  // outlives every stream, even those of static objects
  return *kept;
}

std::shared_ptr<HostQueue> find(const void* handle) {
  const std::lock_guard lock(queues().mutex);
  const auto found = queues().find(handle);
  return found == queues().all.end() ? nullptr : found->queue;
}

}  // namespace

void* create_host_queue() {
  auto queue = std::make_shared<HostQueue>();
  const std::lock_guard lock(queues().mutex);
  queues().all.push_back({++queues().last, std::move(queue)});
  return reinterpret_cast<void*>(queues().last);  // NOLINT: a number that is never dereferenced
}

void destroy_host_queue(void* handle) noexcept {
  const std::shared_ptr<HostQueue> queue = find(handle);
  if (queue == nullptr) return;
  queue->finish();  // with the lock free: its work may make streams of its own, and may ask for this one
  const std::lock_guard lock(queues().mutex);
  queues().all.erase(queues().find(handle));
}

std::shared_ptr<HostQueue> host_queue(Stream stream) {
  std::shared_ptr<HostQueue> found = find(stream.handle);
  if (found == nullptr) throw Error(ErrorKind::internal, kGone);
  return found;
}

std::shared_ptr<HostQueue> host_queue_or_end(Stream stream) noexcept {
  std::shared_ptr<HostQueue> found = find(stream.handle);
  if (found != nullptr) return found;
  std::fprintf(stderr, "syslab: %s\n", kGone);
  std::abort();
}

void synchronize_host_queues() {
  std::vector<Numbered> all;
  {
    const std::lock_guard lock(queues().mutex);
    all = queues().all;
  }
  std::exception_ptr first;
  for (const auto& [number, queue] : all) {
    queue->wait();
    if (first == nullptr) first = queue->failure();
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace syslab::device
