#include "device/host_queue.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace syslab::device {

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

HostQueue::HostQueue() : thread_([this] { serve(); }) {}

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
    if (items_.empty()) return;
    {
      Item item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      run(item);
    }  // what the work held is gone before anyone hears that it is done
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
  if (std::this_thread::get_id() == thread_.get_id()) {
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

struct Queues {
  std::mutex mutex;
  std::vector<std::shared_ptr<HostQueue>> all;
};

Queues& queues() {
  static auto* const kept = new Queues;  // outlives every stream, also those of static objects
  return *kept;
}

}  // namespace

HostQueue* create_host_queue() {
  auto queue = std::make_shared<HostQueue>();
  const std::lock_guard lock(queues().mutex);
  queues().all.push_back(queue);
  return queue.get();
}

void destroy_host_queue(HostQueue* queue) noexcept {
  std::shared_ptr<HostQueue> last;
  {
    const std::lock_guard lock(queues().mutex);
    auto& all = queues().all;
    const auto found = std::find_if(all.begin(), all.end(), [queue](const auto& kept) { return kept.get() == queue; });
    if (found == all.end()) return;
    last = std::move(*found);
    all.erase(found);
  }
  last->finish();  // with the lock free: its work may make streams of its own
}

void synchronize_host_queues() {
  std::vector<std::shared_ptr<HostQueue>> all;
  {
    const std::lock_guard lock(queues().mutex);
    all = queues().all;
  }
  std::exception_ptr first;
  for (const auto& queue : all) {
    queue->wait();
    if (first == nullptr) first = queue->failure();
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace syslab::device
