#include "parallel/fsdp/scattered_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "model/parameters.hpp"
#include "parallel/events.hpp"

namespace syslab::parallel {
namespace {

using device::Buffer;

// The dtype in which gradients are sent.
DType wire_of(const FsdpParts& parts, const ShardLayout& layout, const ScatterOptions& options) {
  return layout.ranks() > 1 ? options.wire.value_or(parts.dtype) : parts.dtype;
}

// The dtype in which a bracket's gradient is written: the one it is sent in, if products compute in that.
DType written_dtype(const FsdpParts& parts, int bracket, DType wire) {
  return parts.brackets[at(bracket)].product == wire ? wire : parts.dtype;
}

struct Room {
  std::vector<std::int64_t> slots;               // bytes of each
  std::int64_t largest_rounded = 0;              // elements of one matrix that is rounded before it is sent
  std::int64_t largest_chunk = 0, together = 0;  // elements of a rank's part of one matrix, and of a bracket's
};
Room room_of(const FsdpParts& parts, const ShardLayout& layout, const ScatterOptions& options) {
  if (options.slots < 1) {
    throw Error(ErrorKind::usage, fmt::format("{} slots for gradients; at least 1 is wanted", options.slots));
  }
  const DType wire = wire_of(parts, layout, options);
  const int slots = std::min(options.slots, static_cast<int>(parts.brackets.size()));
  Room made{.slots = std::vector<std::int64_t>(at(slots), 0)};
  for (int bracket = 0; bracket < static_cast<int>(parts.brackets.size()); ++bracket) {
    const DType written = written_dtype(parts, bracket, wire);
    std::int64_t& of_slot = made.slots[at(bracket % slots)];
    const BracketPlaces places(parts, layout, parts.brackets[at(bracket)]);
    of_slot =
        std::max(of_slot, round_up(places.room, model::kAlignedElements) * static_cast<std::int64_t>(size_of(written)));
    std::int64_t chunks = 0;
    for (const int matrix : parts.brackets[at(bracket)].matrices) {
      const std::int64_t chunk = layout.chunk(matrix);
      if (written != wire) made.largest_rounded = std::max(made.largest_rounded, layout.ranks() * chunk);
      made.largest_chunk = std::max(made.largest_chunk, chunk);
      chunks += chunk;
    }
    made.together = std::max(made.together, chunks);
  }
  return made;
}

// Room for received sums that are moved to the shards afterwards: for a whole bracket where gradients are sent rounded,
// since its matrices then travel as one group.
std::int64_t received_elements(const Room& room, DType wire, DType kept) {
  return wire == kept ? room.largest_chunk : room.together;
}

}  // namespace

std::int64_t ScatteredGradients::pool_bytes(const FsdpParts& parts, const ShardLayout& layout,
                                            const ScatterOptions& options) {
  const Room room = room_of(parts, layout, options);
  const DType wire = wire_of(parts, layout, options);
  return std::accumulate(room.slots.begin(), room.slots.end(), std::int64_t{0}) +
         (room.largest_rounded + received_elements(room, wire, parts.dtype)) * static_cast<std::int64_t>(size_of(wire));
}

ScatteredGradients::ScatteredGradients(FsdpContext& context, const TensorView& shards, const ScatterOptions& options)
    : context_(context),
      shards_(shards),
      wire_dtype_(wire_of(context.parts, context.layout, options)),
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
  if (room.largest_rounded > 0) wire_ = memory(room.largest_rounded, wire_dtype_, "gradients on the wire");
  received_ = memory(received_elements(room, wire_dtype_, parts.dtype), wire_dtype_, "gradients that came");
  device::synchronize(context.compute);
}

std::int64_t ScatteredGradients::bytes() const {
  return pool_.bytes() + static_cast<std::int64_t>(wire_.bytes() + received_.bytes());
}

void ScatteredGradients::begin(bool add) {
  next_ = 0;
  add_ = add;
  // Earlier scatters are done once this pass's first weights are gathered: both are on one stream, in order.
  std::ranges::fill(busy_, char{0});
}

