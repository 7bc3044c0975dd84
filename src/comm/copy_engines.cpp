#include "comm/copy_engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "comm/kernels.hpp"
#include "comm/reduce.hpp"
#include "core/error.hpp"
#include "core/integers.hpp"
#include "core/text.hpp"
#include "core/units.hpp"
#include "device/launch.hpp"
#include "device/memory.hpp"
#include "device/queue.hpp"

namespace syslab::comm {
namespace {

using device::Stream;

constexpr std::size_t kMarkRoom = 4096;         // of all marks, before the slots
constexpr std::size_t kMarkKinds = 3;           // CopyEngines::Mark
constexpr std::int64_t kGrain = 64;             // elements: shards and chunks begin at multiples
constexpr std::int64_t kChunksOfAShard = 4;     // at least, of a large one: what is under way at once
constexpr std::size_t kLeastChunk = 512 << 10;  // below it, marks cost more than what goes on beside them
constexpr int kMostLanes = 8;
static_assert(kernels::kMostSources * kMarkKinds * kMostLanes * sizeof(std::uint32_t) <= kMarkRoom);
constexpr std::uint32_t kPassed = 0x7fff'ffff;  // a mark that nothing waits for

device::OwnedStream stream_of(device::Place place) {
  return place.kind == device::Kind::cpu ? device::OwnedStream::queue() : device::OwnedStream::urgent(place);
}

// The sum over `sources` in their order into `to`, and into `also`, where that is not null.
void sum(std::span<const void* const> sources, void* to, void* also, DType dtype, std::int64_t count, Stream stream) {
  if (stream.kind == device::Kind::cuda) return kernels::sum_in_order(sources, to, also, dtype, count, stream);
  device::enqueue(stream, [kept = std::vector(sources.begin(), sources.end()), to, also, dtype, count] {
    reduce_in_order(kept, to, dtype, count, Reduction::sum);
    if (also != nullptr) std::memcpy(also, to, static_cast<std::size_t>(count) * size_of(dtype));
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
    } else if (value && name == "lanes") {
      options.lanes = static_cast<int>(*value);
    } else if (value && name == "slot") {
      options.slot_bytes = *value;
    } else if (value && name == "least") {
      options.least_bytes = *value;
    } else if (!part.empty()) {
      throw Error(ErrorKind::usage, fmt::format("'{}' of SYSLAB_COPY_ENGINES: slots=N, lanes=N, slot=BYTES and "
                                                "least=BYTES are known, with commas between them",
                                                part));
    }
  }
  return options;
}

// Where the shards of a call lie in its buffer, and how they are cut. The same on all ranks.
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
    chunk = std::min(chunk, std::max(most / kGrain * kGrain, std::int64_t{1}));
    chunks = (shard + chunk - 1) / chunk;
  }

  // Elements of chunk `at` of rank r's shard: none where a buffer of few elements has no more shards.
  std::int64_t first(int of, std::int64_t at) const { return std::min(of * shard + at * chunk, whole); }
  std::int64_t count(int of, std::int64_t at) const {
    return std::min({first(of, at) + chunk, (of + 1) * shard, whole}) - first(of, at);
  }
  std::size_t bytes(int of, std::int64_t at) const { return static_cast<std::size_t>(count(of, at) * size); }
  // In the whole buffer; of a call that has only a part, in that.
  const std::byte* in(int of, std::int64_t at) const {
    return static_cast<const std::byte*>(call.in) + (scatters ? first(of, at) : at * chunk) * size;
  }
  std::byte* out(int of, std::int64_t at) const {
    return static_cast<std::byte*>(call.out) + (gathers ? first(of, at) : at * chunk) * size;
  }

  const Call& call;
  bool scatters, gathers;                                      // what is read, or written, is the whole
  std::int64_t whole, size, shard = 0, chunk = 0, chunks = 0;  // elements; but `size`, bytes of one
};

