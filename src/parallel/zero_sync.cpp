#include "parallel/zero_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/events.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;

constexpr std::string_view kGradient = "gradient", kParameter = "parameter";

std::size_t bytes_of(const TensorView& view) { return static_cast<std::size_t>(view.elements()) * size_of(view.dtype); }

void expect_fit(const ZeroOptions& options, const TensorView& weights, const TensorView& gradients) {
  const bool zero1 = options.sharding == Sharding::zero1, zero2 = options.sharding == Sharding::zero2;
  if (!zero1 && !zero2) {
    throw Error(ErrorKind::usage, fmt::format("gradients are not scattered with '{}': ask for zero1 or zero2",
                                              to_string(options.sharding)));
  }
  if (zero2 && options.slots < 1) {
    throw Error(ErrorKind::usage, fmt::format("{} slots for gradients; at least 1 is wanted", options.slots));
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

}  // namespace

ZeroSync::ZeroSync(comm::Communicator& ranks, GradientPieces pieces, const TensorView& weights,
                   const TensorView& gradients, const ZeroOptions& options, Stream communication,
                   const TensorView& copy)
    : ranks_(ranks),
      pieces_(std::move(pieces)),
      shards_(pieces_, options.plan ? *options.plan : plan_flat(pieces_), weights.elements(), ranks.size()),
      options_(options),
      turns_(ranks, pieces_, shards_.plan()),
      weights_(weights),
      gradients_(gradients),
      copy_(copy),
      communication_(communication),
      moves_(communication),
      reduced_(device::place_of(communication)),
      ready_(events(shards_.buckets(), communication)),
      updated_(events(shards_.buckets(), communication)),
      gathered_(events(shards_.buckets(), communication)),
      on_its_way_(static_cast<std::size_t>(shards_.buckets()), 0),
      counted_before_(counted()) {
  expect_fit(options, weights, gradients);
  require_agreement(ranks, "the gradients to scatter, and how", description());
  for (int bucket = 0; bucket < buckets(); ++bucket) labels_.push_back(fmt::format("bucket {}", bucket));
  if (!in_slots()) return;
  options_.slots = std::min(options_.slots, buckets());
  freed_ = events(options_.slots, communication);
  slot_used_.assign(static_cast<std::size_t>(options_.slots), 0);
  const std::size_t size = size_of(weights.dtype);
  slots_ = device::Buffer(static_cast<std::size_t>(options_.slots * shards_.largest_bucket()) * size, "gradient slots",
                          communication, device::MemoryCategory::gradient);
  shard_ = device::Buffer(static_cast<std::size_t>(shards_.shard_elements()) * size, "gradient shard", communication,
                          device::MemoryCategory::gradient);
}

// A line for the way, then one a piece: what all ranks must have alike.
std::string ZeroSync::description() const {
  std::string text = fmt::format("{} over {} elements in {}, buckets that end at {}\n", to_string(options_.sharding),
                                 weights_.elements(), to_string(weights_.dtype), shards_.plan().text());
  for (int i = 0; i < pieces_.size(); ++i) {
    text += fmt::format("'{}' at {} of {} elements\n", pieces_[i].name, pieces_[i].first, pieces_[i].elements);
  }
  return text;
}

void ZeroSync::wait(Wait kind, int bucket, const device::Event& event, Stream later) {
  if (static_cast<int>(kind) * buckets() + bucket != options_.left_out_wait) event.before(later);
}

// Where the gradients of a bucket lie before they are scattered.
TensorView ZeroSync::bucket_view(int bucket) const {
  const Stretch at = shards_.bucket(bucket);
  if (!in_slots()) return stretch(gradients_, at.first, at.count);
  const std::int64_t one = shards_.largest_bucket();
  return stretch({slots_.data(), weights_.dtype, {1, options_.slots * one}}, slot_of(bucket) * one, at.count);
}

TensorView ZeroSync::shard_view(int bucket) const {
  return stretch({shard_.data(), weights_.dtype, {1, shards_.shard_elements()}}, shards_.first_in_shard(bucket),
                 shards_.slice(bucket, ranks_.rank()).count);
}

TensorView ZeroSync::gradient_slice(int bucket) const {
  if (in_slots()) return shard_view(bucket);
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  return stretch(gradients_, own.first, own.count);
}

TensorView ZeroSync::weight_slice(int bucket) const {
  const Stretch own = shards_.slice(bucket, ranks_.rank());
  return stretch(weights_, own.first, own.count);
}

void ZeroSync::begin(Stream compute, bool add) {
  turns_.begin();
  compute_ = compute;
  add_ = add;
  entered_ = -1;
  scattered_ = 0;
}

// The first gradient of a bucket: its slot has to be free.
void ZeroSync::enter(int bucket, Stream compute) {
  if (bucket <= entered_) return;
  entered_ = bucket;
  if (!in_slots()) return;
  if (bucket - options_.slots >= scattered_) {
    turns_.refuse(
        fmt::format("a gradient of bucket {} is written before bucket {} is final, whose slot it has: ask for "
                    "more than {} slots",
                    bucket, bucket - options_.slots, options_.slots));
  }
  // Scatters are done in their order: who has waited for a later one need not wait.
  const auto slot = static_cast<std::size_t>(slot_of(bucket));
  if (slot_used_[slot] <= waited_for_) return;
  wait(Wait::slot, bucket, freed_[slot], compute);
  waited_for_ = slot_used_[slot];
}

TensorView ZeroSync::gradient(int piece, Stream compute) {
  const int bucket = shards_.plan().bucket_of(piece);
  enter(bucket, compute);
  return stretch(bucket_view(bucket), pieces_[piece].first - shards_.bucket(bucket).first, pieces_[piece].elements);
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

// What no kernel writes: gradients that the step does not use, and what lies between pieces and travels with them.
void ZeroSync::clear_rest(int bucket, Stream compute) const {
  const Stretch all = shards_.bucket(bucket);
  const TensorView view = bucket_view(bucket);
  const int end = shards_.plan().end(bucket);
  for (int piece = shards_.plan().begin(bucket); piece < end; ++piece) {
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
  wait(Wait::ready, bucket, ready_[at], communication_);
  const bool straight = in_slots() && !add_;
  const TensorView sum = straight ? shard_view(bucket) : in_place;
  ranks_.reduce_scatter(all, sum, comm::Reduction::sum, purpose, communication_);
  expected_ += bytes_of(all);
  if (!in_slots()) return;
  if (add_) moves_.add(sum, shard_view(bucket));
  if (options_.poison) spoil(bucket);
  slot_used_[static_cast<std::size_t>(slot_of(bucket))] = scatters_;
  freed_[static_cast<std::size_t>(slot_of(bucket))].record(communication_);
}

void ZeroSync::spoil(int bucket) const {
  const TensorView all = bucket_view(bucket);
  device::fill_bytes(all.data, 0xff, bytes_of(all), communication_);
}

void ZeroSync::finish_part() {
  turns_.finish();
  hear_failure();
}

void ZeroSync::finish(Stream compute) {
  turns_.finish();
  reduced_.record(communication_);
  wait(Wait::reduced, 0, reduced_, compute);
  waited_for_ = scatters_;
  hear_failure();
}

void ZeroSync::updated(int bucket, Stream compute) {
  const auto at = static_cast<std::size_t>(bucket);
  const Stretch all = shards_.bucket(bucket);
  const TensorView weights = stretch(weights_, all.first, all.count);
  updated_[at].record(compute);
  wait(Wait::updated, bucket, updated_[at], communication_);
  ranks_.all_gather(weight_slice(bucket), weights, {kParameter, labels_[at]}, communication_);
  expected_ += bytes_of(weights);
  if (copy_.data != nullptr) moves_.move(weights, stretch(copy_, all.first, all.count));
  gathered_[at].record(communication_);
  on_its_way_[at] = 1;
}

void ZeroSync::needed(int piece, Stream compute) {
  const int bucket = shards_.plan().bucket_of(piece);
  char& on_its_way = on_its_way_[static_cast<std::size_t>(bucket)];
  if (on_its_way == 0) return;
  on_its_way = 0;
  wait(Wait::gathered, bucket, gathered_[static_cast<std::size_t>(bucket)], compute);
  hear_failure();
}

void ZeroSync::all_needed(Stream compute) {
  for (int bucket = buckets(); bucket-- > 0;) needed(shards_.plan().begin(bucket), compute);
}

// On the plain stream the wait was the host's, and what failed in the queue is known: nothing may run on it.
void ZeroSync::hear_failure() const { ranks_.throw_if_failed(); }

std::uint64_t ZeroSync::counted() const {
  return ranks_.counters().total(comm::Operation::reduce_scatter, kGradient).payload_bytes +
         ranks_.counters().total(comm::Operation::all_gather, kParameter).payload_bytes;
}

void ZeroSync::check_bytes() const {
  const std::uint64_t found = counted() - counted_before_;
  if (found == expected_) return;
  throw Error(ErrorKind::check,
              fmt::format("rank {} scattered and gathered {} bytes with {}, and its plan of {} buckets "
                          "makes {}: something else did so under the same purposes",
                          ranks_.rank(), found, to_string(options_.sharding), buckets(), expected_));
}

}  // namespace syslab::parallel
