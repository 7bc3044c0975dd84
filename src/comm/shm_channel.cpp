#include "comm/shm_channel.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "comm/reduce.hpp"
#include "comm/signature.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace syslab::comm {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A waiting rank first spins, some microseconds: the others are nearly there. Then it yields, in case the one it waits
// for is queued behind it on its core, as happens on a busy machine; then it sleeps. Where ranks outnumber cores, it
// yields at once.
constexpr int kSpins = 200;
constexpr int kYields = 50;
// Longest sleep before the other ranks' processes are looked at.
constexpr auto kNap = 20ms;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int cores_of_this_process() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::size_t chunks_of(std::size_t bytes, std::size_t window) { return (bytes + window - 1) / window; }

// A chunk's parts, one a rank: whole cache lines, the last ones shorter or empty.
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
    : segment_(segment),
      lane_(lane),
      rank_(segment.rank()),
      size_(segment.size()),
      crowded_(segment.size() > cores_of_this_process()),
      sources_(static_cast<std::size_t>(size_)) {}

// --- operations -----------------------------------------------------------------------------------------------------

void ShmChannel::perform(std::span<const Call> calls) {
  const Call& call = calls[0];
  if (is_pairwise(call.signature.operation)) return transfer(calls);
  enter(call);
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
  const std::size_t window = segment_.slot_bytes(lane_), chunks = chunks_of(bytes, window);
  const std::uint64_t first = next_chunk_;
  for (std::size_t step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::size_t offset = step * window;
      std::memcpy(claim(first + step), buffer + offset, std::min(window, bytes - offset));
      publish(first + step);
    }
    if (step > 0) {
      const std::size_t offset = (step - 1) * window;
      reduce_into(buffer + offset, buffer + offset, 0, std::min(window, bytes - offset), first + step - 1);
      release(first + step - 1);
    }
  }
}

void ShmChannel::reduce_by_owners(std::byte* buffer, std::size_t bytes) {
  const std::size_t window = segment_.slot_bytes(lane_), chunks = chunks_of(bytes, window);
  const std::uint64_t first = next_chunk_;
  const auto parts = [&](std::size_t step) { return Parts(std::min(window, bytes - step * window), size_); };
  for (std::size_t step = 0; step < chunks + 2; ++step) {
    if (step < chunks) {
      const std::byte* const from = buffer + step * window;
      std::byte* const own = claim(first + step);
      const Parts cut = parts(step);
      // What lies before and behind the part that is this rank's own.
      std::memcpy(own, from, cut.begin(rank_));
      std::memcpy(own + cut.begin(rank_ + 1), from + cut.begin(rank_ + 1), cut.bytes - cut.begin(rank_ + 1));
      publish(first + step);
    }
    if (step >= 1 && step <= chunks) {
      const std::uint64_t chunk = first + step - 1;
      const Parts cut = parts(step - 1);
      std::byte* const at = buffer + (step - 1) * window + cut.begin(rank_);
      reduce_into(at, at, cut.begin(rank_), cut.size(rank_), chunk);
      std::memcpy(slot(rank_, chunk) + cut.begin(rank_), at, cut.size(rank_));
      advance(segment_.line(lane_, rank_).reduced, chunk + 1);
    }
    if (step >= 2) {
      const std::uint64_t chunk = first + step - 2;
      const Parts cut = parts(step - 2);
      std::byte* const to = buffer + (step - 2) * window;
      for (int other = 0; other < size_; ++other) {
        if (other == rank_ || cut.size(other) == 0) continue;
        await_reduced(other, chunk);
        take(to + cut.begin(other), slot(other, chunk) + cut.begin(other), cut.size(other));
      }
      release(chunk);
    }
  }
}

void ShmChannel::reduce_scatter(const Call& call) {
  const std::size_t bytes = call.signature.bytes();
  const std::size_t window = segment_.slot_bytes(lane_) / static_cast<std::size_t>(size_) / 64 * 64;  // of each part
  const std::size_t chunks = chunks_of(bytes, window), mine = static_cast<std::size_t>(rank_);
  const auto* const from = static_cast<const std::byte*>(call.in);
  auto* const to = static_cast<std::byte*>(call.out);
  const std::uint64_t first = next_chunk_;
  for (std::size_t step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::size_t offset = step * window, length = std::min(window, bytes - offset);
      std::byte* const own = claim(first + step);
      for (std::size_t other = 0; other < sources_.size(); ++other) {
        if (other != mine) std::memcpy(own + other * window, from + other * bytes + offset, length);
      }
      publish(first + step);
    }
    if (step > 0) {
      const std::size_t offset = (step - 1) * window, length = std::min(window, bytes - offset);
      reduce_into(to + offset, from + mine * bytes + offset, mine * window, length, first + step - 1);
      release(first + step - 1);
    }
  }
}