CopyEngines::CopyEngines(int rank, int size, device::Place place, const CopyEngineOptions& options,
                         const Exchange& exchange)
    : rank_(rank),
      size_(size),
      slots_(options.slots),
      lanes_(options.lanes),
      place_(place),
      slot_bytes_(options.slot_bytes),
      least_bytes_(options.least_bytes),
      sum_(stream_of(place)),
      alarm_(place.kind == device::Kind::cpu ? device::OwnedStream() : stream_of(place)),
      begun_(place),
      outbox_used_(static_cast<std::size_t>(options.slots > 0 ? options.slots : 0), 0) {
  if (size < 2 || size > static_cast<int>(kernels::kMostSources) || slots_ < 1 || slot_bytes_ < 1024 || lanes_ < 1 ||
      lanes_ > kMostLanes) {
    throw Error(
        ErrorKind::usage,
        fmt::format("copy engines for {} ranks with {} slots of {} bytes and {} lanes: 2 to {} ranks, a slot, 1024 "
                    "bytes of it and 1 to {} lanes are wanted",
                    size, slots_, slot_bytes_, lanes_, kernels::kMostSources, kMostLanes));
  }
  for (int lane = 0; lane < lanes_; ++lane) {
    push_.push_back(stream_of(place));
    pull_.push_back(stream_of(place));
  }
  for (const auto* lanes : {&push_, &pull_}) streams_.insert(streams_.end(), lanes->begin(), lanes->end());
  streams_.push_back(sum_);
  for (std::size_t i = 0; i < streams_.size(); ++i) ended_.emplace_back(place);
  own_ = std::make_unique<device::PeerMemory>(
      kMarkRoom + static_cast<std::size_t>(slots_) * static_cast<std::size_t>(size_) * slot_bytes_,
      "slots of copy engines", place);
  const std::vector<std::string> handles = exchange(own_->handle());
  std::string refused;
  for (int i = 1; i < size_ && refused.empty(); ++i) {
    try {
      peers_.emplace_back(handles[static_cast<std::size_t>(peer(i))], place);
    } catch (const std::exception& error) {
      refused = fmt::format("rank {} does not reach rank {}: {}", rank_, peer(i), error.what());
    }
  }
  // Together: who copies and who does not must be the same on all.
  for (const std::string& said : exchange(refused)) {
    if (!said.empty()) throw Unsupported(said);
  }
}

CopyEngines::~CopyEngines() = default;

std::size_t CopyEngines::mark_at(Mark mark, int of, std::uint64_t number) const {
  const std::size_t lane = number % static_cast<std::uint64_t>(lanes_);
  const std::size_t kind = static_cast<std::size_t>(of) * kMarkKinds + static_cast<std::size_t>(mark);
  return (kind * kMostLanes + lane) * sizeof(std::uint32_t);
}
std::size_t CopyEngines::outbox_at(int slot) const { return kMarkRoom + static_cast<std::size_t>(slot) * slot_bytes_; }
std::size_t CopyEngines::inbox_at(int slot, int owner, int from) const {
  const int place = (from - owner + size_) % size_;  // from 1
  return kMarkRoom + static_cast<std::size_t>(place * slots_ + slot) * slot_bytes_;
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
  for (const Stream one : streams_) begun_.before(one);
  for (const Call& call : calls) {
    const Shape shape(call, size_, slot_bytes_);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      ++number_;
      if (shape.scatters) push(shape, chunk);
      fill(shape, chunk);
      if (shape.gathers) pull(shape, chunk);
    }
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    ended_[i].record(streams_[i]);
    ended_[i].before(stream);
  }
}

void CopyEngines::push(const Shape& shape, std::int64_t chunk) {
  const auto slots = static_cast<std::uint64_t>(slots_);
  const Stream lane = lane_of(push_);
  for (int i = 1; i < size_; ++i) {
    const int to = peer(i);
    if (number_ > slots) wait(Mark::filled, to, number_ - slots, lane);
    if (shape.bytes(to, chunk) > 0) {
      device::copy(peers_[static_cast<std::size_t>(i) - 1].at(inbox_at(slot_of(number_), to, rank_)),
                   shape.in(to, chunk), shape.bytes(to, chunk), lane);
    }
    tell(Mark::arrived, to, number_, lane);
  }
}

