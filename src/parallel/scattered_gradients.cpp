#include "parallel/scattered_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "parallel/in_order.hpp"
#include "parallel/wire_buffer.hpp"

namespace syslab::parallel {
namespace {

using device::Buffer;
using device::Stream;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// In elements.
struct Room {
  std::vector<std::int64_t> slot_offset{0};     // and the end
  std::int64_t largest = 0, largest_chunk = 0;  // of one matrix: whole, and a rank's part
};
Room room_of(const FsdpParts& parts, const ShardLayout& layout, const ScatterOptions& options) {
  if (options.slots < 1) {
    throw Error(ErrorKind::usage, fmt::format("{} slots for gradients; at least 1 is wanted", options.slots));
  }
  Room made;
  const int slots = std::min(options.slots, static_cast<int>(parts.brackets.size()));
  std::vector<std::int64_t> room(at(slots), 0);
  for (int bracket = 0; bracket < static_cast<int>(parts.brackets.size()); ++bracket) {
    std::int64_t& of_slot = room[at(bracket % slots)];
    const BracketPlaces places(parts, layout, parts.brackets[at(bracket)]);
    of_slot = std::max(of_slot, round_up(places.room, model::kAlignedElements));
    for (const int matrix : parts.brackets[at(bracket)].matrices) {
      made.largest = std::max(made.largest, layout.ranks() * layout.chunk(matrix));
      made.largest_chunk = std::max(made.largest_chunk, layout.chunk(matrix));
    }
  }
  for (const std::int64_t elements : room) made.slot_offset.push_back(made.slot_offset.back() + elements);
  return made;
}

}  // namespace

std::int64_t ScatteredGradients::pool_bytes(const FsdpParts& parts, const ShardLayout& layout,
                                            const ScatterOptions& options) {
  const Room room = room_of(parts, layout, options);
  const DType wire = options.wire.value_or(parts.dtype);
  const std::int64_t travels = room.largest_chunk + (wire != parts.dtype ? room.largest : 0);
  return room.slot_offset.back() * static_cast<std::int64_t>(size_of(parts.dtype)) +
         travels * static_cast<std::int64_t>(size_of(wire));
}

ScatteredGradients::ScatteredGradients(comm::Communicator& ranks, const FsdpParts& parts, const ShardLayout& layout,
                                       const TensorView& shards, const ScatterOptions& options, Stream compute,
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
      awaits_(communication, compute),
      last_(device::place_of(compute)),
      reduced_(device::place_of(compute)) {
  const Room room = room_of(parts, layout, options);
  slot_offset_ = room.slot_offset;
  const int slots = static_cast<int>(slot_offset_.size()) - 1;
  for (int bracket = 0; bracket < static_cast<int>(parts.brackets.size()); ++bracket) {
    brackets_.emplace_back(parts, layout, parts.brackets[at(bracket)]);
    labels_.push_back(fmt::format("bracket {}", bracket));
  }
  for (int slot = 0; slot < slots; ++slot) {
    ready_.emplace_back(device::place_of(compute));
    free_.emplace_back(device::place_of(compute));
  }
  busy_.assign(at(slots), 0);
  const auto memory = [&](std::int64_t elements, DType dtype, std::string_view tag) {
    Buffer made(static_cast<std::size_t>(elements) * size_of(dtype), tag, compute, device::MemoryCategory::workspace);
    device::fill_bytes(made.data(), 0, made.bytes(), compute);
    return made;
  };
  pool_ = memory(slot_offset_.back(), parts.dtype, "gradients before they are scattered");
  const DType wire = options.wire.value_or(parts.dtype);
  if (wire != parts.dtype) wire_ = memory(room.largest, wire, "gradients on the wire");
  received_ = memory(room.largest_chunk, wire, "gradients that came");
  device::synchronize(compute);
}

std::int64_t ScatteredGradients::bytes() const {
  return static_cast<std::int64_t>(pool_.bytes() + wire_.bytes() + received_.bytes());
}

void ScatteredGradients::refuse(const std::string& why) {
  ranks_.abort(why);
  throw Error(ErrorKind::usage, why);
}

void ScatteredGradients::begin(bool add) {
  next_ = 0;
  add_ = add;
  // What was scattered before is done when this pass's first weights have been gathered, behind it on one stream.
  std::ranges::fill(busy_, char{0});
}

TensorView ScatteredGradients::whole(int bracket) const {
  const std::int64_t offset = slot_offset_[at(slot_of(bracket))] * static_cast<std::int64_t>(size_of(parts_.dtype));
  return {pool_.as<std::byte>() + offset, parts_.dtype, brackets_[at(bracket)].shape};
}

TensorView ScatteredGradients::place(int bracket) {
  if (bracket != next_) {
    refuse(fmt::format("the gradient of bracket {} is made where that of bracket {} is next", bracket, next_));
  }
  const int slot = slot_of(bracket);
  if (busy_[at(slot)] != 0) waits_.wait(free_[at(slot)], compute_);
  busy_[at(slot)] = 0;
  return whole(bracket);
}

void ScatteredGradients::final(int bracket) {
  if (bracket != next_) {
    refuse(fmt::format("the gradient of bracket {} is final where that of bracket {} is next", bracket, next_));
  }
  ++next_;
  const int slot = slot_of(bracket);
  ready_[at(slot)].record(compute_);
  waits_.wait(ready_[at(slot)], communication_);
  unsent_ = false;  // what is replicated and was final before is behind that event too
  const std::vector<int>& matrices = parts_.brackets[at(bracket)].matrices;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    scatter(bracket, matrices[i], brackets_[at(bracket)].first[i]);
  }
  free_[at(slot)].record(communication_);
  busy_[at(slot)] = 1;
}

void ScatteredGradients::scatter(int bracket, int matrix, std::int64_t first) {
  const std::int64_t chunk = layout_.chunk(matrix), count = layout_.ranks() * chunk;
  const TensorView made = stretch(whole(bracket), first, count);
  const TensorView own = stretch(shards_, layout_.offset(matrix), chunk);
  TensorView sent = made, received = own;
  if (wire_.bytes() > 0) {
    const DType wire = options_.wire.value();
    sent = {wire_.data(), wire, {1, count}};
    in_order(communication_, [rung = elementwise_, made, sent](Stream stream) {
      rung->cast({1, sent.elements()}, {made, sent}, stream);
    });
  }
  const bool directly = !add_ && sent.dtype == own.dtype;
  if (!directly) received = {received_.data(), sent.dtype, {1, chunk}};
  ranks_.reduce_scatter(sent, received, comm::Reduction::sum, {"gradient", labels_[at(bracket)]}, communication_);
  scattered_bytes_ += static_cast<std::uint64_t>(count) * size_of(sent.dtype);
  if (!directly) {
    in_order(communication_, [rung = elementwise_, received, own, add = add_](Stream stream) {
      const elementwise::Problem problem{1, own.elements()};
      if (add) {
        rung->add(problem, {own, received, own}, stream);
      } else {
        rung->cast(problem, {received, own}, stream);
      }
    });
  }
  // What stands behind the last row is another matrix's gradient, or anything.
  const std::int64_t width = parts_.matrices[at(matrix)].width;
  const std::int64_t mine = layout_.own_rows(matrix, ranks_.rank()) * width;
  if (mine == chunk) return;
  const TensorView rest = stretch(own, mine, chunk - mine);
  device::fill_bytes(rest.data, 0, static_cast<std::size_t>(chunk - mine) * size_of(rest.dtype), communication_);
}

TensorView ScatteredGradients::replicated(int tensor) const {
  const TensorView flat = stretch(shards_, layout_.replicated_offset(tensor), parts_.replicated[at(tensor)].elements);
  return {flat.data, flat.dtype, {flat.elements()}};
}

void ScatteredGradients::finish() {
  if (next_ != static_cast<int>(brackets_.size())) {
    refuse(fmt::format("a step of gradients ends after {} of {} brackets", next_, brackets_.size()));
  }
  const std::int64_t elements = layout_.elements() - layout_.sharded_elements();
  if (elements > 0) {
    if (unsent_) {
      last_.record(compute_);
      waits_.wait(last_, communication_);
    }
    ranks_.all_reduce(stretch(shards_, layout_.sharded_elements(), elements), comm::Reduction::sum,
                      {"gradient", "replicated"}, communication_);
    reduced_bytes_ += static_cast<std::uint64_t>(elements) * size_of(parts_.dtype);
  }
  unsent_ = false;
  reduced_.record(communication_);
  waits_.wait(reduced_, compute_);
  std::ranges::fill(busy_, char{0});  // that wait was for all of them
  ranks_.throw_if_failed();
}

}  // namespace syslab::parallel