void ShmChannel::all_gather(const Call& call) {
  gather(static_cast<const std::byte*>(call.in), static_cast<std::byte*>(call.out), call.signature.bytes());
}

void ShmChannel::gather(const std::byte* part, std::byte* all, std::size_t bytes) {
  const std::size_t window = segment_.slot_bytes(lane_), chunks = chunks_of(bytes, window);
  const std::uint64_t first = next_chunk_;
  for (std::size_t step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::size_t offset = step * window, length = std::min(window, bytes - offset);
      std::memcpy(claim(first + step), part + offset, length);
      publish(first + step);
      std::byte* const own = all + static_cast<std::size_t>(rank_) * bytes + offset;
      if (own != part + offset) std::memcpy(own, part + offset, length);
    }
    if (step > 0) {
      const std::size_t offset = (step - 1) * window, length = std::min(window, bytes - offset);
      for (int other = 0; other < size_; ++other) {
        if (other == rank_) continue;
        await_put(other, first + step - 1);
        take(all + static_cast<std::size_t>(other) * bytes + offset, slot(other, first + step - 1), length);
      }
      release(first + step - 1);
    }
  }
}

void ShmChannel::broadcast(const Call& call) {
  const int root = call.signature.peer;
  const std::size_t bytes = call.signature.bytes(), window = segment_.slot_bytes(lane_);
  auto* const data = static_cast<std::byte*>(call.out);
  for (std::size_t offset = 0; offset < bytes; offset += window) {
    const std::uint64_t chunk = next_chunk_;
    const std::size_t length = std::min(window, bytes - offset);
    if (rank_ == root) std::memcpy(claim(chunk), data + offset, length);
    if (rank_ == root || offset == 0) {
      claim(chunk);
      publish(chunk);
    }
    // Only here would two roots find out.
    for (int other = 0; offset == 0 && other < size_; ++other) {
      if (other != rank_) await_put(other, chunk);
    }
    if (rank_ != root) {
      await_put(root, chunk);
      take(data + offset, slot(root, chunk), length);
    }
    next_chunk_ = chunk + 1;
    release(chunk);
  }
}

std::vector<std::string> ShmChannel::exchange(const Call& call, std::string_view text) {
  enter(call);
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

// --- between two ranks ----------------------------------------------------------------------------------------------

void ShmChannel::transfer(std::span<const Call> calls) {
  if (segment_.transfer_bytes(lane_) == 0) {
    throw Error(ErrorKind::internal, "this lane of shared memory has no room for transfers between two ranks");
  }
  now_ = calls[0].signature;
  segment_.throw_if_failed();
  transferred_.assign(calls.size(), 0);
  const auto finished = [&](std::size_t index) { return is_finished(calls[index], transferred_[index]); };
  // Those of one direction and peer go one after the other.
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
      now_ = calls[index].signature;
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
    if (unfinished && !moved) await_long(std::cref(ready), std::cref(is_late));
  }
}

PairLine& ShmChannel::pair(const Call& call) const {
  const int peer = call.signature.peer;
  const bool sends = call.signature.operation == Operation::send;
  return segment_.pair(lane_, sends ? rank_ : peer, sends ? peer : rank_);
}

// What was sent counts when it was received: a rank that left without has failed its neighbour.
bool ShmChannel::is_finished(const Call& call, std::size_t done) const {
  if (done < call.signature.bytes()) return false;
  const PairLine& line = pair(call);
  return call.signature.operation == Operation::receive || line.received.value.load() == line.sent.value.load();
}

bool ShmChannel::can_go_on(const Call& call, std::size_t done) const {
  if (done == call.signature.bytes()) return false;
  const PairLine& line = pair(call);
  const std::uint64_t sent = line.sent.value.load(), received = line.received.value.load();
  return call.signature.operation == Operation::send ? sent < received + segment_.depth() : sent > received;
}

