#include "comm/copy_engines/copy_engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "comm/kernels.hpp"
#include "comm/reduce.hpp"
#include "core/error.hpp"
#include "core/integers.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/queue.hpp"

namespace syslab::comm {
namespace {

using device::Stream;

constexpr std::size_t kMarkRoom = 4096;       // bytes for all marks, before the slots
constexpr std::size_t kMarkKinds = 4;         // CopyEngines::Mark
constexpr std::int64_t kGrain = 64;           // elements: shards and chunks begin at multiples
constexpr std::size_t kSlotGrain = 512;       // bytes: kGrain of the widest, so that sums read all slots in packs
constexpr std::int64_t kChunksOfAShard = 4;   // at least, for a large shard: this many are in flight
constexpr std::size_t kLeastChunk = 2 << 20;  // below it, marks cost more than concurrent work gains
constexpr std::size_t kGiveBehind = 2;        // chunks that are sent before one is given
static_assert(kernels::kMostSources * kMarkKinds * sizeof(std::uint32_t) <= kMarkRoom);
constexpr std::uint32_t kPassed = 0x7fff'ffff;  // a mark that nothing waits for

device::OwnedStream stream_of(device::Place place) {
  return place.kind == device::Kind::cpu ? device::OwnedStream::queue() : device::OwnedStream::urgent(place);
}

// to = the sum over `sources` in their order.
void sum_sources(std::span<const void* const> sources, void* to, DType dtype, std::int64_t count, Stream stream) {
  if (stream.kind == device::Kind::cuda) return kernels::sum_in_order(sources, to, dtype, count, stream);
  device::enqueue(stream, [kept = std::vector(sources.begin(), sources.end()), to, dtype, count] {
    reduce_in_order(kept, to, dtype, count, Reduction::sum);
  });
}

}  // namespace

CopyEngineOptions parse_copy_engine_options(std::string_view text) {
  CopyEngineOptions options;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    const auto value = parse_bytes(part.substr(std::min(equals + 1, part.size())));
    if (value && name == "slots") {
      options.slots = static_cast<int>(*value);
    } else if (value && name == "slot") {
      options.slot_bytes = *value;
    } else if (value && name == "least") {
      options.least_bytes = *value;
    } else if (!part.empty()) {
      throw Error(ErrorKind::usage, fmt::format("'{}' of SYSLAB_COPY_ENGINES: slots=N, slot=BYTES and "
                                                "least=BYTES are known, with commas between them",
                                                part));
    }
  }
  return options;
}

// The offsets of a call's shards in its buffer, and their division into chunks. The same on all ranks.
struct CopyEngines::Shape {
  Shape(const Call& given, int ranks, std::size_t slot_bytes)
      : call(given),
        scatters(given.signature.operation != Operation::all_gather),
        gathers(given.signature.operation != Operation::reduce_scatter),
        whole(given.signature.count),
        size(static_cast<std::int64_t>(size_of(given.signature.dtype))) {
    if (given.signature.operation == Operation::all_reduce) {
      shard = round_up((whole + ranks - 1) / ranks, kGrain);
    } else {
      shard = whole;
      whole *= ranks;
    }
    const auto least = static_cast<std::int64_t>(kLeastChunk) / size,
               most = static_cast<std::int64_t>(slot_bytes) / size;
    chunk = round_up(std::max((shard + kChunksOfAShard - 1) / kChunksOfAShard, least), kGrain);
    chunk = std::min(chunk, most / kGrain * kGrain);
    chunks = (shard + chunk - 1) / chunk;
  }

  // First element and number of elements of chunk `at` of a rank's shard. A small buffer has empty shards at its end.
  std::int64_t first(int of, std::int64_t at) const { return std::min(of * shard + at * chunk, whole); }
  std::int64_t count(int of, std::int64_t at) const {
    return std::min({first(of, at) + chunk, (of + 1) * shard, whole}) - first(of, at);
  }
  std::size_t bytes(int of, std::int64_t at) const { return static_cast<std::size_t>(count(of, at) * size); }
  // Addresses in the whole buffer, or in this rank's part if the call has only that.
  const std::byte* in(int of, std::int64_t at) const {
    return static_cast<const std::byte*>(call.in) + (scatters ? first(of, at) : at * chunk) * size;
  }
  std::byte* out(int of, std::int64_t at) const {
    return static_cast<std::byte*>(call.out) + (gathers ? first(of, at) : at * chunk) * size;
  }

  const Call& call;
  bool scatters, gathers;                                      // `in`, or `out`, is the whole buffer
  std::int64_t whole, size, shard = 0, chunk = 0, chunks = 0;  // elements; but `size`, bytes of one
};