void CopyEngines::fill(const Shape& shape, std::int64_t chunk) {
  const int slot = slot_of(number_);
  std::uint64_t& used = outbox_used_[static_cast<std::size_t>(slot)];
  for (int i = 1; i < size_; ++i) {
    if (shape.scatters) wait(Mark::arrived, peer(i), number_, sum_);
    if (shape.gathers && used > 0) wait(Mark::pulled, peer(i), used, sum_);
  }
  if (shape.gathers) used = number_;
  void* const outbox = shape.gathers ? own_->at(outbox_at(slot)) : nullptr;
  if (shape.bytes(rank_, chunk) > 0) {
    if (shape.scatters) {
      std::array<const void*, kernels::kMostSources> sources{};
      for (int of = 0; of < size_; ++of) {
        const void* const sent = own_->at(inbox_at(slot, rank_, of));
        sources[static_cast<std::size_t>(of)] = of == rank_ ? shape.in(rank_, chunk) : sent;
      }
      sum(std::span(sources).first(static_cast<std::size_t>(size_)), shape.out(rank_, chunk), outbox,
          shape.call.signature.dtype, shape.count(rank_, chunk), sum_);
    } else {
      device::copy(outbox, shape.in(rank_, chunk), shape.bytes(rank_, chunk), sum_);
    }
  }
  for (int i = 1; i < size_; ++i) tell(Mark::filled, peer(i), number_, sum_);
  if (shape.scatters || shape.in(rank_, chunk) == shape.out(rank_, chunk) || shape.bytes(rank_, chunk) == 0) return;
  device::copy(shape.out(rank_, chunk), shape.in(rank_, chunk), shape.bytes(rank_, chunk), sum_);
}

void CopyEngines::pull(const Shape& shape, std::int64_t chunk) {
  const Stream lane = lane_of(pull_);
  for (int i = 1; i < size_; ++i) {
    const int from = peer(i);
    wait(Mark::filled, from, number_, lane);
    if (shape.bytes(from, chunk) > 0) {
      device::copy(shape.out(from, chunk), peers_[static_cast<std::size_t>(i) - 1].at(outbox_at(slot_of(number_))),
                   shape.bytes(from, chunk), lane);
    }
    tell(Mark::pulled, from, number_, lane);
  }
}

// For what rank `peer` has told this one.
void CopyEngines::wait(Mark mark, int peer, std::uint64_t number, Stream stream) {
  device::await_mark(own_->mark(mark_at(mark, peer, number)), static_cast<std::uint32_t>(number), stream);
}

void CopyEngines::tell(Mark mark, int peer, std::uint64_t number, Stream stream) {
  const auto index = static_cast<std::size_t>((peer - rank_ + size_) % size_) - 1;
  device::raise_mark(peers_[index].mark(mark_at(mark, rank_, number)), static_cast<std::uint32_t>(number), stream);
}

void CopyEngines::release() noexcept {
  try {
    const device::CurrentDevice current(place_);
    for (int of = 0; of < size_; ++of) {
      for (const Mark mark : {Mark::arrived, Mark::filled, Mark::pulled}) {
        for (int lane = 0; lane < lanes_; ++lane) {
          device::raise_mark(own_->mark(mark_at(mark, of, static_cast<std::uint64_t>(lane))), kPassed, alarm_);
        }
      }
    }
  } catch (const std::exception&) {  // a GPU that has failed waits for nobody
  }
}

bool CopyEngines::idle() const noexcept {
  try {
    const device::CurrentDevice current(place_);
    return std::ranges::all_of(streams_, [](Stream stream) { return device::is_idle(stream); });
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace syslab::comm