bool ShmChannel::go_on(const Call& call, std::size_t& done) {
  const int peer = call.signature.peer;
  const bool sends = call.signature.operation == Operation::send;
  PairLine& line = pair(call);
  ShmCounter& counter = sends ? line.sent : line.received;
  bool moved = false;
  for (const std::size_t bytes = call.signature.bytes(); can_go_on(call, done); moved = true) {
    const std::size_t length = std::min(segment_.transfer_bytes(lane_), bytes - done);
    const std::uint64_t chunk = counter.value.load();
    ShmTag& tag = segment_.pair_tag(lane_, sends ? rank_ : peer, sends ? peer : rank_, chunk);
    std::byte* const staged = reinterpret_cast<std::byte*>(&tag) + kShmLine;
    if (sends) {
      tag = call.signature;
      std::memcpy(staged, static_cast<const std::byte*>(call.in) + done, length);
    } else {
      const std::string difference = disagreement(peer, tag, rank_, call.signature);
      if (!difference.empty()) fail(difference, {EndingKind::disagreement, -1});
      take(static_cast<std::byte*>(call.out) + done, staged, length);
    }
    counter.value.store(chunk + 1);
    wake(peer);
    done += length;
  }
  return moved;
}

// --- chunks ---------------------------------------------------------------------------------------------------------

void ShmChannel::enter(const Call& call) {
  now_ = call.signature;
  segment_.throw_if_failed();
  segment_.line(lane_, rank_).entered.value.store(call.signature.number, std::memory_order_release);
}

std::byte* ShmChannel::slot(int rank, std::uint64_t chunk) const {
  return reinterpret_cast<std::byte*>(&segment_.tag(lane_, rank, chunk)) + kShmLine;
}

std::byte* ShmChannel::claim(std::uint64_t chunk) {
  if (chunk >= free_until_) {
    const auto free_until = [&](int rank) { return segment_.line(lane_, rank).taken.value.load() + segment_.depth(); };
    std::uint64_t least = ~std::uint64_t{0};
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      await(other, [&](int rank) { return chunk < free_until(rank); });
      least = std::min(least, free_until(other));
    }
    free_until_ = least;
  }
  return slot(rank_, chunk);
}

void ShmChannel::publish(std::uint64_t chunk) {
  segment_.tag(lane_, rank_, chunk) = now_;
  next_chunk_ = chunk + 1;
  advance(segment_.line(lane_, rank_).put, chunk + 1);
}

void ShmChannel::release(std::uint64_t chunk) { advance(segment_.line(lane_, rank_).taken, chunk + 1); }

void ShmChannel::await_put(int rank, std::uint64_t chunk) {
  await(rank, [&](int other) { return segment_.line(lane_, other).put.value.load() > chunk; });
  if (segment_.tag(lane_, rank, chunk) != now_) disagree(rank, chunk);
}

void ShmChannel::await_reduced(int rank, std::uint64_t chunk) {
  await(rank, [&](int other) { return segment_.line(lane_, other).reduced.value.load() > chunk; });
}

void ShmChannel::take(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  moved_ += bytes;
}

// Sequentially consistent against `asleep`: either the sleeper sees the counter, or we see that it sleeps.
void ShmChannel::advance(ShmCounter& counter, std::uint64_t value) {
  counter.value.store(value);
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) wake(other);
  }
}

void ShmChannel::wake(int rank) {
  if (segment_.line(lane_, rank).wake.asleep.load() != 0) segment_.ring(lane_, rank);
}

void ShmChannel::reduce_into(std::byte* out, const std::byte* own, std::size_t offset, std::size_t bytes,
                             std::uint64_t chunk) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) await_put(rank, chunk);
    sources_[static_cast<std::size_t>(rank)] = rank == rank_ ? own : slot(rank, chunk) + offset;
  }
  const DType dtype = now_.dtype;
  reduce_in_order(sources_, out, dtype, static_cast<std::int64_t>(bytes / size_of(dtype)), now_.reduction);
  moved_ += bytes * static_cast<std::size_t>(size_ - 1);
}

// --- waiting and failing --------------------------------------------------------------------------------------------

template <typename Ready>
void ShmChannel::await(int rank, const Ready& ready) {
  if (ready(rank)) return;
  await_long([&] { return ready(rank); }, [&](int other) { return !ready(other); });
}

