#include "parallel/zero/sync.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.hpp"
#include "device/digest.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/bytes_of.hpp"
#include "parallel/events.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;

constexpr std::string_view kGradient = "gradient", kParameter = "parameter", kExport = "export";

void expect_fit(const ZeroOptions& options, const TensorView& weights, const TensorView& gradients) {
  const bool zero1 = options.sharding == Sharding::zero1, zero2 = options.sharding == Sharding::zero2;
  if (!zero1 && !zero2) {
    throw Error(ErrorKind::usage, fmt::format("gradients are not scattered with '{}': ask for zero1 or zero2",
                                              to_string(options.sharding)));
  }
  const bool fits = zero2 ? gradients.data == nullptr
                          : gradients.elements() == weights.elements() && gradients.dtype == weights.dtype;
  if (fits) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("an arena of {} gradients in {} beside {} weights in {}: zero1 wants as many "
                  "in one dtype, zero2 none",
                  gradients.elements(), to_string(gradients.dtype), weights.elements(), to_string(weights.dtype)));
}

void expect_fit(const WeightsCopy& copy, const TensorView& weights, int pieces) {
  if (copy.values.data == nullptr) return;
  const std::vector<int>& full = copy.read_in_full;
  const bool ascending = std::ranges::adjacent_find(full, std::ranges::greater_equal()) == full.end();
  const bool known = full.empty() || (full.front() >= 0 && full.back() < pieces);
  const bool fits = copy.values.elements() == weights.elements() && size_of(copy.values.dtype) < size_of(weights.dtype);
  if (fits && ascending && known) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("a copy of {} elements in {} beside {} weights in {}, and pieces {} read in full: as many in a "
                  "smaller dtype are wanted, and pieces from 0 to {}, each once and ascending",
                  copy.values.elements(), to_string(copy.values.dtype), weights.elements(), to_string(weights.dtype),
                  fmt::join(full, " "), pieces - 1));
}

}  // namespace

ZeroSync::ZeroSync(comm::Communicator& ranks, GradientPieces pieces, const TensorView& weights,
                   const TensorView& gradients, const ZeroOptions& options, Stream communication, WeightsCopy copy)
    : ranks_(ranks),
      pieces_(std::move(pieces)),
      shards_(pieces_, options.schedule ? *options.schedule : schedule_flat(pieces_), weights.elements(), ranks.size()),
      options_(options),
      turns_(ranks, pieces_, shards_.schedule()),
      weights_(weights),
      gradients_(gradients),
      copy_(std::move(copy)),
      communication_(communication),
      moves_(communication),
      reduced_(device::place_of(communication)),
      ready_(events(shards_.buckets(), communication)),
      updated_(events(shards_.buckets(), communication)),
      gathered_(events(shards_.buckets(), communication)),
      on_its_way_(static_cast<std::size_t>(shards_.buckets()), 0),
      counted_before_(counted()) {
  expect_fit(options, weights, gradients);
  expect_fit(copy_, weights, pieces_.size());
  plan_copies();
  require_agreement(ranks, "the gradients to scatter, and how", description());
  for (int bucket = 0; bucket < buckets(); ++bucket) labels_.push_back(fmt::format("bucket {}", bucket));
  const bool has_arena = options.sharding == Sharding::zero1;
  if (!has_arena) {
    shard_ = device::Buffer(static_cast<std::size_t>(shards_.shard_elements()) * size_of(weights.dtype),
                            "gradient shard", communication, device::MemoryCategory::gradient);
  }
  if (has_arena && !options.rounded) return;
  slots_.emplace(pieces_, shards_,
                 BucketSlotOptions{.slots = options.slots, .rounded = options.rounded, .arena = gradients_},
                 communication);
  freed_ = events(slots_->slots(), communication);
  slot_used_.assign(static_cast<std::size_t>(slots_->slots()), 0);
}

