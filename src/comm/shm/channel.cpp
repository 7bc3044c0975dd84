#include "comm/shm/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace syslab::comm {
namespace {

std::size_t chunks_of(std::size_t bytes, std::size_t window) { return (bytes + window - 1) / window; }

// A chunk divided into one part per rank: whole cache lines; the last parts may be shorter or empty.
struct Parts {
  std::size_t bytes, each;

  Parts(std::size_t bytes_, int ranks) : bytes(bytes_) {
    each = chunks_of(bytes, static_cast<std::size_t>(ranks) * 64) * 64;
  }
  std::size_t begin(int rank) const { return std::min(bytes, static_cast<std::size_t>(rank) * each); }
  std::size_t size(int rank) const { return begin(rank + 1) - begin(rank); }
};

}  // namespace

ShmChannel::ShmChannel(ShmSegment& segment, int lane)
    : lane_(segment, lane), transfers_(segment, lane_), rank_(segment.rank()), size_(segment.size()) {}

void ShmChannel::perform(std::span<const Call> calls) {
  const Call& call = calls[0];
  if (is_pairwise(call.signature.operation)) return transfers_.perform(calls);
  lane_.enter(call);
  switch (call.signature.operation) {
    case Operation::all_reduce:
      return all_reduce(call);
    case Operation::reduce_scatter:
      return reduce_scatter(call);
    case Operation::all_gather:
      return all_gather(call);
    case Operation::broadcast:
      return broadcast(call);
    default:
      throw Error(ErrorKind::internal, fmt::format("{} is no collective of tensors", name_of(call.signature)));
  }
}

void ShmChannel::all_reduce(const Call& call) {
  auto* const buffer = static_cast<std::byte*>(call.out);
  const std::size_t bytes = call.signature.bytes();
  size_ == 2 ? reduce_directly(buffer, bytes) : reduce_by_owners(buffer, bytes);
}

void ShmChannel::reduce_directly(std::byte* buffer, std::size_t bytes) {
  const std::size_t window = lane_.slot_bytes(), chunks = chunks_of(bytes, window);
  const std::uint64_t first = lane_.next_chunk();
  for (std::size_t step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::size_t offset = step * window;
      std::memcpy(lane_.claim(first + step), buffer + offset, std::min(window, bytes - offset));
      lane_.publish(first + step);
    }
    if (step > 0) {
      const std::size_t offset = (step - 1) * window;
      lane_.reduce_into(buffer + offset, buffer + offset, 0, std::min(window, bytes - offset), first + step - 1);
      lane_.release(first + step - 1);
    }
  }
}

void ShmChannel::reduce_by_owners(std::byte* buffer, std::size_t bytes) {
  const std::size_t window = lane_.slot_bytes(), chunks = chunks_of(bytes, window);
  const std::uint64_t first = lane_.next_chunk();
  const auto parts = [&](std::size_t step) { return Parts(std::min(window, bytes - step * window), size_); };
  for (std::size_t step = 0; step < chunks + 2; ++step) {
    if (step < chunks) {
      const std::byte* const from = buffer + step * window;
      std::byte* const own = lane_.claim(first + step);
      const Parts cut = parts(step);
      // All but this rank's own part: what is before it and after it.
      std::memcpy(own, from, cut.begin(rank_));
      std::memcpy(own + cut.begin(rank_ + 1), from + cut.begin(rank_ + 1), cut.bytes - cut.begin(rank_ + 1));
      lane_.publish(first + step);
    }
    if (step >= 1 && step <= chunks) {
      const std::uint64_t chunk = first + step - 1;
      const Parts cut = parts(step - 1);
      std::byte* const at = buffer + (step - 1) * window + cut.begin(rank_);
      lane_.reduce_into(at, at, cut.begin(rank_), cut.size(rank_), chunk);
      std::memcpy(lane_.slot(rank_, chunk) + cut.begin(rank_), at, cut.size(rank_));
      lane_.publish_reduced(chunk);
    }
    if (step >= 2) {
      const std::uint64_t chunk = first + step - 2;
      const Parts cut = parts(step - 2);
      std::byte* const to = buffer + (step - 2) * window;
      for (int other = 0; other < size_; ++other) {
        if (other == rank_ || cut.size(other) == 0) continue;
        lane_.await_reduced(other, chunk);
        lane_.take(to + cut.begin(other), lane_.slot(other, chunk) + cut.begin(other), cut.size(other));
      }
      lane_.release(chunk);
    }
  }
}