void ShmChannel::await_long(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late) {
  for (int turn = crowded_ ? kSpins : 0; turn < kSpins + kYields; ++turn) {
    turn < kSpins ? relax() : static_cast<void>(::sched_yield());
    if (ready()) return;
    segment_.throw_if_failed();
  }
  auto looked = Clock::now();
  const auto deadline = looked + segment_.limit();
  auto& wake = segment_.line(lane_, rank_).wake;
  while (!ready()) {
    const std::uint32_t bell = wake.bell.load();
    wake.asleep.store(1);
    if (!ready() && !segment_.failed()) futex_wait(wake.bell, bell, kNap);
    wake.asleep.store(0);
    if (ready()) return;
    segment_.throw_if_failed();
    const auto now = Clock::now();
    if (now - looked < kNap && now < deadline) continue;
    looked = now;
    look_after(ready, is_late, now >= deadline);
  }
}

// A rank that does not come: is it gone? At the limit: who is it?
void ShmChannel::look_after(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late,
                            bool at_limit) {
  std::string late;
  int first_late = -1;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    // In this order: what it did before it left or ended is seen.
    const bool joined = segment_.state(other) == RankState::joined;
    const bool ended = joined && segment_.has_ended(other);
    const bool behind = is_late(other);
    if (ready()) return;
    if (ended) {
      fail(fmt::format("rank {}'s process ({}) has ended; rank {} waits in {}{}", other, segment_.pid(other), rank_,
                       to_string(now_), last_of(other)),
           {EndingKind::death, other});
    }
    if (!behind) continue;
    if (!joined) {
      fail(fmt::format("rank {} has left; rank {} waits for it in {}{}", other, rank_, to_string(now_), last_of(other)),
           {EndingKind::left, other});
    }
    const bool entered = is_pairwise(now_.operation) || segment_.line(lane_, other).entered.value.load() >= now_.number;
    if (!at_limit) continue;
    late += fmt::format("{}rank {}{} {}", late.empty() ? "" : ", ", other,
                        segment_.is_stopped(other) ? " (its process is stopped)" : "",
                        entered ? "did not come on in" : "did not come to");
    if (first_late < 0) first_late = other;
  }
  if (!at_limit) return;
  fail(fmt::format("{} {} within {}; rank {} waited{}", late.empty() ? "nobody moved in" : late, to_string(now_),
                   format_duration(segment_.limit()), rank_, first_late < 0 ? "" : last_of(first_late)),
       {EndingKind::time_out, first_late});
}

std::string ShmChannel::last_of(int rank) const {
  const std::uint64_t chunks = segment_.line(lane_, rank).put.value.load();
  if (chunks == 0) return fmt::format(" (rank {} has done no operation of all ranks)", rank);
  return fmt::format(" (the last of rank {} is {})", rank, name_of(segment_.tag(lane_, rank, chunks - 1)));
}

// Told as all ranks would tell it: whoever differs from rank 0 first. Those that do not come soon are taken to agree.
void ShmChannel::disagree(int rank, std::uint64_t chunk) {
  std::vector<Signature> all(static_cast<std::size_t>(size_));
  const auto is_there = [&](int other) {
    return other == rank_ || segment_.line(lane_, other).put.value.load() > chunk;
  };
  for (const auto deadline = Clock::now() + 200ms; Clock::now() < deadline; std::this_thread::sleep_for(1ms)) {
    bool all_are_there = true;
    for (int other = 0; other < size_; ++other) all_are_there = all_are_there && is_there(other);
    if (all_are_there) break;
  }
  const auto of = [&](int other) { return other == rank_ ? now_ : Signature(segment_.tag(lane_, other, chunk)); };
  if (!is_there(0)) {
    const Signature &theirs = of(rank), &ours = now_;
    fail(fmt::format("the ranks disagree: rank {} calls {}; rank {} calls {}: every rank must call the same operations "
                     "in the same order",
                     rank, to_string(theirs), rank_, to_string(ours)),
         {EndingKind::disagreement, -1});
  }
  for (int other = 0; other < size_; ++other) all[static_cast<std::size_t>(other)] = of(is_there(other) ? other : 0);
  fail(disagreement(all), {EndingKind::disagreement, -1});
}

void ShmChannel::fail(const std::string& text, const Blame& blame) {
  segment_.fail(text, blame);
  segment_.throw_if_failed();
  throw Error(ErrorKind::internal, text);  // it has failed now
}

}  // namespace syslab::comm
