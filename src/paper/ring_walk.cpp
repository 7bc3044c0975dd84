#include "paper/ring_walk.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::parallel {

RingWalk::RingWalk(std::int64_t ranks) {
  if (ranks < 1) throw Error(ErrorKind::usage, fmt::format("a ring of {} ranks; at least 1 is wanted", ranks));
  sent_elements_.assign(static_cast<std::size_t>(ranks), 0);
}

std::size_t RingWalk::begin(std::int64_t rank, std::size_t elements) const {
  return static_cast<std::size_t>(rank) * elements / sent_elements_.size();
}

void RingWalk::require_alike(const Buffers& buffers) const {
  if (buffers.size() != sent_elements_.size()) {
    throw Error(ErrorKind::internal, fmt::format("{} buffers in a ring of {}", buffers.size(), ranks()));
  }
  for (const auto& one : buffers) {
    if (one.size() == buffers.front().size()) continue;
    throw Error(ErrorKind::internal,
                fmt::format("a ring holds buffers of {} and of {} elements", buffers.front().size(), one.size()));
  }
}

void RingWalk::step(Buffers& buffers, const std::function<std::int64_t(std::int64_t)>& part_of,
                    const Receive& receive) {
  const std::int64_t n = ranks();
  const std::size_t elements = buffers.front().size();
  // All send before any receives, so what is being sent is a copy.
  std::vector<std::vector<double>> messages;
  for (std::int64_t rank = 0; rank < n; ++rank) {
    const std::int64_t part = part_of(rank);
    const auto& from = buffers[static_cast<std::size_t>(rank)];
    messages.emplace_back(from.begin() + static_cast<std::ptrdiff_t>(begin(part, elements)),
                          from.begin() + static_cast<std::ptrdiff_t>(begin(part + 1, elements)));
    sent_elements_[static_cast<std::size_t>(rank)] += static_cast<std::int64_t>(messages.back().size());
  }
  for (std::int64_t rank = 0; rank < n; ++rank) {
    auto& to = buffers[static_cast<std::size_t>((rank + 1) % n)];
    std::size_t place = begin(part_of(rank), elements);
    for (const double value : messages[static_cast<std::size_t>(rank)]) receive(to[place++], value);
  }
  ++steps_;
}

void RingWalk::reduce_scatter(Buffers& buffers) {
  require_alike(buffers);
  const std::int64_t n = ranks();
  // The sum of part p starts at the rank after its owner and ends at the owner.
  for (std::int64_t done = 0; done + 1 < n; ++done) {
    step(
        buffers, [&](std::int64_t rank) { return (rank + n - 1 - done) % n; },
        [](double& mine, double theirs) { mine += theirs; });
  }
}

void RingWalk::all_gather(Buffers& buffers) {
  require_alike(buffers);
  const std::int64_t n = ranks();
  for (std::int64_t done = 0; done + 1 < n; ++done) {
    step(
        buffers, [&](std::int64_t rank) { return (rank + n - done) % n; },
        [](double& mine, double theirs) { mine = theirs; });
  }
}

void RingWalk::all_reduce(Buffers& buffers) {
  reduce_scatter(buffers);
  all_gather(buffers);
}

}  // namespace syslab::parallel
