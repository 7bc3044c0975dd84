#include "comm/local/local.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "comm/host_communicator.hpp"
#include "comm/reduce.hpp"
#include "comm/signature.hpp"
#include "core/error.hpp"
#include "core/text/units.hpp"

namespace syslab::comm {

namespace {

// The steps of an operation that all ranks take together, numbered across all operations of one line.
enum Step : std::uint64_t { came, reduced, moved, kSteps };

// What a rank shows the others. There are two lines: what is queued on streams, and what the host does itself.
struct Shown {
  Signature signature;
  const void* in = nullptr;
  void* out = nullptr;
  std::string text;
  std::uint64_t steps = 0;  // taken
};

// Messages from one rank to another that have not been received yet.
struct Messages {
  std::deque<Call> waiting;
  std::uint64_t taken = 0;
};

struct World {
  World(int size_, CommunicatorOptions options_)
      : size(size_),
        options(options_),
        ranks(static_cast<std::size_t>(size_)),
        messages(static_cast<std::size_t>(size_ * size_)) {}

  struct Rank {
    Shown lines[2];
    bool left = false;
  };

  Rank& at(int rank) { return ranks[static_cast<std::size_t>(rank)]; }
  Messages& between(int from, int to) { return messages[static_cast<std::size_t>(from * size + to)]; }

  const int size;
  const CommunicatorOptions options;
  const std::shared_ptr<Failure> failure = std::make_shared<Failure>();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::vector<Messages> messages;
  int copying = 0;  // ranks that are reading or writing other ranks' memory
};

class LocalCommunicator final : public HostCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<World> world, int rank)
      : HostCommunicator(rank, world->size, world->options, world->failure), world_(std::move(world)) {}

  ~LocalCommunicator() override {
    finish();
    const std::lock_guard lock(world_->mutex);
    world_->at(rank()).left = true;
    world_->changed.notify_all();
  }

  std::string_view backend() const override { return "local"; }

 protected:
  void perform(std::span<const Call> calls) override {
    if (is_pairwise(calls[0].signature.operation)) return exchange_messages(calls);
    const Call& call = calls[0];
    come(call, {});
    switch (call.signature.operation) {
      case Operation::all_reduce:
        return all_reduce(call);
      case Operation::reduce_scatter:
        return reduce_scatter(call);
      case Operation::all_gather:
        return all_gather(call);
      default:
        return broadcast(call);
    }
  }

  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override {
    come(call, text);
    std::vector<std::string> texts;
    for (const World::Rank& rank : world_->ranks) texts.push_back(rank.lines[1].text);
    together(call.signature, moved);
    return texts;
  }

  void spread(std::string_view) noexcept override {
    const std::lock_guard lock(world_->mutex);
    world_->changed.notify_all();
  }

  bool compares_signatures() const override { return true; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  static std::size_t line_of(const Signature& signature) { return is_of_host(signature.operation) ? 1 : 0; }
  const Shown& shown(int rank) const { return world_->at(rank).lines[0]; }

  // Others may be reading this rank's memory: wait until they are done, since the caller may free it.
  [[noreturn]] void give_up(Lock& lock) {
    world_->changed.wait(lock, [this] { return world_->copying == 0; });
    lock.unlock();
    throw_if_failed();
    throw Error(ErrorKind::internal, "a rank gave up without a failure");
  }

  [[noreturn]] void fail_here(Lock& lock, const std::string& text, const Blame& blame) {
    failure_state().set(text, blame);
    world_->changed.notify_all();
    give_up(lock);
  }

  // Waits until `ready`. At the limit, or where one of `awaited` has left, communication ends for all.
  template <typename Ready, typename Awaited>
  void wait_until(Lock& lock, const Signature& signature, Ready ready, Awaited awaited) {
    const auto deadline = std::chrono::steady_clock::now() + options().limit;
    while (!ready()) {
      if (failed()) give_up(lock);
      const std::vector<int> missing = awaited();
      for (const int other : missing) {
        if (!world_->at(other).left) continue;
        fail_here(lock,
                  fmt::format("rank {} has left; rank {} waits for it in {}{}", other, rank(), to_string(signature),
                              last_of(other)),
                  {EndingKind::left, other});
      }
      if (world_->changed.wait_until(lock, deadline) == std::cv_status::timeout && !ready() && !failed()) {
        fail_here(lock,
                  fmt::format("rank{} {} did not come to {} within {}; rank {} waited{}",
                              missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), to_string(signature),
                              format_duration(options().limit), rank(), last_of(missing[0])),
                  {EndingKind::time_out, missing[0]});
      }
    }
    if (failed()) give_up(lock);
  }

  std::string last_of(int other) const {
    const Shown& last = world_->at(other).lines[0];
    if (last.steps == 0) return fmt::format(" (rank {} has done no operation of all ranks)", other);
    return fmt::format(" (the last of rank {} is {})", other, name_of(last.signature));
  }

  // Takes a step of the operation and waits until all have taken it.
  void together(const Signature& signature, Step step) {
    Lock lock(world_->mutex);
    together(lock, signature, step);
  }

  void together(Lock& lock, const Signature& signature, Step step) {
    const std::size_t line = line_of(signature);
    const std::uint64_t mine = (signature.number - 1) * kSteps + step + 1;
    world_->at(rank()).lines[line].steps = mine;
    world_->changed.notify_all();
    const auto behind = [&](const World::Rank& other) { return other.lines[line].steps < mine; };
    wait_until(
        lock, signature, [&] { return std::none_of(world_->ranks.begin(), world_->ranks.end(), behind); },
        [&] {
          std::vector<int> missing;
          for (int other = 0; other < size(); ++other) {
            if (behind(world_->at(other))) missing.push_back(other);
          }
          return missing;
        });
  }

