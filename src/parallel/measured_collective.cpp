#include "parallel/measured_collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/rounding.hpp"
#include "core/text.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {
namespace {

using comm::Operation;

constexpr std::array kCollectives{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                  Operation::broadcast};
constexpr comm::Purpose kPurpose{"benchmark", "collective"};
constexpr int kRoot = 0;
constexpr float kSmall = 0x1p-64F;  // of what is summed again and again

bool in_parts(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_gather;
}

}  // namespace

Operation parse_collective(std::string_view name) {
  std::vector<std::string> names;
  for (const Operation operation : kCollectives) {
    if (to_string(operation) == name) return operation;
    names.emplace_back(to_string(operation));
  }
  throw Error(ErrorKind::usage, unknown_name("operation", std::string(name), names));
}

double bus_factor(Operation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == Operation::all_reduce) return 2 * others;
  if (in_parts(operation)) return others;
  if (operation == Operation::broadcast) return 1;
  throw Error(ErrorKind::internal, fmt::format("{} has no bus bandwidth", to_string(operation)));
}

// The top bits of a product by an odd constant (Knuth's multiplicative hash): neighbours in element, rank and sample
// differ, so that a part in another's place shows.
std::uint32_t content(std::uint64_t element, int rank, std::uint64_t sample) {
  const auto mixed = static_cast<std::uint32_t>(element) * 0x9e37'79b1U +
                     static_cast<std::uint32_t>(rank) * 0x85eb'ca6bU +
                     static_cast<std::uint32_t>(sample) * 0xc2b2'ae35U;
  return mixed >> 24;
}

MeasuredCollective::MeasuredCollective(comm::Communicator& ranks, Operation operation, std::int64_t bytes,
                                       device::Stream stream, AllReduce instead)
    : ranks_(ranks), operation_(operation), stream_(stream), instead_(std::move(instead)) {
  const std::int64_t parts = in_parts(operation) ? ranks.size() : 1;
  count_ = bytes / static_cast<std::int64_t>(sizeof(float)) / parts;
  if (count_ < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} bytes are less than an fp32 for each of {} ranks; at least {} are wanted", bytes,
                            ranks.size(), parts * 4));
  }
  const auto part = static_cast<std::size_t>(count_) * sizeof(float);
  all_ = device::Buffer(part * static_cast<std::size_t>(parts), "collective: whole", stream);
  if (in_parts(operation)) part_ = device::Buffer(part, "collective: part", stream);
}

std::int64_t MeasuredCollective::bytes() const { return static_cast<std::int64_t>(all_.bytes()); }

std::int64_t MeasuredCollective::result_elements() const {
  const std::size_t bytes = operation_ == Operation::reduce_scatter ? part_.bytes() : all_.bytes();
  return static_cast<std::int64_t>(bytes / sizeof(float));
}

void MeasuredCollective::refresh(int calls) {
  calls_ = calls;
  ++sample_;
  device::Buffer& given = operation_ == Operation::all_gather ? part_ : all_;
  const auto elements = static_cast<std::int64_t>(given.bytes() / sizeof(float));
  const bool there = stream_.kind != device::Kind::cpu;
  if (there) staged_.resize(given.bytes() / sizeof(float));
  float* numbers = there ? staged_.data() : given.as<float>();
  // What an all-gather's rank brings is told by its place in the whole; of a broadcast, only the root's counts.
  const float scale = calls > 1 ? kSmall : 1.0F;
  for (std::int64_t i = 0; i < elements; ++i) {
    numbers[i] = scale * static_cast<float>(content(static_cast<std::uint64_t>(i), ranks_.rank(), sample_));
  }
  if (there) device::copy_now(given.data(), numbers, given.bytes(), stream_);
  // A result that nobody writes must not be that of the sample before.
  if (operation_ == Operation::reduce_scatter) device::fill_bytes(part_.data(), 0xff, part_.bytes(), stream_);
  if (operation_ == Operation::all_gather) device::fill_bytes(all_.data(), 0xff, all_.bytes(), stream_);
  device::synchronize(stream_);
}

void MeasuredCollective::call() {
  const auto elements = static_cast<std::int64_t>(all_.bytes() / sizeof(float));
  const TensorView all(all_.data(), DType::f32, {elements});
  const TensorView part(part_.data(), DType::f32, {count_});
  switch (operation_) {
    case Operation::all_reduce:
      if (instead_) return instead_(all, stream_);
      static_cast<void>(ranks_.all_reduce(all, comm::Reduction::sum, kPurpose, stream_));
      return;
    case Operation::reduce_scatter:
      static_cast<void>(ranks_.reduce_scatter(all, part, comm::Reduction::sum, kPurpose, stream_));
      return;
    case Operation::all_gather:
      static_cast<void>(ranks_.all_gather(part, all, kPurpose, stream_));
      return;
    default:
      static_cast<void>(ranks_.broadcast(all, kRoot, kPurpose, stream_));
  }
}

double MeasuredCollective::expected(std::int64_t element) const {
  const auto at = static_cast<std::uint64_t>(element);
  const auto sum = [&](std::uint64_t place) {
    std::uint32_t total = 0;
    for (int rank = 0; rank < ranks_.size(); ++rank) total += content(place, rank, sample_);
    return static_cast<double>(total);
  };
  switch (operation_) {
    case Operation::all_reduce:
      return sum(at);
    case Operation::reduce_scatter:
      return sum(at + static_cast<std::uint64_t>(ranks_.rank()) * static_cast<std::uint64_t>(count_));
    case Operation::all_gather:
      return content(at % static_cast<std::uint64_t>(count_), static_cast<int>(element / count_), sample_);
    default:
      return content(at, kRoot, sample_);
  }
}

double MeasuredCollective::error() {
  const device::Buffer& result = operation_ == Operation::reduce_scatter ? part_ : all_;
  const float* found = result.as<float>();
  if (stream_.kind != device::Kind::cpu) {
    staged_.resize(result.bytes() / sizeof(float));
    device::copy_now(staged_.data(), result.data(), result.bytes(), stream_);
    found = staged_.data();
  }
  double scale = calls_ > 1 ? static_cast<double>(kSmall) : 1.0;
  if (operation_ == Operation::all_reduce) scale *= std::pow(static_cast<double>(ranks_.size()), calls_ - 1);
  double worst = 0, largest = 0;
  const std::int64_t elements = result_elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    const double wanted = scale * expected(i);
    const double off = std::abs(static_cast<double>(found[i]) - wanted);
    if (!(off <= worst)) worst = off;
    if (std::isnan(off)) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, wanted);
  }
  return worst == 0 ? 0 : largest > 0 ? worst / largest : std::numeric_limits<double>::infinity();
}

double MeasuredCollective::tolerance() const {
  const auto size = static_cast<unsigned>(ranks_.size());
  if (operation_ != Operation::all_reduce || calls_ == 1 || std::has_single_bit(size)) return 0;
  return gamma(static_cast<std::int64_t>(calls_ - 1) * (ranks_.size() - 1), unit_roundoff(DType::f32));
}

std::string MeasuredCollective::what() const {
  return fmt::format("{} of {} fp32 elements over {} ranks, sample {}", to_string(operation_),
                     all_.bytes() / sizeof(float), ranks_.size(), sample_);
}

}  // namespace syslab::parallel
