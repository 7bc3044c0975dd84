#include "comm/copy_engines/marked_work.hpp"

#include <algorithm>
#include <utility>

namespace syslab::comm {
namespace {

constexpr std::size_t kManyPending = 64;

}  // namespace

MarkedWork::MarkedWork(device::Place place, FlightRecorder& recorder, std::function<bool()> failed)
    : place_(place), recorder_(recorder), failed_(std::move(failed)) {}

void MarkedWork::begin(std::span<const Call> calls) {
  if (pending() > kManyPending) poll();
  const std::lock_guard lock(mutex_);
  const device::Stream stream = calls[0].stream;
  if (!pending_.empty() && pending_.back()->calls[0].stream.handle != stream.handle)
    pending_.back()->end.before(stream);
  std::unique_ptr<Marked> marked;
  if (spare_.empty()) {
    marked = std::make_unique<Marked>(place_);
  } else {
    marked = std::move(spare_.back());
    spare_.pop_back();
  }
  marked->calls.assign(calls.begin(), calls.end());
  marked->begun = false;
  marked->start.record(stream);
  opened_ = std::move(marked);
}

void MarkedWork::end() {
  const std::lock_guard lock(mutex_);
  opened_->end.record(opened_->calls[0].stream);
  pending_.push_back(std::move(opened_));
}

void MarkedWork::poll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  while (!pending_.empty()) {
    Marked& first = *pending_.front();
    if (!first.begun && first.start.done()) {
      first.begun = true;
      for (const Call& call : first.calls) recorder_.start(call.record);
    }
    if (!first.begun || !first.end.done() || failed_()) return;
    for (const Call& call : first.calls) recorder_.end(call.record, true);
    done_ = std::max(done_, first.calls.back().work);
    spare_.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
}

std::size_t MarkedWork::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

std::uint64_t MarkedWork::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

}  // namespace syslab::comm
