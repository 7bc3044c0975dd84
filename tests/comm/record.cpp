#include "tests/comm/record.hpp"

#include <thread>
#include <utility>

namespace syslab::comm {

RecordCommunicator::RecordCommunicator(int rank, int size, CommunicatorOptions options,
                                       std::function<Nanoseconds(const Signature&)> takes)
    : HostCommunicator(rank, size, options), takes_(std::move(takes)) {}

RecordCommunicator::~RecordCommunicator() { finish(); }

void RecordCommunicator::perform(std::span<const Call> calls) {
  {
    const std::lock_guard lock(mutex_);
    const int group = calls.size() > 1 ? ++groups_ : 0;
    for (const Call& call : calls) log_.push_back({call.signature, call.stream, group});
  }
  if (!takes_) return;
  for (const Call& call : calls) std::this_thread::sleep_for(takes_(call.signature));
}

std::vector<std::string> RecordCommunicator::exchange_now(const Call&, std::string_view text) {
  return std::vector<std::string>(static_cast<std::size_t>(size()), std::string(text));
}

void RecordCommunicator::spread(std::string_view) noexcept {}

std::vector<RecordCommunicator::Entry> RecordCommunicator::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

std::vector<std::string> RecordCommunicator::lines() const {
  std::vector<std::string> lines;
  for (const Entry& entry : log()) lines.push_back(to_string(entry.signature));
  return lines;
}

}  // namespace syslab::comm