TensorView ScatteredGradients::whole(int bracket) const {
  return {pool_[slot_of(bracket)], written_dtype(context_.parts, bracket, wire_dtype_),
          context_.brackets[at(bracket)].shape};
}

TensorView ScatteredGradients::place(int bracket) {
  if (bracket != next_) {
    context_.refuse(fmt::format("the gradient of bracket {} is made where that of bracket {} is next", bracket, next_));
  }
  const int slot = slot_of(bracket);
  if (busy_[at(slot)] != 0) {
    wait_for(context_.observer, Wait::gradient_slot_sent, free_[at(slot)], context_.compute, bracket);
  }
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
  wait_for(context_.observer, Wait::gradients_written, ready_[at(slot)], context_.communication, bracket);
  unsent_ = false;  // that event also covers replicated gradients that were final before it
  const std::vector<int>& matrices = context_.parts.brackets[at(bracket)].matrices;
  // As one group, if each matrix has its own place to be received in and none has to be rounded in the shared buffer.
  const bool straight = is_straight(wire_dtype_);
  const bool together = straight || (whole(bracket).dtype == wire_dtype_ && wire_dtype_ != shards_.dtype);
  std::vector<TensorView> came;
  std::int64_t used = 0;
  for (const int matrix : matrices) {
    const std::int64_t chunk = context_.layout.chunk(matrix);
    const TensorView stays = stretch(shards_, context_.layout.offset(matrix), chunk);
    came.push_back(straight ? stays : stretch({received_.data(), wire_dtype_, {1, used + chunk}}, used, chunk));
    if (together) used += chunk;
  }
  if (together) context_.ranks.begin_group();
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    scatter(bracket, matrices[i], context_.brackets[at(bracket)].first[i], came[i]);
    if (!together) keep(came[i], matrices[i]);
  }
  if (together) context_.ranks.end_group();
  for (std::size_t i = 0; together && !straight && i < matrices.size(); ++i) keep(came[i], matrices[i]);
  for (const int matrix : matrices) clear_padding(matrix);
  free_[at(slot)].record(context_.communication);
  busy_[at(slot)] = 1;
}

void ScatteredGradients::scatter(int bracket, int matrix, std::int64_t first, const TensorView& received) {
  const std::int64_t count = context_.layout.ranks() * context_.layout.chunk(matrix);
  const TensorView made = stretch(whole(bracket), first, count);
  TensorView sent = made;
  if (made.dtype != wire_dtype_) {
    sent = {wire_.data(), wire_dtype_, {1, count}};
    context_.moves.move(made, sent);
  }
  context_.ranks.reduce_scatter(sent, received, comm::Reduction::sum, {"gradient", labels_[at(bracket)]},
                                context_.communication);
  scattered_bytes_ += static_cast<std::uint64_t>(count) * size_of(sent.dtype);
}

// Moves received sums to the shards, or adds them.
void ScatteredGradients::keep(const TensorView& received, int matrix) {
  const TensorView stays = stretch(shards_, context_.layout.offset(matrix), received.elements());
  add_ ? context_.moves.add(received, stays) : context_.moves.move(received, stays);
}

// After this rank's last row there may be another matrix's gradient, or arbitrary values.
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
      wait_for(context_.observer, Wait::replicated_gradients_written, last_, context_.communication);
    }
    context_.ranks.all_reduce(stretch(shards_, context_.layout.sharded_elements(), elements), comm::Reduction::sum,
                              {"gradient", "replicated"}, context_.communication);
    reduced_bytes_ += static_cast<std::uint64_t>(elements) * size_of(context_.parts.dtype);
  }
  unsent_ = false;
  reduced_.record(context_.communication);
  wait_for(context_.observer, Wait::gradients_reduced, reduced_, context_.compute);
  std::ranges::fill(busy_, char{0});  // that wait was for all of them
  context_.ranks.throw_if_failed();
}

}  // namespace syslab::parallel