  // The first step: every rank shows its call, and all look whether they mean the same.
  void come(const Call& call, std::string_view text) {
    Lock lock(world_->mutex);
    const std::size_t line = line_of(call.signature);
    Shown& mine = world_->at(rank()).lines[line];
    mine.signature = call.signature;
    mine.in = call.in;
    mine.out = call.out;
    mine.text = text;
    together(lock, call.signature, came);
    std::vector<Signature> all;
    for (const World::Rank& other : world_->ranks) all.push_back(other.lines[line].signature);
    const std::string difference = disagreement(all);
    if (!difference.empty()) fail_here(lock, difference, {EndingKind::disagreement, -1});
  }

  // The only place that accesses other ranks' memory: never after a failure, and give_up() waits until it is over.
  template <typename Copy>
  void touch_others(Copy copy) {
    {
      Lock lock(world_->mutex);
      if (failed()) give_up(lock);
      ++world_->copying;
    }
    copy();
    const std::lock_guard lock(world_->mutex);
    --world_->copying;
    world_->changed.notify_all();
  }

  // Sums elements [begin, end) of all ranks' `in` to this rank's `to`.
  void reduce(const Signature& signature, OwnedPart elements, void* to) {
    const std::size_t width = size_of(signature.dtype);
    std::vector<const void*> sources;
    for (int other = 0; other < size(); ++other) {
      sources.push_back(static_cast<const std::byte*>(shown(other).in) +
                        static_cast<std::size_t>(elements.begin) * width);
    }
    touch_others([&] { reduce_in_order(sources, to, signature.dtype, elements.count(), signature.reduction); });
    count_moved(signature, elements.count() * (size() - 1));
  }

  void copy_from(const Signature& signature, const void* from, void* to, std::int64_t elements) {
    if (elements == 0) return;
    touch_others([&] { std::memmove(to, from, static_cast<std::size_t>(elements) * size_of(signature.dtype)); });
    count_moved(signature, elements);
  }

  void count_moved(const Signature& signature, std::int64_t elements) {
    counted().add_moved(signature, static_cast<std::uint64_t>(elements) * size_of(signature.dtype));
  }

  // Every rank sums its own part into its own buffer, where no other rank reads that part; then it copies the other
  // parts.
  void all_reduce(const Call& call) {
    const Signature& signature = call.signature;
    const std::size_t width = size_of(signature.dtype);
    const auto at = [&](void* buffer, OwnedPart part) {
      return static_cast<std::byte*>(buffer) + static_cast<std::size_t>(part.begin) * width;
    };
    const OwnedPart mine = owned_part(signature.count, rank(), size());
    reduce(signature, mine, at(call.out, mine));
    together(signature, reduced);
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      const OwnedPart part = owned_part(signature.count, other, size());
      copy_from(signature, at(shown(other).out, part), at(call.out, part), part.count());
    }
    together(signature, moved);
  }

  void reduce_scatter(const Call& call) {
    const Signature& signature = call.signature;
    const std::int64_t begin = signature.count * rank();
    reduce(signature, {begin, begin + signature.count}, call.out);
    together(signature, moved);
  }

  void all_gather(const Call& call) {
    const Signature& signature = call.signature;
    for (int other = 0; other < size(); ++other) {
      auto* piece = static_cast<std::byte*>(call.out) + signature.bytes() * static_cast<std::size_t>(other);
      if (other != rank()) {
        copy_from(signature, shown(other).in, piece, signature.count);
      } else if (piece != call.in) {
        std::memcpy(piece, call.in, signature.bytes());
      }
    }
    together(signature, moved);
  }

  void broadcast(const Call& call) {
    const Signature& signature = call.signature;
    if (rank() != signature.peer) copy_from(signature, shown(signature.peer).in, call.out, signature.count);
    together(signature, moved);
  }

  // All sends are shown before anything is received, so that two neighbours may both send first.
  void exchange_messages(std::span<const Call> calls) {
    Lock lock(world_->mutex);
    for (const Call& call : calls) {
      if (call.signature.operation != Operation::send) continue;
      world_->between(rank(), call.signature.peer).waiting.push_back(call);
    }
    world_->changed.notify_all();
    for (const Call& call : calls) {
      if (call.signature.operation == Operation::receive) receive(lock, call);
    }
    for (const Call& call : calls) {
      if (call.signature.operation != Operation::send) continue;
      const Messages& messages = world_->between(rank(), call.signature.peer);
      wait_until(
          lock, call.signature, [&] { return messages.taken >= call.signature.number; },
          [&] { return std::vector<int>{call.signature.peer}; });
    }
  }

  void receive(Lock& lock, const Call& call) {
    const int from = call.signature.peer;
    Messages& messages = world_->between(from, rank());
    wait_until(
        lock, call.signature, [&] { return !messages.waiting.empty(); }, [&] { return std::vector<int>{from}; });
    const Call sent = messages.waiting.front();
    const std::string difference = disagreement(from, sent.signature, rank(), call.signature);
    if (!difference.empty()) fail_here(lock, difference, {EndingKind::disagreement, -1});
    lock.unlock();
    copy_from(call.signature, sent.in, call.out, call.signature.count);
    lock.lock();
    messages.waiting.pop_front();
    messages.taken = sent.signature.number;
    world_->changed.notify_all();
  }

  std::shared_ptr<World> world_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local(int size, CommunicatorOptions options) {
  if (size < 1)
    throw Error(ErrorKind::usage, fmt::format("local: {} ranks were asked for; there is at least one", size));
  const auto world = std::make_shared<World>(size, options);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<LocalCommunicator>(world, rank));
  return ranks;
}

}  // namespace syslab::comm
