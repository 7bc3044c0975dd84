#include "comm/shm/transfers.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "comm/signature.hpp"
#include "core/error.hpp"

namespace syslab::comm {

ShmTransfers::ShmTransfers(ShmSegment& segment, ShmLane& lane) : segment_(segment), lane_(lane) {}

void ShmTransfers::perform(std::span<const Call> calls) {
  if (segment_.transfer_bytes(lane_.index()) == 0) {
    throw Error(ErrorKind::internal, "this lane of shared memory has no room for transfers between two ranks");
  }
  lane_.set_now(calls[0].signature);
  segment_.throw_if_failed();
  transferred_.assign(calls.size(), 0);
  const auto finished = [&](std::size_t index) { return is_finished(calls[index], transferred_[index]); };
  // Transfers with the same peer and direction are done one after the other.
  const auto is_next = [&](std::size_t index) {
    const Signature& signature = calls[index].signature;
    for (std::size_t before = 0; before < index; ++before) {
      const Signature& earlier = calls[before].signature;
      if (earlier.peer == signature.peer && earlier.operation == signature.operation && !finished(before)) return false;
    }
    return !finished(index);
  };
  const auto ready = [&] {
    bool all_finished = true;
    for (std::size_t index = 0; index < calls.size(); ++index) {
      if (is_next(index) && can_go_on(calls[index], transferred_[index])) return true;
      all_finished = all_finished && finished(index);
    }
    return all_finished;
  };
  const auto is_late = [&](int rank) {
    for (std::size_t index = 0; index < calls.size(); ++index) {
      if (calls[index].signature.peer != rank || !is_next(index)) continue;
      if (can_go_on(calls[index], transferred_[index])) continue;
      lane_.set_now(calls[index].signature);
      return true;
    }
    return false;
  };
  for (bool unfinished = true; unfinished;) {
    bool moved = false;
    unfinished = false;
    for (std::size_t index = 0; index < calls.size(); ++index) {
      if (is_next(index)) moved |= go_on(calls[index], transferred_[index]);
      unfinished |= !finished(index);
    }
    if (unfinished && !moved) lane_.await_long(std::cref(ready), std::cref(is_late));
  }
}

PairLine& ShmTransfers::pair(const Call& call) const {
  const int peer = call.signature.peer;
  const bool sends = call.signature.operation == Operation::send;
  return segment_.pair(lane_.index(), sends ? lane_.rank() : peer, sends ? peer : lane_.rank());
}

// A send is finished when it has been received: a rank that left earlier would leave its neighbour waiting.
bool ShmTransfers::is_finished(const Call& call, std::size_t done) const {
  if (done < call.signature.bytes()) return false;
  const PairLine& line = pair(call);
  return call.signature.operation == Operation::receive || line.received.value.load() == line.sent.value.load();
}

bool ShmTransfers::can_go_on(const Call& call, std::size_t done) const {
  if (done == call.signature.bytes()) return false;
  const PairLine& line = pair(call);
  const std::uint64_t sent = line.sent.value.load(), received = line.received.value.load();
  return call.signature.operation == Operation::send ? sent < received + segment_.depth() : sent > received;
}

bool ShmTransfers::go_on(const Call& call, std::size_t& done) {
  const int peer = call.signature.peer;
  const bool sends = call.signature.operation == Operation::send;
  PairLine& line = pair(call);
  ShmCounter& counter = sends ? line.sent : line.received;
  bool moved = false;
  for (const std::size_t bytes = call.signature.bytes(); can_go_on(call, done); moved = true) {
    const std::size_t length = std::min(segment_.transfer_bytes(lane_.index()), bytes - done);
    const std::uint64_t chunk = counter.value.load();
    ShmTag& tag = segment_.pair_tag(lane_.index(), sends ? lane_.rank() : peer, sends ? peer : lane_.rank(), chunk);
    std::byte* const staged = reinterpret_cast<std::byte*>(&tag) + kShmLine;
    if (sends) {
      tag = call.signature;
      std::memcpy(staged, static_cast<const std::byte*>(call.in) + done, length);
    } else {
      const std::string difference = disagreement(peer, tag, lane_.rank(), call.signature);
      if (!difference.empty()) lane_.fail(difference, {EndingKind::disagreement, -1});
      lane_.take(static_cast<std::byte*>(call.out) + done, staged, length);
    }
    counter.value.store(chunk + 1);
    lane_.wake(peer);
    done += length;
  }
  return moved;
}

}  // namespace syslab::comm
