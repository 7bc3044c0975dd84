#include "parallel/gathered_weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "parallel/in_order.hpp"
#include "parallel/wire_buffer.hpp"

namespace syslab::parallel {
namespace {

using device::Event;
using device::Stream;

constexpr std::int64_t kAligned = device::kAlignment;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::vector<Event> events(int count, Stream stream, device::Timing timing = device::Timing::no) {
  std::vector<Event> made;
  for (int i = 0; i < count; ++i) made.emplace_back(device::place_of(stream), timing);
  return made;
}

// Of a bracket in its unit's slot, in bytes.
std::int64_t room_of(const FsdpParts& parts, const BracketPlaces& places, int bracket) {
  return round_up(places.room * static_cast<std::int64_t>(size_of(parts.brackets[at(bracket)].gathered)), kAligned);
}

std::vector<GatherPlan> plans_of(const FsdpParts& parts, const GatherOptions& options) {
  std::vector<int> unit_of(parts.brackets.size());
  for (int unit = 0; unit < static_cast<int>(parts.units.size()); ++unit) {
    for (const int bracket : parts.units[at(unit)]) unit_of[at(bracket)] = unit;
  }
  const int slots = options.reshard_after_forward ? options.slots : static_cast<int>(parts.units.size());
  std::vector<GatherPlan> plans;
  for (const std::vector<int>* reads : {&parts.training_reads, &parts.forward_reads}) {
    std::vector<int> units;
    for (const int bracket : *reads) units.push_back(unit_of[at(bracket)]);
    plans.emplace_back(units, slots);
  }
  return plans;
}

// Where slots begin in the pool, and its end: each is as large as the largest unit that a plan puts there.
std::vector<std::int64_t> slot_offsets(const std::vector<GatherPlan>& plans,
                                       const std::vector<std::int64_t>& unit_room) {
  std::vector<std::int64_t> room, offsets{0};
  for (const GatherPlan& plan : plans) {
    for (const Stay& stay : plan.stays()) {
      if (at(stay.slot) >= room.size()) room.resize(at(stay.slot) + 1, 0);
      room[at(stay.slot)] = std::max(room[at(stay.slot)], unit_room[at(stay.unit)]);
    }
  }
  for (const std::int64_t bytes : room) offsets.push_back(offsets.back() + bytes);
  return offsets;
}

}  // namespace

std::int64_t GatheredWeights::pool_bytes(const FsdpParts& parts, const ShardLayout& layout,
                                         const GatherOptions& options) {
  std::vector<std::int64_t> unit_room;
  for (const std::vector<int>& unit : parts.units) {
    std::int64_t& room = unit_room.emplace_back(0);
    for (const int bracket : unit) {
      room += room_of(parts, BracketPlaces(parts, layout, parts.brackets[at(bracket)]), bracket);
    }
  }
  return slot_offsets(plans_of(parts, options), unit_room).back();
}

BracketPlaces::BracketPlaces(const FsdpParts& parts, const ShardLayout& layout, const FsdpBracket& bracket) {
  std::int64_t rows = 0;
  const std::int64_t width = parts.matrices[at(bracket.matrices.front())].width;
  for (const int matrix : bracket.matrices) {
    if (parts.matrices[at(matrix)].width != width) {
      throw Error(ErrorKind::usage,
                  fmt::format("'{}' is read together with matrices of another width", parts.matrices[at(matrix)].name));
    }
    first.push_back(rows * width);
    room = std::max(room, first.back() + layout.ranks() * layout.chunk(matrix));
    rows += parts.matrices[at(matrix)].rows;
  }
  shape = {rows, width};
}

GatheredWeights::GatheredWeights(comm::Communicator& ranks, const FsdpParts& parts, const ShardLayout& layout,
                                 const TensorView& shards, const GatherOptions& options, Stream compute,
                                 Stream communication, EventWaits& waits)
    : ranks_(ranks),
      parts_(parts),
      layout_(layout),
      shards_(shards),
      options_(options),
      compute_(compute),
      communication_(communication),
      waits_(waits),
      elementwise_(&elementwise::find_rung(compute.kind == device::Kind::cuda ? "fused_cuda" : "naive")),
      places_(parts.brackets.size()),
      awaits_(communication, compute),
      begun_(device::place_of(compute), device::Timing::yes) {
  for (const FsdpBracket& bracket : parts.brackets) brackets_.emplace_back(parts, layout, bracket);
  for (int unit = 0; unit < static_cast<int>(parts.units.size()); ++unit) {
    std::int64_t room = 0;
    for (const int bracket : parts.units[at(unit)]) {
      places_[at(bracket)] = {unit, room};
      room += room_of(parts, brackets_[at(bracket)], bracket);
    }
    unit_room_.push_back(room);
    labels_.push_back(fmt::format("unit {}", unit));
  }
  plans_ = plans_of(parts, options);
  make_pool();
  gathered_ = events(static_cast<int>(slot_offset_.size()) - 1, compute);
  released_ = events(static_cast<int>(slot_offset_.size()) - 1, compute);
  if (!options.timing) return;
  const int stays = std::max(plans_[0].size(), plans_[1].size());
  for (auto* timed : {&started_, &ended_, &needed_, &first_use_}) *timed = events(stays, compute, device::Timing::yes);
}

void GatheredWeights::make_pool() {
  slot_offset_ = slot_offsets(plans_, unit_room_);
  pool_ = device::Buffer(static_cast<std::size_t>(slot_offset_.back()), "gathered weights", compute_,
                         device::MemoryCategory::workspace);
  device::fill_bytes(pool_.data(), options_.poison ? 0xff : 0, pool_.bytes(), compute_);
  device::synchronize(compute_);
}

void GatheredWeights::refuse(const std::string& why) {
  open_ = false;
  ranks_.abort(why);
  throw Error(ErrorKind::usage, why);
}

std::int64_t GatheredWeights::unit_bytes(int unit) const {
  std::int64_t bytes = 0;
  for (const int bracket : parts_.units[at(unit)]) {
    const FsdpBracket& of = parts_.brackets[at(bracket)];
    for (const int matrix : of.matrices) {
      bytes += layout_.ranks() * layout_.chunk(matrix) * static_cast<std::int64_t>(size_of(of.gathered));
    }
  }
  return bytes;
}

void GatheredWeights::begin(PassKind kind, bool again) {
  if (open_) refuse("a pass over sharded weights begins before the one before it has ended");
  open_ = true;
  kind_ = kind;
  stay_ = read_ = 0;
  begun_.record(compute_);
  if (!again) waits_.wait(begun_, communication_);
  gather_after(-1);
}

void GatheredWeights::gather_after(int stay) {
  for (const int number : plan().gathers_after(stay)) gather(number);
}

TensorView GatheredWeights::view(int bracket, int slot) const {
  const BracketPlaces& of = brackets_[at(bracket)];
  auto* bytes = pool_.as<std::byte>() + slot_offset_[at(slot)] + places_[at(bracket)].offset;
  return {bytes, parts_.brackets[at(bracket)].gathered, of.shape};
}

void GatheredWeights::gather(int number) {
  const Stay& stay = plan()[number];
  if (options_.timing) started_[at(number)].record(communication_);
  for (const int bracket : parts_.units[at(stay.unit)]) {
    const FsdpBracket& of = parts_.brackets[at(bracket)];
    const TensorView whole = view(bracket, stay.slot);
    for (std::size_t i = 0; i < of.matrices.size(); ++i) {
      const int matrix = of.matrices[i];
      const std::int64_t chunk = layout_.chunk(matrix);
      const TensorView own = stretch(shards_, layout_.offset(matrix), chunk);
      const TensorView all = stretch(whole, brackets_[at(bracket)].first[i], layout_.ranks() * chunk);
      const TensorView part = stretch(all, ranks_.rank() * chunk, chunk);
      if (own.dtype == part.dtype) {
        device::copy(part.data, own.data, static_cast<std::size_t>(chunk) * size_of(own.dtype), communication_);
      } else {
        in_order(communication_, [rung = elementwise_, own, part](Stream stream) {
          rung->cast({1, part.elements()}, {own, part}, stream);
        });
      }
      ranks_.all_gather(part, all, {"parameter", labels_[at(stay.unit)]}, communication_);
    }
  }
  if (options_.timing) ended_[at(number)].record(communication_);
  gathered_[at(stay.slot)].record(communication_);
  expected_bytes_ += static_cast<std::uint64_t>(unit_bytes(stay.unit));
}

ConstTensorView GatheredWeights::read(int bracket) {
  const std::vector<int>& reads = kind_ == PassKind::training ? parts_.training_reads : parts_.forward_reads;
  const auto name = [this](int one) { return parts_.matrices[at(parts_.brackets[at(one)].matrices.front())].name; };
  if (!open_ || read_ >= static_cast<int>(reads.size()) || lent_) {
    refuse(fmt::format("'{}' is read {}", name(bracket),
                       lent_ ? "while other weights are" : "where no pass has it: begin() was not called for this"));
  }
  if (reads[at(read_)] != bracket) {
    refuse(fmt::format("'{}' is read where '{}' is next: sharded weights are read in the order that was foretold",
                       name(bracket), name(reads[at(read_)])));
  }
  const Stay& stay = plan()[stay_];
  if (read_ == stay.first_read) {
    if (options_.timing) needed_[at(stay_)].record(compute_);
    if (stay.gathers) waits_.wait(gathered_[at(stay.slot)], compute_);
    if (options_.timing) first_use_[at(stay_)].record(compute_);
    // On the plain stream the wait was the host's, and what failed in the queue is known.
    ranks_.throw_if_failed();
  }
  lent_ = true;
  return view(bracket, stay.slot);
}

void GatheredWeights::done(int) {
  lent_ = false;
  const Stay& stay = plan()[stay_];
  if (++read_ < stay.end_read) return;
  if (options_.poison && stay.frees) {
    device::fill_bytes(pool_.as<std::byte>() + slot_offset_[at(stay.slot)], 0xff,
                       static_cast<std::size_t>(unit_room_[at(stay.unit)]), compute_);
  }
  const int over = stay_++;
  const std::span<const int> next = plan().gathers_after(over);
  if (next.empty()) return;
  // Work on `compute` is in order: what is queued behind this stay's end is behind those before it too.
  Event& released = released_[at(stay.slot)];
  released.record(compute_);
  waits_.wait(released, communication_);
  gather_after(over);
}

void GatheredWeights::end() {
  const std::vector<int>& reads = kind_ == PassKind::training ? parts_.training_reads : parts_.forward_reads;
  if (!open_ || read_ != static_cast<int>(reads.size())) {
    refuse(fmt::format("a pass over sharded weights ends after {} of {} reads", read_, reads.size()));
  }
  open_ = false;
}

std::vector<GatherTimes> GatheredWeights::times() const {
  if (!options_.timing) throw Error(ErrorKind::usage, "no times of gathers: they need GatherOptions::timing");
  const auto since_begin = [this](const Event& event) { return Seconds(elapsed(begun_, event)); };
  std::vector<GatherTimes> made;
  for (int number = 0; number < stay_; ++number) {
    const Stay& stay = plan()[number];
    if (!stay.gathers) continue;
    made.push_back({.unit = stay.unit,
                    .forward = stay.first_read < static_cast<int>(parts_.forward_reads.size()),
                    .bytes = unit_bytes(stay.unit),
                    .start = since_begin(started_[at(number)]),
                    .end = since_begin(ended_[at(number)]),
                    .needed = since_begin(needed_[at(number)]),
                    .first_use = since_begin(first_use_[at(number)])});
  }
  return made;
}

}  // namespace syslab::parallel
