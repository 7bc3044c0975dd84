#include "parallel/scattered_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "model/parameters.hpp"
#include "parallel/events.hpp"

namespace syslab::parallel {
namespace {

using device::Buffer;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

struct Room {
  std::vector<std::int64_t> slots;              // bytes of each
  std::int64_t largest = 0, largest_chunk = 0;  // elements of one matrix: whole, and a rank's part
};
Room room_of(const FsdpParts& parts, const ShardLayout& layout, const ScatterOptions& options) {
  if (options.slots < 1) {
    throw Error(ErrorKind::usage, fmt::format("{} slots for gradients; at least 1 is wanted", options.slots));
  }
  const auto size = static_cast<std::int64_t>(size_of(parts.dtype));
  const int slots = std::min(options.slots, static_cast<int>(parts.brackets.size()));
  Room made{.slots = std::vector<std::int64_t>(at(slots), 0)};
  for (int bracket = 0; bracket < static_cast<int>(parts.brackets.size()); ++bracket) {
    std::int64_t& of_slot = made.slots[at(bracket % slots)];
    const BracketPlaces places(parts, layout, parts.brackets[at(bracket)]);
    of_slot = std::max(of_slot, round_up(places.room, model::kAlignedElements) * size);
    for (const int matrix : parts.brackets[at(bracket)].matrices) {
      made.largest = std::max(made.largest, layout.ranks() * layout.chunk(matrix));
      made.largest_chunk = std::max(made.largest_chunk, layout.chunk(matrix));
    }
  }
  return made;
}

}  // namespace

std::int64_t ScatteredGradients::pool_bytes(const FsdpParts& parts, const ShardLayout& layout,
                                            const ScatterOptions& options) {
  const Room room = room_of(parts, layout, options);
  const DType wire = options.wire.value_or(parts.dtype);
  const std::int64_t travels = room.largest_chunk + (wire != parts.dtype ? room.largest : 0);
  return std::accumulate(room.slots.begin(), room.slots.end(), std::int64_t{0}) +
         travels * static_cast<std::int64_t>(size_of(wire));
}

ScatteredGradients::ScatteredGradients(FsdpContext& context, const TensorView& shards, const ScatterOptions& options)
    : context_(context),
      shards_(shards),
      options_(options),
      awaits_(context.communication, context.compute),
      last_(device::place_of(context.compute)),
      reduced_(device::place_of(context.compute)) {
  const FsdpParts& parts = context.parts;
  const Room room = room_of(parts, context.layout, options);
  const int slots = static_cast<int>(room.slots.size());
  for (std::size_t bracket = 0; bracket < parts.brackets.size(); ++bracket) {
    labels_.push_back(fmt::format("bracket {}", bracket));
  }
  ready_ = events(slots, context.compute);
  free_ = events(slots, context.compute);
  busy_.assign(at(slots), 0);
  pool_ = SlotPool(room.slots, "gradients before they are scattered", context.compute);
  const auto memory = [&](std::int64_t elements, DType dtype, std::string_view tag) {
    Buffer made(static_cast<std::size_t>(elements) * size_of(dtype), tag, context.compute,
                device::MemoryCategory::workspace);
    device::fill_bytes(made.data(), 0, made.bytes(), context.compute);
    return made;
  };
  const DType wire = options.wire.value_or(parts.dtype);
  if (wire != parts.dtype) wire_ = memory(room.largest, wire, "gradients on the wire");
  received_ = memory(room.largest_chunk, wire, "gradients that came");
  device::synchronize(context.compute);
}

std::int64_t ScatteredGradients::bytes() const {
  return pool_.bytes() + static_cast<std::int64_t>(wire_.bytes() + received_.bytes());
}

void ScatteredGradients::begin(bool add) {
  next_ = 0;
  add_ = add;
  // What was scattered before is done when this pass's first weights have been gathered, behind it on one stream.
  std::ranges::fill(busy_, char{0});
}

TensorView ScatteredGradients::whole(int bracket) const {
  return {pool_[slot_of(bracket)], context_.parts.dtype, context_.brackets[at(bracket)].shape};
}

TensorView ScatteredGradients::place(int bracket) {
  if (bracket != next_) {
    context_.refuse(fmt::format("the gradient of bracket {} is made where that of bracket {} is next", bracket, next_));
  }
  const int slot = slot_of(bracket);
  if (busy_[at(slot)] != 0) context_.waits.wait(free_[at(slot)], context_.compute);
  busy_[at(slot)] = 0;
  return whole(bracket);
}

void ScatteredGradients::final(int bracket) {
  if (bracket != next_) {
    context_.refuse(
        fmt::format("the gradient of bracket {} is final where that of bracket {} is next", bracket, next_));
  }
  ++next_;
  const int slot = slot_of(bracket);
  ready_[at(slot)].record(context_.compute);
  context_.waits.wait(ready_[at(slot)], context_.communication);
  unsent_ = false;  // what is replicated and was final before is behind that event too
  const std::vector<int>& matrices = context_.parts.brackets[at(bracket)].matrices;
  // Together, where none needs the buffers that they share.
  const bool together = is_direct();
  if (together) context_.ranks.begin_group();
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    scatter(bracket, matrices[i], context_.brackets[at(bracket)].first[i]);
  }
  if (together) context_.ranks.end_group();
  for (const int matrix : matrices) clear_padding(matrix);
  free_[at(slot)].record(context_.communication);
  busy_[at(slot)] = 1;
}

