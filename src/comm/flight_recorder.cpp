#include "comm/flight_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace syslab::comm {

std::string_view to_string(FlightRecorder::State state) {
  switch (state) {
    case FlightRecorder::State::queued:
      return "queued";
    case FlightRecorder::State::started:
      return "started";
    case FlightRecorder::State::done:
      return "done";
    case FlightRecorder::State::failed:
      return "failed";
  }
  return "?";
}

FlightRecorder::FlightRecorder(int rank, int size, std::size_t kept)
    : rank_(rank), size_(size), begin_(std::chrono::steady_clock::now().time_since_epoch()), ring_(kept) {}

Nanoseconds FlightRecorder::now() const { return std::chrono::steady_clock::now().time_since_epoch() - begin_; }

std::uint64_t FlightRecorder::add(const Call& call) {
  const std::lock_guard lock(mutex_);
  ring_[recorded_ % ring_.size()] = {.signature = call.signature, .work = call.work, .queued = now()};
  return recorded_++;
}

FlightRecorder::Entry* FlightRecorder::at(std::uint64_t place) {
  const bool kept = place < recorded_ && recorded_ - place <= ring_.size();
  return kept ? &ring_[place % ring_.size()] : nullptr;
}

void FlightRecorder::start(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  if (Entry* entry = at(place)) {
    entry->state = State::started;
    entry->started = now();
  }
}

void FlightRecorder::end(std::uint64_t place, bool well) {
  const std::lock_guard lock(mutex_);
  if (Entry* entry = at(place)) {
    entry->state = well ? State::done : State::failed;
    entry->ended = now();
  }
}

void FlightRecorder::visit(const std::function<bool(const Entry&)>& go_on) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t oldest = recorded_ - std::min<std::uint64_t>(recorded_, ring_.size());
  for (std::uint64_t place = recorded_; place > oldest; --place) {
    if (!go_on(ring_[(place - 1) % ring_.size()])) return;
  }
}

std::uint64_t FlightRecorder::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

std::vector<FlightRecorder::Entry> FlightRecorder::entries() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t kept = std::min<std::uint64_t>(recorded_, ring_.size());
  std::vector<Entry> entries;
  entries.reserve(kept);
  for (std::uint64_t place = recorded_ - kept; place < recorded_; ++place) {
    entries.push_back(ring_[place % ring_.size()]);
  }
  return entries;
}

std::string FlightRecorder::text(std::size_t most) const {
  const std::vector<Entry> all = entries();
  const std::size_t from = all.size() > most ? all.size() - most : 0;
  std::string text =
      fmt::format("rank {} of {}: {} operations, the last {}\n", rank_, size_, recorded(), all.size() - from);
  for (std::size_t i = from; i < all.size(); ++i) {
    const Entry& entry = all[i];
    text += fmt::format("{:>12} {:<7} {}", format_duration(entry.queued), to_string(entry.state),
                        to_string(entry.signature));
    if (entry.ended != Nanoseconds{}) {
      text += fmt::format("; {} after it was queued", format_duration(entry.ended - entry.queued));
    }
    text += '\n';
  }
  return text;
}

Json FlightRecorder::json() const {
  Json operations = Json::array();
  for (const Entry& entry : entries()) {
    const Signature& signature = entry.signature;
    Json one = {
        {"operation", to_string(signature.operation)},
        {"number", signature.number},
        {"work", entry.work},
        {"kind", signature.kind.view()},
        {"label", signature.label.view()},
        {"state", to_string(entry.state)},
        {"queued_ns", entry.queued.count()},
        {"started_ns", entry.started.count()},
        {"ended_ns", entry.ended.count()},
    };
    if (!is_of_host(signature.operation)) {
      one["count"] = signature.count;
      one["dtype"] = to_string(signature.dtype);
      one["reduction"] = to_string(signature.reduction);
      one["peer"] = signature.peer;
    }
    operations.push_back(std::move(one));
  }
  return {{"rank", rank_}, {"size", size_}, {"recorded", recorded()}, {"operations", std::move(operations)}};
}

}  // namespace syslab::comm
