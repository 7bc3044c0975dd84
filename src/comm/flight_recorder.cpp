#include "comm/flight_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace syslab::comm {

namespace {

bool is_collective(const Signature& signature) {
  return !is_pairwise(signature.operation) && !is_of_host(signature.operation);
}

bool has_ended(FlightRecorder::State state) {
  return state == FlightRecorder::State::done || state == FlightRecorder::State::failed;
}

void raise(std::uint64_t& reached, std::uint64_t number) { reached = std::max(reached, number); }

}  // namespace

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
  const Signature& signature = call.signature;
  if (is_of_host(signature.operation)) raise(standing_.host_queued, signature.number);
  if (is_collective(signature)) raise(standing_.queued, signature.number);
  ring_[recorded_ % ring_.size()] = {.signature = signature, .work = call.work, .queued = now()};
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
    if (is_collective(entry->signature)) raise(standing_.started, entry->signature.number);
  }
}

void FlightRecorder::end(std::uint64_t place, bool well) {
  const std::lock_guard lock(mutex_);
  if (Entry* entry = at(place)) {
    entry->state = well ? State::done : State::failed;
    entry->ended = now();
    if (is_collective(entry->signature)) raise(standing_.done, entry->signature.number);
  }
  for (; open_ < recorded_; ++open_) {
    const Entry* entry = at(open_);
    if (entry != nullptr && !has_ended(entry->state)) return;
  }
}

FlightRecorder::Standing FlightRecorder::standing() const {
  const std::lock_guard lock(mutex_);
  Standing now = standing_;
  const std::uint64_t oldest = recorded_ - std::min<std::uint64_t>(recorded_, ring_.size());
  for (std::uint64_t place = std::max(open_, oldest); place < recorded_ && !now.under_way; ++place) {
    const Entry& entry = ring_[place % ring_.size()];
    if (entry.state == State::started) now.under_way = entry.signature;
  }
  return now;
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