void ScatteredGradients::scatter(int bracket, int matrix, std::int64_t first) {
  const std::int64_t chunk = context_.layout.chunk(matrix), count = context_.layout.ranks() * chunk;
  const TensorView made = stretch(whole(bracket), first, count);
  const TensorView own = stretch(shards_, context_.layout.offset(matrix), chunk);
  TensorView sent = made, received = own;
  if (wire_.bytes() > 0) {
    const DType wire = options_.wire.value();
    sent = {wire_.data(), wire, {1, count}};
    context_.moves.move(made, sent);
  }
  if (!is_direct()) received = {received_.data(), sent.dtype, {1, chunk}};
  context_.ranks.reduce_scatter(sent, received, comm::Reduction::sum, {"gradient", labels_[at(bracket)]},
                                context_.communication);
  scattered_bytes_ += static_cast<std::uint64_t>(count) * size_of(sent.dtype);
  if (!is_direct()) add_ ? context_.moves.add(received, own) : context_.moves.move(received, own);
}

// What stands behind the last row is another matrix's gradient, or anything.
void ScatteredGradients::clear_padding(int matrix) {
  const std::int64_t chunk = context_.layout.chunk(matrix);
  const std::int64_t width = context_.parts.matrices[at(matrix)].width;
  const std::int64_t mine = context_.layout.own_rows(matrix, context_.ranks.rank()) * width;
  if (mine == chunk) return;
  const TensorView rest = stretch(shards_, context_.layout.offset(matrix) + mine, chunk - mine);
  device::fill_bytes(rest.data, 0, static_cast<std::size_t>(chunk - mine) * size_of(rest.dtype),
                     context_.communication);
}

void ScatteredGradients::finish() {
  if (next_ != static_cast<int>(context_.brackets.size())) {
    context_.refuse(fmt::format("a step of gradients ends after {} of {} brackets", next_, context_.brackets.size()));
  }
  const std::int64_t elements = context_.layout.elements() - context_.layout.sharded_elements();
  if (elements > 0) {
    if (unsent_) {
      last_.record(context_.compute);
      context_.waits.wait(last_, context_.communication);
    }
    context_.ranks.all_reduce(stretch(shards_, context_.layout.sharded_elements(), elements), comm::Reduction::sum,
                              {"gradient", "replicated"}, context_.communication);
    reduced_bytes_ += static_cast<std::uint64_t>(elements) * size_of(context_.parts.dtype);
  }
  unsent_ = false;
  reduced_.record(context_.communication);
  context_.waits.wait(reduced_, context_.compute);
  std::ranges::fill(busy_, char{0});  // that wait was for all of them
  context_.ranks.throw_if_failed();
}

}  // namespace syslab::parallel