// Which buckets travel as copies, and which of their parts are also sent in full.
void ZeroSync::plan_copies() {
  copies_travel_.assign(static_cast<std::size_t>(buckets()), 0);
  parts_.resize(copies_travel_.size());
  if (copy_.values.data == nullptr) return;
  for (int bucket = 0; bucket < buckets(); ++bucket) {
    const auto at = static_cast<std::size_t>(bucket);
    const int begin = shards_.schedule().begin(bucket), end = shards_.schedule().end(bucket);
    int in_full = 0;
    for (const int piece : copy_.read_in_full) {
      if (piece < begin || piece >= end) continue;
      ++in_full;
      for (int rank = 0; rank < ranks_.size(); ++rank) {
        const Stretch own = shards_.slice(bucket, rank);
        const std::int64_t first = std::max(own.first, pieces_[piece].first);
        const std::int64_t last = std::min(own.end(), pieces_[piece].end());
        if (first < last) parts_[at].push_back({{first, last - first}, rank});
      }
    }
    copies_travel_[at] = in_full < end - begin ? 1 : 0;
  }
}

// One line for the options and one per piece: all ranks must have the same text.
std::string ZeroSync::description() const {
  std::string text = fmt::format("{} over {} elements in {}, buckets that end at {}\n", to_string(options_.sharding),
                                 weights_.elements(), to_string(weights_.dtype), shards_.schedule().text());
  if (options_.rounded) {
    text += fmt::format("gradients in {}, written so {}\n", to_string(options_.rounded->dtype),
                        fmt::join(options_.rounded->written, " "));
  }
  if (copy_.values.data != nullptr) {
    text += fmt::format("copies in {}, in full pieces {}\n", to_string(copy_.values.dtype),
                        fmt::join(copy_.read_in_full, " "));
  }
  for (int i = 0; i < pieces_.size(); ++i) {
    text += fmt::format("'{}' at {} of {} elements\n", pieces_[i].name, pieces_[i].first, pieces_[i].elements);
  }
  return text;
}

// A bucket's gradients as they travel.
TensorView ZeroSync::bucket_view(int bucket) const {
  if (slots_) return slots_->bucket(bucket);
  const Stretch at = shards_.bucket(bucket);
  return stretch(gradients_, at.first, at.count);
}

TensorView ZeroSync::shard_view(int bucket) const {
  return stretch({shard_.data(), weights_.dtype, {1, shards_.shard_elements()}}, shards_.first_in_shard(bucket),
                 shards_.slice(bucket, ranks_.rank()).count);
}

TensorView ZeroSync::gradient_slice(int bucket) const {
  if (options_.sharding == Sharding::zero2) return shard_view(bucket);
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  return stretch(gradients_, own.first, own.count);
}

TensorView ZeroSync::weight_slice(int bucket) const {
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  return stretch(weights_, own.first, own.count);
}

TensorView ZeroSync::copy_slice(int bucket) const {
  if (!copies_travel(bucket)) return {};
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  return stretch(copy_.values, own.first, own.count);
}

void ZeroSync::begin(Stream compute, bool add, SliceUpdate update) {
  turns_.begin();
  compute_ = compute;
  add_ = add && options_.sharding == Sharding::zero2;
  update_ = std::move(update);
  entered_ = -1;
  scattered_ = 0;
}

// Before the first gradient of a bucket: waits until its slot is free.
void ZeroSync::enter(int bucket, Stream compute) {
  if (bucket <= entered_) return;
  entered_ = bucket;
  if (!slots_) return;
  if (bucket - slots_->slots() >= scattered_) {
    turns_.refuse(
        fmt::format("a gradient of bucket {} is written before bucket {} is final, whose slot it has: ask for "
                    "more than {} slots",
                    bucket, bucket - slots_->slots(), slots_->slots()));
  }
  // Scatters finish in order: a stream that has waited for a later one need not wait for this one.
  const auto slot = static_cast<std::size_t>(slots_->slot_of(bucket));
  if (slot_used_[slot] <= waited_for_) return;
  wait_for(options_.observer, Wait::gradient_slot_sent, freed_[slot], compute, bucket);
  waited_for_ = slot_used_[slot];
}

TensorView ZeroSync::gradient(int piece, Stream compute) {
  const int bucket = shards_.schedule().bucket_of(piece);
  enter(bucket, compute);
  return slots_ ? slots_->place(piece) : stretch(gradients_, pieces_[piece].first, pieces_[piece].elements);
}

void ZeroSync::unused(int piece, Stream compute) {
  turns_.unused(piece);
  scatter_final(compute);
}

void ZeroSync::grad_final(int piece, Stream compute) {
  turns_.take(piece);
  scatter_final(compute);
}

void ZeroSync::scatter_final(Stream compute) {
  while (const std::optional<int> bucket = turns_.next_bucket()) scatter(*bucket, compute);
}

