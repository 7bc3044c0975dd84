#include "parallel/zero/bucket_slots.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "model/parameters.hpp"

namespace syslab::parallel {
namespace {

void expect_fit(const GradientPieces& pieces, const BucketSlotOptions& options) {
  if (options.slots < 1) {
    throw Error(ErrorKind::usage, fmt::format("{} slots for gradients; at least 1 is wanted", options.slots));
  }
  if (!options.rounded) return;
  const std::vector<int>& written = options.rounded->written;
  const bool ascending = std::ranges::adjacent_find(written, std::ranges::greater_equal()) == written.end();
  const bool known = written.empty() || (written.front() >= 0 && written.back() < pieces.size());
  if (ascending && known && size_of(options.rounded->dtype) < size_of(pieces.dtype())) return;
  throw Error(ErrorKind::usage,
              fmt::format("gradients in {} that travel in {}, of which pieces {} are written so: a smaller dtype is "
                          "wanted, and pieces from 0 to {}, each once and ascending",
                          to_string(pieces.dtype()), to_string(options.rounded->dtype), fmt::join(written, " "),
                          pieces.size() - 1));
}

bool is_written(const std::optional<RoundedGradients>& rounded, int piece) {
  return rounded && std::ranges::binary_search(rounded->written, piece);
}

// For each piece that is written unrounded: its offset in the slot, in elements. Last: the size of the largest slot.
std::vector<std::int64_t> places_in_full(const GradientPieces& pieces, const FlatShards& shards,
                                         const BucketSlotOptions& options) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(pieces.size()), 0);
  std::int64_t largest = 0;
  if (options.rounded && options.arena.data == nullptr) {
    for (int bucket = 0; bucket < shards.buckets(); ++bucket) {
      std::int64_t end = 0;
      for (int piece = shards.schedule().begin(bucket); piece < shards.schedule().end(bucket); ++piece) {
        if (is_written(options.rounded, piece)) continue;
        at[static_cast<std::size_t>(piece)] = end;
        end = round_up(end + pieces[piece].elements, model::kAlignedElements);
      }
      largest = std::max(largest, end);
    }
  }
  at.push_back(largest);
  return at;
}

}  // namespace

BucketSlots::Room BucketSlots::room(const GradientPieces& pieces, const FlatShards& shards,
                                    const BucketSlotOptions& options) {
  return {shards.largest_bucket(), places_in_full(pieces, shards, options).back()};
}

BucketSlots::BucketSlots(const GradientPieces& pieces, const FlatShards& shards, const BucketSlotOptions& options,
                         device::Stream stream)
    : pieces_(pieces),
      shards_(shards),
      rounded_(options.rounded),
      arena_(options.arena),
      slots_(std::min(options.slots, shards.buckets())) {
  expect_fit(pieces, options);
  full_at_ = places_in_full(pieces, shards, options);
  room_ = {shards.largest_bucket(), full_at_.back()};
  const auto slots = [&](std::int64_t elements, DType dtype, std::string_view tag) {
    return device::Buffer(static_cast<std::size_t>(slots_ * elements) * size_of(dtype), tag, stream,
                          device::MemoryCategory::gradient);
  };
  travelling_ = slots(room_.travelling, travels_in(), "gradient slots");
  if (room_.full > 0) full_ = slots(room_.full, pieces.dtype(), "gradient slots in full");
}

bool BucketSlots::is_written_rounded(int piece) const { return is_written(rounded_, piece); }

TensorView BucketSlots::bucket(int bucket) const {
  return stretch({travelling_.data(), travels_in(), {1, slots_ * room_.travelling}}, slot_of(bucket) * room_.travelling,
                 shards_.bucket(bucket).count);
}

TensorView BucketSlots::in_bucket(int piece) const {
  const int bucket = shards_.schedule().bucket_of(piece);
  return stretch(this->bucket(bucket), pieces_[piece].first - shards_.bucket(bucket).first, pieces_[piece].elements);
}

TensorView BucketSlots::place(int piece) const {
  const std::int64_t elements = pieces_[piece].elements;
  if (!rounds() || is_written_rounded(piece)) return in_bucket(piece);
  if (arena_.data != nullptr) return stretch(arena_, pieces_[piece].first, elements);
  const std::int64_t slot = slot_of(shards_.schedule().bucket_of(piece));
  return stretch({full_.data(), pieces_.dtype(), {1, slots_ * room_.full}},
                 slot * room_.full + full_at_[static_cast<std::size_t>(piece)], elements);
}

void BucketSlots::spoil(int bucket, device::Stream stream) const {
  const auto fill = [stream](const TensorView& view) {
    device::fill_bytes(view.data, 0xff, static_cast<std::size_t>(view.elements()) * size_of(view.dtype), stream);
  };
  fill(this->bucket(bucket));
  if (room_.full == 0) return;
  fill(stretch({full_.data(), pieces_.dtype(), {1, slots_ * room_.full}}, slot_of(bucket) * room_.full, room_.full));
}

}  // namespace syslab::parallel
