#include "parallel/fsdp/gathered_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "parallel/events.hpp"

namespace syslab::parallel {
namespace {

using device::Event;
using device::Stream;

constexpr std::int64_t kAligned = device::kAlignment;

// Bytes that a bracket takes in its unit's slot.
std::int64_t room_of(const FsdpBracket& bracket, const BracketPlaces& places) {
  return round_up(places.room * static_cast<std::int64_t>(size_of(bracket.gathered)), kAligned);
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

// Bytes of each slot: those of the largest unit that a plan puts there.
std::vector<std::int64_t> slot_room(const std::vector<GatherPlan>& plans, const std::vector<std::int64_t>& unit_room) {
  std::vector<std::int64_t> room;
  for (const GatherPlan& plan : plans) {
    for (const Stay& stay : plan.stays()) {
      if (at(stay.slot) >= room.size()) room.resize(at(stay.slot) + 1, 0);
      room[at(stay.slot)] = std::max(room[at(stay.slot)], unit_room[at(stay.unit)]);
    }
  }
  return room;
}

}  // namespace

std::int64_t GatheredWeights::pool_bytes(const FsdpParts& parts, const ShardLayout& layout,
                                         const GatherOptions& options) {
  std::vector<std::int64_t> unit_room;
  for (const std::vector<int>& unit : parts.units) {
    std::int64_t& room = unit_room.emplace_back(0);
    for (const int bracket : unit) {
      const FsdpBracket& of = parts.brackets[at(bracket)];
      room += room_of(of, BracketPlaces(parts, layout, of));
    }
  }
  const std::vector<std::int64_t> room = slot_room(plans_of(parts, options), unit_room);
  return std::accumulate(room.begin(), room.end(), std::int64_t{0});
}

GatheredWeights::GatheredWeights(FsdpContext& context, const TensorView& shards, const GatherOptions& options)
    : context_(context),
      shards_(shards),
      options_(options),
      places_(context.parts.brackets.size()),
      awaits_(context.communication, context.compute),
      begun_(device::place_of(context.compute), device::Timing::yes) {
  for (int unit = 0; unit < static_cast<int>(context.parts.units.size()); ++unit) {
    std::int64_t room = 0;
    bool padded = false;
    for (const int bracket : context.parts.units[at(unit)]) {
      places_[at(bracket)] = {unit, room};
      room += room_of(context.parts.brackets[at(bracket)], context.brackets[at(bracket)]);
      for (const int matrix : context.parts.brackets[at(bracket)].matrices) {
        padded |= context.layout.own_rows(matrix, context.layout.ranks() - 1) < context.layout.chunk_rows(matrix);
      }
    }
    unit_room_.push_back(room);
    unit_is_padded_.push_back(padded);
    labels_.push_back(fmt::format("unit {}", unit));
  }
  plans_ = plans_of(context.parts, options);
  pool_ = SlotPool(slot_room(plans_, unit_room_), "gathered weights", context.compute, options.poison ? 0xff : 0);
  device::synchronize(context.compute);
  gathered_ = events(pool_.size(), context.compute);
  released_ = events(pool_.size(), context.compute);
  if (!options.timing) return;
  const int stays = std::max(plans_[0].size(), plans_[1].size());
  for (auto* timed : {&started_, &ended_, &needed_, &first_use_}) {
    *timed = events(stays, context.compute, device::Timing::yes);
  }
}

void GatheredWeights::refuse(const std::string& why) {
  open_ = false;
  context_.refuse(why);
}

std::int64_t GatheredWeights::unit_bytes(int unit) const {
  std::int64_t bytes = 0;
  for (const int bracket : context_.parts.units[at(unit)]) {
    const FsdpBracket& of = context_.parts.brackets[at(bracket)];
    for (const int matrix : of.matrices) {
      bytes +=
          context_.layout.ranks() * context_.layout.chunk(matrix) * static_cast<std::int64_t>(size_of(of.gathered));
    }
  }
  return bytes;
}

void GatheredWeights::begin(PassKind kind, bool again) {
  if (open_) refuse("a pass over sharded weights begins before the one before it has ended");
  open_ = true;
  kind_ = kind;
  stay_ = read_ = 0;
  begun_.record(context_.compute);
  if (!again) wait_for(context_.observer, Wait::step_begun, begun_, context_.communication);
  gather_after(-1);
}

void GatheredWeights::gather_after(int stay) {
  for (const int number : plan().gathers_after(stay)) gather(number);
}

TensorView GatheredWeights::view(int bracket, int slot) const {
  const BracketPlaces& of = context_.brackets[at(bracket)];
  return {pool_[slot] + places_[at(bracket)].offset, context_.parts.brackets[at(bracket)].gathered, of.shape};
}

void GatheredWeights::gather(int number) {
  const Stay& stay = plan()[number];
  if (options_.timing) started_[at(number)].record(context_.communication);
  // Visits each matrix of the unit with its place in the slot, and this rank's part of that.
  const auto each = [&](const auto& visit) {
    for (const int bracket : context_.parts.units[at(stay.unit)]) {
      const FsdpBracket& of = context_.parts.brackets[at(bracket)];
      for (std::size_t i = 0; i < of.matrices.size(); ++i) {
        const std::int64_t chunk = context_.layout.chunk(of.matrices[i]);
        const TensorView all =
            stretch(view(bracket, stay.slot), context_.brackets[at(bracket)].first[i], context_.layout.ranks() * chunk);
        visit(of.matrices[i], all, stretch(all, context_.ranks.rank() * chunk, chunk));
      }
    }
  };
  const auto place = [&](int matrix, const TensorView& part) {
    context_.moves.move(stretch(shards_, context_.layout.offset(matrix), part.elements()), part);
  };
  const auto gather_one = [&](const TensorView& all, const TensorView& part) {
    context_.ranks.all_gather(part, all, {"parameter", labels_[at(stay.unit)]}, context_.communication);
  };
  if (unit_is_padded_[at(stay.unit)]) {
    // One matrix's padding overlaps the beginning of the next matrix, which is therefore placed after the gather.
    each([&](int matrix, const TensorView& all, const TensorView& part) {
      place(matrix, part);
      gather_one(all, part);
    });
  } else {
    each([&](int matrix, const TensorView&, const TensorView& part) { place(matrix, part); });
    context_.ranks.begin_group();
    each([&](int, const TensorView& all, const TensorView& part) { gather_one(all, part); });
    context_.ranks.end_group();
  }
  if (options_.timing) ended_[at(number)].record(context_.communication);
  gathered_[at(stay.slot)].record(context_.communication);
  expected_bytes_ += static_cast<std::uint64_t>(unit_bytes(stay.unit));
}

ConstTensorView GatheredWeights::read(int bracket) {
  const std::vector<int>& reads =
      kind_ == PassKind::training ? context_.parts.training_reads : context_.parts.forward_reads;
  const auto name = [this](int one) {
    return context_.parts.matrices[at(context_.parts.brackets[at(one)].matrices.front())].name;
  };
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
    if (options_.timing) needed_[at(stay_)].record(context_.compute);
    if (stay.gathers) {
      wait_for(context_.observer, Wait::weights_gathered, gathered_[at(stay.slot)], context_.compute, stay.unit);
    }
    if (options_.timing) first_use_[at(stay_)].record(context_.compute);
    // On the plain stream the host itself has waited, so a failure is known by now.
    context_.ranks.throw_if_failed();
  }
  lent_ = true;
  return view(bracket, stay.slot);
}

void GatheredWeights::done(int) {
  lent_ = false;
  const Stay& stay = plan()[stay_];
  if (++read_ < stay.end_read) return;
  if (options_.poison && stay.frees) {
    device::fill_bytes(pool_[stay.slot], 0xff, static_cast<std::size_t>(unit_room_[at(stay.unit)]), context_.compute);
  }
  const int over = stay_++;
  const std::span<const int> next = plan().gathers_after(over);
  if (next.empty()) return;
  // `compute` runs in order: this mark also covers the ends of all earlier stays.
  Event& released = released_[at(stay.slot)];
  released.record(context_.compute);
  wait_for(context_.observer, Wait::weights_read, released, context_.communication, stay.unit);
  gather_after(over);
}

void GatheredWeights::end() {
  const std::vector<int>& reads =
      kind_ == PassKind::training ? context_.parts.training_reads : context_.parts.forward_reads;
  if (!open_ || read_ != static_cast<int>(reads.size())) {
    refuse(fmt::format("a pass over sharded weights ends after {} of {} reads", read_, reads.size()));
  }
  open_ = false;
}

std::vector<GatherTimes> GatheredWeights::times(const Event& origin) const {
  if (!options_.timing) throw Error(ErrorKind::usage, "no times of gathers: they need GatherOptions::timing");
  const auto since_origin = [&origin](const Event& event) { return Seconds(elapsed(origin, event)); };
  std::vector<GatherTimes> made;
  for (int number = 0; number < stay_; ++number) {
    const Stay& stay = plan()[number];
    if (!stay.gathers) continue;
    made.push_back({.unit = stay.unit,
                    .forward = stay.first_read < static_cast<int>(context_.parts.forward_reads.size()),
                    .bytes = unit_bytes(stay.unit),
                    .start = since_origin(started_[at(number)]),
                    .end = since_origin(ended_[at(number)]),
                    .needed = since_origin(needed_[at(number)]),
                    .first_use = since_origin(first_use_[at(number)])});
  }
  return made;
}

}  // namespace syslab::parallel
