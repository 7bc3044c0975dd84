#include "trials/paced_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "trials/collective_content.hpp"

namespace syslab::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kElement = sizeof(float);
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

void require(bool sound, const char* what, double value) {
  if (!sound) throw Error(ErrorKind::usage, fmt::format("{} of {} make no gradients to reduce", what, value));
}

GradientPieces equal_pieces(std::int64_t tensors, std::int64_t elements) {
  std::vector<Piece> pieces;
  for (std::int64_t i = 0; i < tensors; ++i) pieces.push_back({fmt::format("tensor {}", i), i * elements, elements});
  return GradientPieces(std::move(pieces), DType::f32);
}

}  // namespace

void require_gradients(const PacedOptions& options) {
  require(options.tensor_bytes >= kElement && options.tensor_bytes <= kMostBytes, "tensor_bytes",
          static_cast<double>(options.tensor_bytes));
  require(options.tensors >= 1 && options.tensors <= kMostBytes / options.tensor_bytes, "tensors",
          static_cast<double>(options.tensors));
  require(options.pace > 0 && std::isfinite(options.pace), "a pace", options.pace);
  require(options.bucket_bytes >= 1, "bucket_bytes", static_cast<double>(options.bucket_bytes));
}

PacedGradients::PacedGradients(comm::Communicator& ranks, const PacedOptions& options, const AffineTransfer& law,
                               device::Stream communication)
    : ranks_(ranks), options_(options), law_(law) {
  require_gradients(options);
  arena_ = device::Buffer(static_cast<std::size_t>(elements() * kElement), "paced gradients");
  const GradientPieces pieces = equal_pieces(options.tensors, options.tensor_bytes / kElement);
  sync_.emplace(ranks, pieces, TensorView(arena_.data(), DType::f32, {elements()}),
                SyncOptions{.strategy = Strategy::planned,
                            .schedule = schedule_by_cap(pieces, options.bucket_bytes),
                            .timing = ranks.size() > 1},
                communication);
}

std::int64_t PacedGradients::elements() const { return options_.tensors * (options_.tensor_bytes / kElement); }

void PacedGradients::refresh() {
  ++sample_;
  auto* numbers = arena_.as<float>();
  for (std::int64_t i = 0; i < elements(); ++i) {
    numbers[i] = static_cast<float>(content(static_cast<std::uint64_t>(i), ranks_.rank(), sample_));
  }
}

void PacedGradients::run(device::Stream compute) {
  const Seconds tensor(uniform().seconds_per_byte * static_cast<double>(options_.tensor_bytes));
  const bool several = ranks_.size() > 1;
  if (several) sync_->begin(compute);
  const Clock::time_point began = Clock::now();
  for (std::int64_t i = 0; i < options_.tensors; ++i) {
    const Clock::time_point final = began + std::chrono::duration_cast<Clock::duration>(tensor * (i + 1));
    if (Clock::now() < final) std::this_thread::sleep_until(final);
    if (several) sync_->grad_final(static_cast<int>(i), compute);
  }
  if (several) sync_->finish(compute);
}

UniformStep PacedGradients::uniform() const {
  return {.bytes = static_cast<double>(elements() * kElement),
          .transfer = law_,
          .seconds_per_byte = options_.pace / law_.bytes_per_second};
}

double PacedGradients::bucket_bytes() const {
  return static_cast<double>(elements() * kElement) / static_cast<double>(sync_->schedule().size());
}

double PacedGradients::error() const {
  const float* found = arena_.as<float>();
  double worst = 0;
  for (std::int64_t i = 0; i < elements(); ++i) {
    std::uint32_t sum = 0;
    for (int rank = 0; rank < ranks_.size(); ++rank) sum += content(static_cast<std::uint64_t>(i), rank, sample_);
    const double off = std::abs(static_cast<double>(found[i]) - sum);
    if (!(off <= worst)) worst = off;  // a NaN, too
  }
  return worst;
}

std::string PacedGradients::what() const {
  return fmt::format("{} tensors of {} bytes in {} buckets over {} ranks, sample {}", options_.tensors,
                     options_.tensor_bytes, sync_->schedule().size(), ranks_.size(), sample_);
}

}  // namespace syslab::parallel