CopyEngines::CopyEngines(int rank, int size, device::Place place, const CopyEngineOptions& options,
                         const Exchange& exchange)
    : rank_(rank),
      size_(size),
      slots_(options.slots),
      place_(place),
      slot_bytes_(options.slot_bytes / kSlotGrain * kSlotGrain),
      least_bytes_(options.least_bytes),
      left_out_(options.left_out),
      send_(stream_of(place)),
      sum_(stream_of(place)),
      take_(stream_of(place)),
      alarm_(place.kind == device::Kind::cpu ? device::OwnedStream() : stream_of(place)),
      begun_(place),
      sent_(place),
      summed_(place),
      taken_(place) {
  if (size < 2 || size > static_cast<int>(kernels::kMostSources) || slots_ < 1 || slot_bytes_ < 1024) {
    throw Error(
        ErrorKind::usage,
        fmt::format("copy engines for {} ranks with {} slots of {} bytes: 2 to {} ranks, a slot and 1024 bytes of "
                    "it are wanted",
                    size, slots_, options.slot_bytes, kernels::kMostSources));
  }
  const auto slots = static_cast<std::size_t>(slots_);
  for (std::size_t slot = 0; slot < slots; ++slot) ready_.emplace_back(place);
  inbox_used_.assign(slots, 0);
  landing_used_.assign(slots, 0);
  own_ = std::make_unique<device::PeerMemory>(memory_bytes(options, size_), "slots of copy engines", place);
  const std::vector<std::string> handles = exchange(own_->handle());
  std::string refused;
  for (int i = 1; i < size_ && refused.empty(); ++i) {
    try {
      peers_.emplace_back(handles[static_cast<std::size_t>(peer(i))], place);
    } catch (const std::exception& error) {
      refused = fmt::format("rank {} does not reach rank {}: {}", rank_, peer(i), error.what());
    }
  }
  // All ranks decide together: either all use the copy engines or none does.
  const std::vector<std::string> said = exchange(refused);
  const auto first = std::ranges::find_if(said, [](const std::string& text) { return !text.empty(); });
  if (first == said.end()) return;
  try {
    exchange({});                    // no rank leaves before all have read this
  } catch (const std::exception&) {  // a rank that left has been here, so all know the reason
  }
  throw Unsupported(*first);
}

CopyEngines::~CopyEngines() = default;

std::size_t CopyEngines::memory_bytes(const CopyEngineOptions& options, int size) {
  return kMarkRoom +
         2 * static_cast<std::size_t>(options.slots) * static_cast<std::size_t>(size - 1) * options.slot_bytes;
}

std::size_t CopyEngines::mark_at(Mark mark, int of) const {
  return (static_cast<std::size_t>(of) * kMarkKinds + static_cast<std::size_t>(mark)) * sizeof(std::uint32_t);
}
std::size_t CopyEngines::inbox_at(int slot, int owner, int from) const {
  const int place = (from - owner + size_) % size_ - 1;
  return kMarkRoom + static_cast<std::size_t>(place * slots_ + slot) * slot_bytes_;
}
std::size_t CopyEngines::landing_at(int slot, int owner, int from) const {
  return inbox_at(slot, owner, from) + static_cast<std::size_t>((size_ - 1) * slots_) * slot_bytes_;
}

bool CopyEngines::takes(const Call& call) const {
  const Signature& what = call.signature;
  const bool sums = what.operation == Operation::all_reduce || what.operation == Operation::reduce_scatter;
  if (!(sums && what.reduction == Reduction::sum) && what.operation != Operation::all_gather) return false;
  const auto parts = what.operation == Operation::all_reduce ? std::size_t{1} : static_cast<std::size_t>(size_);
  return what.bytes() * parts >= least_bytes_ && !device::is_capturing(call.stream);
}

void CopyEngines::queue(std::span<const Call> calls) {
  const device::CurrentDevice current(place_);
  const Stream stream = calls[0].stream;
  begun_.record(stream);
  for (const Stream one : {send_.view(), sum_.view(), take_.view()}) wait(CopyWait::begun, begun_, one);
  std::array<Chunk, kGiveBehind> ungiven;  // the last ones, oldest first
  std::size_t count = 0;
  // A slot may be used again only after its chunk has been summed and given: with fewer slots, fewer chunks may wait.
  const std::size_t behind = std::min(kGiveBehind, static_cast<std::size_t>(slots_) - 1);
  const auto give_oldest = [&] {
    give(ungiven[0]);
    std::shift_left(ungiven.begin(), ungiven.end(), 1);
    --count;
  };
  for (const Call& call : calls) {
    const Shape shape(call, size_, slot_bytes_);
    for (std::int64_t at = 0; at < shape.chunks; ++at) {
      const Chunk chunk{&shape, at, ++number_};
      if (shape.scatters) {
        send(chunk);
        sum(chunk);
      }
      if (!shape.gathers) continue;
      take(chunk);
      if (behind == 0) {
        give(chunk);
        continue;
      }
      if (count == behind) give_oldest();
      ungiven[count++] = chunk;
    }
    while (count > 0) give_oldest();  // the next call has another shape
  }
  sent_.record(send_);
  summed_.record(sum_);
  taken_.record(take_);
  for (const device::Event* event : {&sent_, &summed_, &taken_}) wait(CopyWait::ended, *event, stream);
}