void ShmChannel::reduce_scatter(const Call& call) {
  const std::size_t bytes = call.signature.bytes();
  const std::size_t window = lane_.slot_bytes() / static_cast<std::size_t>(size_) / 64 * 64;  // bytes of each part
  const std::size_t chunks = chunks_of(bytes, window), mine = static_cast<std::size_t>(rank_);
  const auto* const from = static_cast<const std::byte*>(call.in);
  auto* const to = static_cast<std::byte*>(call.out);
  const std::uint64_t first = lane_.next_chunk();
  for (std::size_t step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::size_t offset = step * window, length = std::min(window, bytes - offset);
      std::byte* const own = lane_.claim(first + step);
      for (std::size_t other = 0; other < static_cast<std::size_t>(size_); ++other) {
        if (other != mine) std::memcpy(own + other * window, from + other * bytes + offset, length);
      }
      lane_.publish(first + step);
    }
    if (step > 0) {
      const std::size_t offset = (step - 1) * window, length = std::min(window, bytes - offset);
      lane_.reduce_into(to + offset, from + mine * bytes + offset, mine * window, length, first + step - 1);
      lane_.release(first + step - 1);
    }
  }
}

void ShmChannel::all_gather(const Call& call) {
  gather(static_cast<const std::byte*>(call.in), static_cast<std::byte*>(call.out), call.signature.bytes());
}

void ShmChannel::gather(const std::byte* part, std::byte* all, std::size_t bytes) {
  const std::size_t window = lane_.slot_bytes(), chunks = chunks_of(bytes, window);
  const std::uint64_t first = lane_.next_chunk();
  for (std::size_t step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::size_t offset = step * window, length = std::min(window, bytes - offset);
      std::memcpy(lane_.claim(first + step), part + offset, length);
      lane_.publish(first + step);
      std::byte* const own = all + static_cast<std::size_t>(rank_) * bytes + offset;
      if (own != part + offset) std::memcpy(own, part + offset, length);
    }
    if (step > 0) {
      const std::size_t offset = (step - 1) * window, length = std::min(window, bytes - offset);
      for (int other = 0; other < size_; ++other) {
        if (other == rank_) continue;
        lane_.await_put(other, first + step - 1);
        lane_.take(all + static_cast<std::size_t>(other) * bytes + offset, lane_.slot(other, first + step - 1), length);
      }
      lane_.release(first + step - 1);
    }
  }
}

void ShmChannel::broadcast(const Call& call) {
  const int root = call.signature.peer;
  const std::size_t bytes = call.signature.bytes(), window = lane_.slot_bytes();
  auto* const data = static_cast<std::byte*>(call.out);
  for (std::size_t offset = 0; offset < bytes; offset += window) {
    const std::uint64_t chunk = lane_.next_chunk();
    const std::size_t length = std::min(window, bytes - offset);
    if (rank_ == root) std::memcpy(lane_.claim(chunk), data + offset, length);
    if (rank_ == root || offset == 0) {
      lane_.claim(chunk);
      lane_.publish(chunk);
    }
    // Without this, two ranks that both believe to be the root would not notice.
    for (int other = 0; offset == 0 && other < size_; ++other) {
      if (other != rank_) lane_.await_put(other, chunk);
    }
    if (rank_ != root) {
      lane_.await_put(root, chunk);
      lane_.take(data + offset, lane_.slot(root, chunk), length);
    }
    lane_.release(chunk);
  }
}

std::vector<std::string> ShmChannel::exchange(const Call& call, std::string_view text) {
  lane_.enter(call);
  const auto ranks = static_cast<std::size_t>(size_);
  const std::uint64_t length = text.size();
  std::vector<std::uint64_t> lengths(ranks);
  gather(reinterpret_cast<const std::byte*>(&length), reinterpret_cast<std::byte*>(lengths.data()), sizeof length);
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::byte> padded(longest), all(ranks * longest);
  text.copy(reinterpret_cast<char*>(padded.data()), length);
  gather(padded.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data()) + rank * longest, lengths[rank]);
  }
  return texts;
}

}  // namespace syslab::comm