// Zeroes what no kernel writes: unused gradients, and the padding between pieces, which travels with them.
void ZeroSync::clear_rest(int bucket, Stream compute) const {
  const Stretch all = shards_.bucket(bucket);
  const TensorView view = bucket_view(bucket);
  const int end = shards_.schedule().end(bucket);
  for (int piece = shards_.schedule().begin(bucket); piece < end; ++piece) {
    const std::int64_t next = piece + 1 < end ? pieces_[piece + 1].first : all.end();
    const std::int64_t first = turns_.is_unused(piece) ? pieces_[piece].first : pieces_[piece].end();
    const TensorView rest = stretch(view, first - all.first, next - first);
    if (rest.elements() > 0) device::fill_bytes(rest.data, 0, bytes_of(rest), compute);
  }
}

void ZeroSync::scatter(int bucket, Stream compute) {
  const auto at = static_cast<std::size_t>(bucket);
  const comm::Purpose purpose{kGradient, labels_[at]};
  enter(bucket, compute);
  ++scattered_;
  ++scatters_;
  const TensorView all = bucket_view(bucket);
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  const TensorView in_place = stretch(all, own.first - shards_.bucket(bucket).first, own.count);
  clear_rest(bucket, compute);
  ready_[at].record(compute);
  wait_for(options_.observer, Wait::gradients_written, ready_[at], communication_, bucket);
  if (slots_) slots_->round(bucket, moves_, [this](int piece) { return turns_.is_unused(piece); });
  // The sums are received in their final place, unless they are added to it or have to be widened first.
  const TensorView sums = gradient_slice(bucket);
  const bool straight = !add_ && sums.dtype == all.dtype;
  ranks_.reduce_scatter(all, straight ? sums : in_place, comm::Reduction::sum, purpose, communication_);
  expected_ += bytes_of(all);
  if (!straight) add_ ? moves_.add(in_place, sums) : moves_.move(in_place, sums);
  if (slots_) {
    if (options_.poison) slots_->spoil(bucket, communication_);
    const auto slot = static_cast<std::size_t>(slots_->slot_of(bucket));
    slot_used_[slot] = scatters_;
    freed_[slot].record(communication_);
  }
  if (!update_) return;
  update_(bucket, communication_);
  if (scattered_ == buckets()) reduced_.record(communication_);
  gather(bucket);
}

void ZeroSync::finish_part() {
  turns_.finish();
  hear_failure();
}

void ZeroSync::finish(Stream compute) {
  turns_.finish();
  if (!update_) reduced_.record(communication_);
  wait_for(options_.observer, Wait::gradients_reduced, reduced_, compute);
  waited_for_ = scatters_;
  hear_failure();
}

void ZeroSync::updated(int bucket, Stream compute) {
  const auto at = static_cast<std::size_t>(bucket);
  updated_[at].record(compute);
  wait_for(options_.observer, Wait::weights_updated, updated_[at], communication_, bucket);
  gather(bucket);
}

void ZeroSync::gather(int bucket) {
  const auto at = static_cast<std::size_t>(bucket);
  const Stretch all = shards_.bucket(bucket);
  const TensorView weights = stretch(weights_, all.first, all.count);
  if (copies_travel(bucket)) {
    gather_copies(bucket);
  } else {
    ranks_.all_gather(weight_slice(bucket), weights, {kParameter, labels_[at]}, communication_);
    expected_ += bytes_of(weights);
    if (copy_.values.data != nullptr) moves_.move(weights, stretch(copy_.values, all.first, all.count));
  }
  gathered_[at].record(communication_);
  on_its_way_[at] = 1;
}

void ZeroSync::gather_copies(int bucket) {
  const auto at = static_cast<std::size_t>(bucket);
  const comm::Purpose purpose{kParameter, labels_[at]};
  const Stretch all = shards_.bucket(bucket);
  const TensorView copies = stretch(copy_.values, all.first, all.count);
  ranks_.begin_group();
  ranks_.all_gather(copy_slice(bucket), copies, purpose, communication_);
  expected_ += bytes_of(copies);
  for (const Part& part : parts_[at]) {
    const TensorView weights = stretch(weights_, part.at.first, part.at.count);
    ranks_.broadcast(weights, part.owner, purpose, communication_);
    expected_ += bytes_of(weights);
  }
  ranks_.end_group();
  whole_ = false;
  if (options_.poison) spoil_weights(bucket);
}