void CopyEngines::send(const Chunk& chunk) {
  const Shape& shape = *chunk.shape;
  std::uint64_t& used = inbox_used_[slot_of(chunk)];
  for (int i = 1; i < size_; ++i) {
    const int to = peer(i);
    if (used > 0) wait(Mark::summed, to, used, send_);
    if (const std::size_t bytes = shape.bytes(to, chunk.at); bytes > 0) {
      std::byte* const inbox = view_of(to).at(inbox_at(static_cast<int>(slot_of(chunk)), to, rank_));
      device::copy(inbox, shape.in(to, chunk.at), bytes, send_);
    }
    tell(Mark::sent, to, chunk.number, send_);
  }
  used = chunk.number;
}

void CopyEngines::sum(const Chunk& chunk) {
  const Shape& shape = *chunk.shape;
  for (int i = 1; i < size_; ++i) wait(Mark::sent, peer(i), chunk.number, sum_);
  if (shape.bytes(rank_, chunk.at) > 0) {
    std::array<const void*, kernels::kMostSources> sources{};
    for (int of = 0; of < size_; ++of) {
      sources[static_cast<std::size_t>(of)] = of == rank_
                                                  ? static_cast<const void*>(shape.in(rank_, chunk.at))
                                                  : own_->at(inbox_at(static_cast<int>(slot_of(chunk)), rank_, of));
    }
    sum_sources(std::span(sources).first(static_cast<std::size_t>(size_)), shape.out(rank_, chunk.at),
                shape.call.signature.dtype, shape.count(rank_, chunk.at), sum_);
  }
  if (shape.gathers) ready_[slot_of(chunk)].record(sum_);
  for (int i = 1; i < size_; ++i) tell(Mark::summed, peer(i), chunk.number, sum_);
}

void CopyEngines::give(const Chunk& chunk) {
  const Shape& shape = *chunk.shape;
  std::uint64_t& used = landing_used_[slot_of(chunk)];
  if (shape.scatters) wait(CopyWait::ready, ready_[slot_of(chunk)], send_);
  const std::byte* const own = shape.scatters ? shape.out(rank_, chunk.at) : shape.in(rank_, chunk.at);
  const std::size_t bytes = shape.bytes(rank_, chunk.at);
  for (int i = 1; i < size_; ++i) {
    const int to = peer(i);
    if (used > 0) wait(Mark::taken, to, used, send_);
    if (bytes > 0) {
      device::copy(view_of(to).at(landing_at(static_cast<int>(slot_of(chunk)), to, rank_)), own, bytes, send_);
    }
    tell(Mark::given, to, chunk.number, send_);
  }
  used = chunk.number;
}

void CopyEngines::take(const Chunk& chunk) {
  const Shape& shape = *chunk.shape;
  for (int i = 1; i < size_; ++i) {
    const int from = peer(i);
    wait(Mark::given, from, chunk.number, take_);
    if (const std::size_t bytes = shape.bytes(from, chunk.at); bytes > 0) {
      device::copy(shape.out(from, chunk.at), own_->at(landing_at(static_cast<int>(slot_of(chunk)), rank_, from)),
                   bytes, take_);
    }
    tell(Mark::taken, from, chunk.number, take_);
  }
  // For an all-gather: copies the rank's own piece, unless it is in place already.
  const std::byte* const own = shape.in(rank_, chunk.at);
  std::byte* const there = shape.out(rank_, chunk.at);
  if (shape.scatters || own == there || shape.bytes(rank_, chunk.at) == 0) return;
  device::copy(there, own, shape.bytes(rank_, chunk.at), take_);
}

// Waits for a mark that rank `peer` sets.
void CopyEngines::wait(Mark mark, int peer, std::uint64_t number, Stream stream) {
  constexpr std::array kKinds{CopyWait::sent, CopyWait::summed, CopyWait::given, CopyWait::taken};  // by mark
  if (left_out_ == kKinds[static_cast<std::size_t>(mark)]) return;
  device::await_mark(own_->mark(mark_at(mark, peer)), static_cast<std::uint32_t>(number), stream);
}

void CopyEngines::tell(Mark mark, int peer, std::uint64_t number, Stream stream) {
  device::raise_mark(view_of(peer).mark(mark_at(mark, rank_)), static_cast<std::uint32_t>(number), stream);
}

void CopyEngines::release() noexcept {
  try {
    const device::CurrentDevice current(place_);
    for (int of = 0; of < size_; ++of) {
      for (const Mark mark : {Mark::sent, Mark::summed, Mark::given, Mark::taken}) {
        device::raise_mark(own_->mark(mark_at(mark, of)), kPassed, alarm_);
      }
    }
  } catch (const std::exception&) {  // a GPU that has failed waits for nobody
  }
}

bool CopyEngines::idle() const noexcept {
  try {
    const device::CurrentDevice current(place_);
    return device::is_idle(send_) && device::is_idle(sum_) && device::is_idle(take_);
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace syslab::comm
