#include "comm/shm/lane.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "comm/reduce.hpp"
#include "comm/signature.hpp"
#include "core/error.hpp"
#include "core/text/units.hpp"

namespace syslab::comm {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A waiting rank first spins for some microseconds, since the others usually arrive soon. Then it yields, because on a
// busy machine the rank it waits for may be queued for the same core; then it sleeps. With more ranks than cores it
// yields at once.
constexpr int kSpins = 200;
constexpr int kYields = 50;
// Longest sleep between two checks of the other ranks' processes.
constexpr auto kLongestNap = 20ms;

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

}  // namespace

ShmLane::ShmLane(ShmSegment& segment, int index)
    : segment_(segment),
      index_(index),
      rank_(segment.rank()),
      size_(segment.size()),
      crowded_(segment.size() > cores_of_this_process()),
      sources_(static_cast<std::size_t>(size_)) {}

// --- chunks ---------------------------------------------------------------------------------------------------------

void ShmLane::enter(const Call& call) {
  now_ = call.signature;
  segment_.throw_if_failed();
  line(rank_).entered.value.store(call.signature.number, std::memory_order_release);
}

std::byte* ShmLane::slot(int rank, std::uint64_t chunk) const {
  return reinterpret_cast<std::byte*>(&segment_.tag(index_, rank, chunk)) + kShmLine;
}

std::byte* ShmLane::claim(std::uint64_t chunk) {
  if (chunk >= free_until_) {
    const auto free_until = [&](int rank) { return line(rank).taken.value.load() + segment_.depth(); };
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

void ShmLane::publish(std::uint64_t chunk) {
  segment_.tag(index_, rank_, chunk) = now_;
  next_chunk_ = chunk + 1;
  advance(line(rank_).put, chunk + 1);
}

void ShmLane::publish_reduced(std::uint64_t chunk) { advance(line(rank_).reduced, chunk + 1); }

void ShmLane::release(std::uint64_t chunk) {
  next_chunk_ = std::max(next_chunk_, chunk + 1);  // this rank may not have put anything in it
  advance(line(rank_).taken, chunk + 1);
}

void ShmLane::await_put(int rank, std::uint64_t chunk) {
  await(rank, [&](int other) { return line(other).put.value.load() > chunk; });
  if (segment_.tag(index_, rank, chunk) != now_) disagree(rank, chunk);
}

void ShmLane::await_reduced(int rank, std::uint64_t chunk) {
  await(rank, [&](int other) { return line(other).reduced.value.load() > chunk; });
}

void ShmLane::take(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  moved_ += bytes;
}

// Sequentially consistent against `asleep`: either the sleeper sees the counter, or we see that it sleeps.
void ShmLane::advance(ShmCounter& counter, std::uint64_t value) {
  counter.value.store(value);
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) wake(other);
  }
}

void ShmLane::wake(int rank) {
  if (line(rank).wake.asleep.load() != 0) segment_.ring(index_, rank);
}

void ShmLane::reduce_into(std::byte* out, const std::byte* own, std::size_t offset, std::size_t bytes,
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
void ShmLane::await(int rank, const Ready& ready) {
  if (ready(rank)) return;
  await_long([&] { return ready(rank); }, [&](int other) { return !ready(other); });
}

void ShmLane::await_long(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late) {
  for (int turn = crowded_ ? kSpins : 0; turn < kSpins + kYields; ++turn) {
    turn < kSpins ? relax() : static_cast<void>(::sched_yield());
    if (ready()) return;
    segment_.throw_if_failed();
  }
  auto looked = Clock::now();
  const auto deadline = looked + segment_.limit();
  auto& wake = line(rank_).wake;
  while (!ready()) {
    const std::uint32_t bell = wake.bell.load();
    wake.asleep.store(1);
    if (!ready() && !segment_.failed()) futex_wait(wake.bell, bell, kLongestNap);
    wake.asleep.store(0);
    if (ready()) return;
    segment_.throw_if_failed();
    const auto now = Clock::now();
    if (now - looked < kLongestNap && now < deadline) continue;
    looked = now;
    look_after(ready, is_late, now >= deadline);
  }
}

// Checks the ranks that are late: has one ended or left? At the time limit: fails and names them.
void ShmLane::look_after(const std::function<bool()>& ready, const std::function<bool(int rank)>& is_late,
                         bool at_limit) {
  std::string late;
  int first_late = -1;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    // In this order, so that what the rank did before it left or ended is seen.
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
    const bool entered = is_pairwise(now_.operation) || line(other).entered.value.load() >= now_.number;
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

std::string ShmLane::last_of(int rank) const {
  const std::uint64_t chunks = line(rank).put.value.load();
  if (chunks == 0) return fmt::format(" (rank {} has done no operation of all ranks)", rank);
  return fmt::format(" (the last of rank {} is {})", rank, name_of(segment_.tag(index_, rank, chunks - 1)));
}

// The same message on every rank: it names the first rank that differs from rank 0. Ranks that do not arrive soon are
// assumed to agree.
void ShmLane::disagree(int rank, std::uint64_t chunk) {
  std::vector<Signature> all(static_cast<std::size_t>(size_));
  const auto is_there = [&](int other) { return other == rank_ || line(other).put.value.load() > chunk; };
  for (const auto deadline = Clock::now() + 200ms; Clock::now() < deadline; std::this_thread::sleep_for(1ms)) {
    bool all_are_there = true;
    for (int other = 0; other < size_; ++other) all_are_there = all_are_there && is_there(other);
    if (all_are_there) break;
  }
  const auto of = [&](int other) { return other == rank_ ? now_ : Signature(segment_.tag(index_, other, chunk)); };
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

void ShmLane::fail(const std::string& text, const Blame& blame) {
  segment_.fail(text, blame);
  segment_.throw_if_failed();
  throw Error(ErrorKind::internal, text);  // not reached: the line above throws
}

}  // namespace syslab::comm