// Overwrites the weights of other ranks that arrived only as copies.
void ZeroSync::spoil_weights(int bucket) const {
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  const auto spoil = [&](std::int64_t first, std::int64_t end) {
    if (first >= end) return;
    const TensorView weights = stretch(weights_, first, end - first);
    device::fill_bytes(weights.data, 0xff, bytes_of(weights), communication_);
  };
  for (int piece = shards_.schedule().begin(bucket); piece < shards_.schedule().end(bucket); ++piece) {
    if (std::ranges::binary_search(copy_.read_in_full, piece)) continue;
    const Piece& one = pieces_[piece];
    spoil(one.first, std::min(one.end(), own.first));
    spoil(std::max(one.first, own.end()), one.end());
  }
}

void ZeroSync::gather_weights(Stream compute) {
  all_needed(compute);
  if (whole_) return;
  updated_[0].record(compute);
  updated_[0].before(communication_);
  for (int bucket = 0; bucket < buckets(); ++bucket) {
    if (!copies_travel(bucket)) continue;
    const Stretch all = shards_.bucket(bucket);
    ranks_.all_gather(weight_slice(bucket), stretch(weights_, all.first, all.count),
                      {kExport, labels_[static_cast<std::size_t>(bucket)]}, communication_);
  }
  gathered_[0].record(communication_);
  gathered_[0].before(compute);
  whole_ = true;
  hear_failure();
}

void ZeroSync::needed(int piece, Stream compute) {
  const int bucket = shards_.schedule().bucket_of(piece);
  char& on_its_way = on_its_way_[static_cast<std::size_t>(bucket)];
  if (on_its_way == 0) return;
  on_its_way = 0;
  wait_for(options_.observer, Wait::weights_gathered, gathered_[static_cast<std::size_t>(bucket)], compute, bucket);
  hear_failure();
}

void ZeroSync::all_needed(Stream compute) {
  for (int bucket = buckets(); bucket-- > 0;) needed(shards_.schedule().begin(bucket), compute);
}

// On the plain stream the host itself has waited, so a failure is known by now: nothing may continue after it.
void ZeroSync::hear_failure() const { ranks_.throw_if_failed(); }

void ZeroSync::check_copy(Stream compute) {
  if (copy_.values.data == nullptr) return;
  gather_weights(compute);
  device::synchronize(compute);
  constexpr std::int64_t kTogether = std::int64_t{1} << 24;  // elements: 32 MiB of scratch
  const std::int64_t all = weights_.elements();
  const DType dtype = copy_.values.dtype;
  const device::Buffer scratch(static_cast<std::size_t>(std::min(kTogether, all)) * size_of(dtype),
                               "weights rounded again", communication_);
  std::string found;
  for (std::int64_t first = 0; first < all && found.empty(); first += kTogether) {
    const std::int64_t count = std::min(kTogether, all - first);
    const TensorView here = stretch(copy_.values, first, count), again(scratch.data(), dtype, {1, count});
    moves_.move(stretch(weights_, first, count), again);
    if (device::digest(here.data, bytes_of(here), communication_) ==
        device::digest(again.data, bytes_of(again), communication_)) {
      continue;
    }
    found = fmt::format("elements {} to {} of the weights' copy on rank {} are not what these are rounded to", first,
                        first + count, ranks_.rank());
  }
  for (const std::string& text : ranks_.exchange(found)) {
    if (!text.empty()) throw Error(ErrorKind::check, text);
  }
}

std::uint64_t ZeroSync::counted() const {
  return ranks_.counters().total(comm::Operation::reduce_scatter, kGradient).payload_bytes +
         ranks_.counters().total(comm::Operation::all_gather, kParameter).payload_bytes +
         ranks_.counters().total(comm::Operation::broadcast, kParameter).payload_bytes;
}

void ZeroSync::check_bytes() const {
  const std::uint64_t found = counted() - counted_before_;
  if (found == expected_) return;
  throw Error(ErrorKind::check,
              fmt::format("rank {} scattered and gathered {} bytes with {}, and its schedule of {} buckets "
                          "makes {}: something else did so under the same purposes",
                          ranks_.rank(), found, to_string(options_.sharding), buckets(), expected_));
}

}  // namespace syslab::parallel
