#include "parallel/ddp/gradient_sync.hpp"

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

using device::Event;
using device::Stream;

constexpr std::string_view kGradientKind = "gradient";

TensorView checked(const GradientPieces& pieces, const TensorView& arena) {
  if (arena.dtype != pieces.dtype() || arena.elements() < pieces[pieces.size() - 1].end()) {
    throw Error(
        ErrorKind::usage,
        fmt::format("an arena of {} elements in {} for gradients that reach to element {} in {}", arena.elements(),
                    to_string(arena.dtype), pieces[pieces.size() - 1].end(), to_string(pieces.dtype())));
  }
  return arena;
}

std::uint64_t counted(const comm::Communicator& ranks) {
  return ranks.counters().total(comm::Operation::all_reduce, kGradientKind).payload_bytes;
}

}  // namespace

GradientSync::GradientSync(comm::Communicator& ranks, GradientPieces pieces, const TensorView& arena,
                           const SyncOptions& options, Stream communication)
    : ranks_(ranks),
      pieces_(std::move(pieces)),
      arena_(checked(pieces_, arena)),
      options_(options),
      schedule_(schedule_of(options, pieces_.as(options.wire.value_or(pieces_.dtype())))),
      turns_(ranks, pieces_, schedule_),
      communication_(communication),
      overlaps_(info_of(options.strategy).overlaps),
      begun_(device::place_of(communication), device::Timing::yes),
      reduced_(device::place_of(communication)),
      counted_before_(counted(ranks)) {
  if (ranks.size() == 1) return;
  require_agreement(ranks, "the gradients to reduce, and how", description());
  const bool copies = info_of(options.strategy).copies;
  const DType wire = options.wire.value_or(pieces_.dtype());
  if (copies || wire != pieces_.dtype()) {
    wire_.emplace(pieces_, arena_, wire, copies ? WireBuffer::Layout::dense : WireBuffer::Layout::as_in_arena,
                  communication);
  }
  const device::Timing timing = options.timing ? device::Timing::yes : device::Timing::no;
  ready_ = events(overlaps_ ? schedule_.size() : 1, communication, timing);
  if (options.timing) {
    started_ = events(schedule_.size(), communication, timing);
    ended_ = events(schedule_.size(), communication, timing);
  }
  for (int bucket = 0; bucket < schedule_.size(); ++bucket) labels_.push_back(fmt::format("bucket {}", bucket));
}

// One line for the strategy and one per piece: all ranks must have the same text.
std::string GradientSync::description() const {
  std::string text = fmt::format("strategy {}, buckets that end at {}, sent in {}\n", to_string(options_.strategy),
                                 schedule_.text(), to_string(options_.wire.value_or(pieces_.dtype())));
  for (int i = 0; i < pieces_.size(); ++i) {
    text += fmt::format("'{}' at {} of {} elements in {}\n", pieces_[i].name, pieces_[i].first, pieces_[i].elements,
                        to_string(pieces_.dtype()));
  }
  return text;
}

void GradientSync::begin(Stream compute) {
  turns_.begin();
  compute_ = compute;
  if (options_.timing && ranks_.size() > 1) begun_.record(compute);
}

void GradientSync::unused(int piece, Stream compute) {
  turns_.unused(piece);
  const TensorView slice = stretch(arena_, pieces_.first(piece), pieces_[piece].elements);
  device::fill_bytes(slice.data, 0, static_cast<std::size_t>(slice.elements()) * size_of(slice.dtype), compute);
  reduce_final(compute);
}

void GradientSync::grad_final(int piece, Stream compute) {
  turns_.take(piece);
  reduce_final(compute);
}

void GradientSync::reduce_final(Stream compute) {
  if (ranks_.size() == 1 || !overlaps_) return;
  while (const std::optional<int> bucket = turns_.next_bucket()) reduce(*bucket, compute);
}

void GradientSync::reduce(int bucket, Stream compute) {
  const int begin = schedule_.begin(bucket), end = schedule_.end(bucket);
  const auto at = static_cast<std::size_t>(bucket);
  if (overlaps_ || bucket == 0) {
    Event& ready = ready_[overlaps_ ? at : 0];
    ready.record(compute);
    wait_for(options_.observer, Wait::gradients_written, ready, communication_, bucket);
  }
  if (options_.timing) started_[at].record(communication_);
  if (wire_) wire_->pack(begin, end);
  ranks_.all_reduce(sent(bucket), comm::Reduction::sum, {kGradientKind, labels_[at]}, communication_);
  if (wire_) wire_->unpack(begin, end);
  if (options_.timing) ended_[at].record(communication_);
}

TensorView GradientSync::sent(int bucket) const {
  const int begin = schedule_.begin(bucket), end = schedule_.end(bucket);
  return wire_ ? wire_->view(begin, end) : stretch(arena_, pieces_.first(begin), pieces_.elements(begin, end));
}

void GradientSync::finish(Stream compute) {
  turns_.finish();
  ++steps_;
  if (ranks_.size() == 1) return;
  if (!overlaps_) {
    for (int bucket = 0; bucket < schedule_.size(); ++bucket) reduce(bucket, compute);
  }
  reduced_.record(communication_);
  wait_for(options_.observer, Wait::gradients_reduced, reduced_, compute);
  // On the plain stream the host itself has waited, so a failure is known by now: no optimizer may run after it.
  ranks_.throw_if_failed();
}

std::uint64_t GradientSync::expected_bytes() const {
  if (ranks_.size() == 1) return 0;
  std::int64_t elements = 0;
  for (int bucket = 0; bucket < schedule_.size(); ++bucket) elements += sent(bucket).elements();
  return steps_ * static_cast<std::uint64_t>(elements) * size_of(sent(0).dtype);
}

void GradientSync::check_bytes() const {
  const std::uint64_t found = counted(ranks_) - counted_before_;
  if (found == expected_bytes()) return;
  throw Error(
      ErrorKind::check,
      fmt::format("rank {} reduced {} bytes of gradients in {} steps of strategy {} and its schedule of {} buckets "
                  "makes {}: something else reduced under the purpose '{}', or a bucket was missed",
                  ranks_.rank(), found, steps_, to_string(options_.strategy), schedule_.size(), expected_bytes(),
                  kGradientKind));
}

BucketTimeline GradientSync::timeline(const Event& origin) const {
  if (!options_.timing || ranks_.size() == 1 || steps_ == 0) {
    throw Error(ErrorKind::usage, "no timeline of a reduction: it needs SyncOptions::timing, two ranks and a step");
  }
  const auto since_origin = [&origin](const Event& event) { return Seconds(elapsed(origin, event)); };
  BucketTimeline made;
  for (int bucket = 0; bucket < schedule_.size(); ++bucket) {
    const auto at = static_cast<std::size_t>(bucket);
    BucketTimes times;
    times.bytes = sent(bucket).elements() * static_cast<std::int64_t>(size_of(sent(bucket).dtype));
    times.ready = since_origin(ready_[overlaps_ ? at : 0]);
    times.start = since_origin(started_[at]);
    times.end = since_origin(ended_[at]);
    made.buckets.push_back(times);
  }
  return made;
}

}  // namespace syslab::parallel
