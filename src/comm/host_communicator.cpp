#include "comm/host_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text/units.hpp"
#include "device/queue.hpp"

namespace syslab::comm {

namespace {
// A failure in another thread is noticed within this time.
constexpr std::chrono::milliseconds kFailureSeenWithin{5};
}  // namespace

// Outlives the communicator if some of its work is still queued.
struct HostCommunicator::Line {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t queued = 0, done = 0;   // works
  std::uint64_t turns = 0, served = 0;  // one for a call or a group
  int running = 0;                      // more than one where turns end out of their order, after a failure
  bool closed = false;
};

std::shared_ptr<HostCommunicator::Line> HostCommunicator::make_line() { return std::make_shared<Line>(); }

HostCommunicator::~HostCommunicator() = default;

// A place in the line. If its stream drops it because earlier work failed, the other ranks would wait in vain: its
// destructor tells them.
class HostCommunicator::Turn {
 public:
  Turn(HostCommunicator& owner, std::span<const Call> calls, bool alone)
      : owner_(owner), line_(owner.line_), calls_(calls.begin(), calls.end()), alone_(alone) {
    const std::lock_guard lock(line_->mutex);
    number_ = line_->turns++;
    line_->queued = std::max(line_->queued, calls.back().work);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  ~Turn() {
    if (ran_) return;
    const std::lock_guard lock(line_->mutex);
    if (line_->closed) return;
    for (const Call& call : calls_) owner_.recorded().end(call.record, false);
    try {
      const std::string cause = device::failure_of(calls_[0].stream);
      owner_.fail(fmt::format("rank {}: {} was dropped, because work before it on its stream failed{}{}", owner_.rank(),
                              name_of(calls_[0].signature), cause.empty() ? "" : ": ", cause),
                  {EndingKind::failure, owner_.rank()});
    } catch (...) {  // no memory for the text
      owner_.fail("work before an operation failed", {EndingKind::failure, owner_.rank()});
    }
  }

  void run() {
    ran_ = true;
    {
      std::unique_lock lock(line_->mutex);
      while (!line_->closed && !owner_.failed() && line_->served < number_) {
        line_->changed.wait_for(lock, kFailureSeenWithin);
      }
      if (line_->closed) {
        throw Error(ErrorKind::comm, fmt::format("{} was still in its stream when its communicator was destroyed: wait "
                                                 "for the work first",
                                                 name_of(calls_[0].signature)));
      }
      ++line_->running;
    }
    try {
      owner_.throw_if_failed();
      owner_.run(calls_, alone_);
    } catch (...) {
      leave(0);
      throw;
    }
    leave(calls_.back().work);
  }

 private:
  void leave(std::uint64_t done) {
    const std::lock_guard lock(line_->mutex);
    --line_->running;
    line_->done = std::max(line_->done, done);
    ++line_->served;
    line_->changed.notify_all();
  }

  HostCommunicator& owner_;  // no longer valid once the line is closed
  std::shared_ptr<Line> line_;
  std::vector<Call> calls_;
  std::uint64_t number_ = 0;
  bool alone_, ran_ = false;
};

void HostCommunicator::run(std::span<const Call> calls, bool alone) {
  for (const Call& call : calls) recorded().start(call.record);
  try {
    if (alone) {
      Call here = calls[0];
      here.stream = {};
      copy_alone(here);
    } else {
      perform(calls);
    }
  } catch (const std::exception& error) {
    for (const Call& call : calls) recorded().end(call.record, false);
    fail(fmt::format("rank {}: {}: {}", rank(), name_of(calls[0].signature), error.what()), blame_of(error, rank()));
    throw_if_failed();
    throw;
  }
  for (const Call& call : calls) recorded().end(call.record, true);
}

void HostCommunicator::queue(std::span<const Call> calls) {
  device::enqueue(calls[0].stream, [turn = std::make_shared<Turn>(*this, calls, false)] { turn->run(); });
}

void HostCommunicator::queue_alone(const Call& call) {
  device::enqueue(call.stream, [turn = std::make_shared<Turn>(*this, std::span(&call, 1), true)] { turn->run(); });
}

void HostCommunicator::wait_until_done(std::uint64_t work) {
  const auto deadline = std::chrono::steady_clock::now() + options().limit;
  {
    std::unique_lock lock(line_->mutex);
    while (line_->done < work && !failed() && std::chrono::steady_clock::now() < deadline) {
      line_->changed.wait_for(lock, kFailureSeenWithin);
    }
    if (line_->done >= work) return;
  }
  std::string name = fmt::format("its operation {}", work);
  for (const FlightRecorder::Entry& entry : recorder().entries()) {
    if (entry.work == work) name = name_of(entry.signature);
  }
  fail(fmt::format("rank {} waited {} for {}, which did not end: work before it in its stream may hang", rank(),
                   format_duration(options().limit), name),
       {EndingKind::time_out, -1});
  throw_if_failed();
}

void HostCommunicator::finish() noexcept {
  const auto deadline = std::chrono::steady_clock::now() + options().limit;
  std::unique_lock lock(line_->mutex);
  while (line_->done < line_->queued && !failed() && std::chrono::steady_clock::now() < deadline) {
    line_->changed.wait_for(lock, kFailureSeenWithin);
  }
  // The watcher may have to end running operations: keep it until none is left.
  lock.unlock();
  part();
  lock.lock();
  line_->closed = true;
  line_->changed.wait(lock, [this] { return line_->running == 0; });
}

}  // namespace syslab::comm
