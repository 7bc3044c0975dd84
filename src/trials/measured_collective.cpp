#include "trials/measured_collective.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "core/error.hpp"
#include "core/rounding.hpp"
#include "core/text/named.hpp"
#include "device/memory.hpp"

namespace syslab::parallel {
namespace {

using comm::Operation;

constexpr std::array kCollectives{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                  Operation::broadcast};
constexpr comm::Purpose kCollectivePurpose{"benchmark", "collective"};
constexpr float kSmall = 0x1p-64F;  // of what is summed again and again

bool in_parts(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_gather;
}

constexpr std::int64_t kElementBytes = sizeof(float);

std::int64_t parts_of(Operation operation, int ranks) { return in_parts(operation) ? ranks : 1; }

std::int64_t elements_of(const device::Buffer& buffer) {
  return static_cast<std::int64_t>(buffer.bytes() / sizeof(float));
}

}  // namespace

Operation parse_collective(std::string_view name) { return find_named(kCollectives, "operation", name); }

double bus_factor(Operation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == Operation::all_reduce) return 2 * others;
  if (in_parts(operation)) return others;
  if (operation == Operation::broadcast) return 1;
  throw Error(ErrorKind::internal, fmt::format("{} has no bus bandwidth", to_string(operation)));
}

void check_payload(Operation operation, std::int64_t bytes, int ranks) {
  const std::int64_t parts = parts_of(operation, ranks);
  if (bytes >= parts * kElementBytes) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} bytes are less than an fp32{}; at least {} are wanted", bytes,
                          parts > 1 ? fmt::format(" for each of {} ranks", ranks) : "", parts * kElementBytes));
}

MeasuredCollective::MeasuredCollective(comm::Communicator& ranks, Operation operation, std::int64_t bytes,
                                       device::Stream stream, AllReduce instead)
    : ranks_(ranks),
      stream_(stream),
      instead_(std::move(instead)),
      content_{.operation = operation, .ranks = ranks.size(), .rank = ranks.rank()},
      awaits_(stream) {
  check_payload(operation, bytes, ranks.size());
  const std::int64_t parts = parts_of(operation, ranks.size());
  content_.count = bytes / kElementBytes / parts;
  const auto part = static_cast<std::size_t>(content_.count) * sizeof(float);
  all_ = device::Buffer(part * static_cast<std::size_t>(parts), "collective: whole", stream);
  if (in_parts(operation)) part_ = device::Buffer(part, "collective: part", stream);
}

std::int64_t MeasuredCollective::bytes() const { return static_cast<std::int64_t>(all_.bytes()); }

const device::Buffer& MeasuredCollective::result() const {
  return content_.operation == Operation::reduce_scatter ? part_ : all_;
}

void MeasuredCollective::refresh(int calls) {
  calls_ = calls;
  ++content_.sample;
  // In an all-gather, a rank's contribution is identified by its place in the whole; in a broadcast only the root's
  // counts.
  const device::Buffer& given = content_.operation == Operation::all_gather ? part_ : all_;
  fill_brought(given.as<float>(), elements_of(given), content_, calls > 1 ? kSmall : 1.0F, stream_);
  // Erases the result of the sample before, so that it cannot pass for this one's.
  if (in_parts(content_.operation)) device::fill_bytes(result().data(), 0xff, result().bytes(), stream_);
  device::synchronize(stream_);
}

void MeasuredCollective::call() {
  const auto elements = elements_of(all_);
  const TensorView all(all_.data(), DType::f32, {elements});
  const TensorView part(part_.data(), DType::f32, {content_.count});
  switch (content_.operation) {
    case Operation::all_reduce:
      if (instead_) return instead_(all, stream_);
      static_cast<void>(ranks_.all_reduce(all, comm::Reduction::sum, kCollectivePurpose, stream_));
      return;
    case Operation::reduce_scatter:
      static_cast<void>(ranks_.reduce_scatter(all, part, comm::Reduction::sum, kCollectivePurpose, stream_));
      return;
    case Operation::all_gather:
      static_cast<void>(ranks_.all_gather(part, all, kCollectivePurpose, stream_));
      return;
    default:
      static_cast<void>(ranks_.broadcast(all, CollectiveContent::kRoot, kCollectivePurpose, stream_));
  }
}

std::vector<device::Elements> MeasuredCollective::results() const {
  return {{.at = result().data(), .dtype = DType::f32, .count = elements_of(result())}};
}

double MeasuredCollective::error() const {
  double scale = calls_ > 1 ? static_cast<double>(kSmall) : 1.0;
  if (content_.operation == Operation::all_reduce) scale *= std::pow(static_cast<double>(ranks_.size()), calls_ - 1);
  return relative_error(result().as<float>(), elements_of(result()), content_, scale, stream_);
}

double MeasuredCollective::tolerance() const {
  const auto size = static_cast<unsigned>(ranks_.size());
  if (content_.operation != Operation::all_reduce || calls_ == 1 || std::has_single_bit(size)) return 0;
  return gamma(static_cast<std::int64_t>(calls_ - 1) * (ranks_.size() - 1), unit_roundoff(DType::f32));
}

std::string MeasuredCollective::what() const {
  return fmt::format("{} of {} fp32 elements over {} ranks, sample {}", to_string(content_.operation),
                     elements_of(all_), ranks_.size(), content_.sample);
}

}  // namespace syslab::parallel
