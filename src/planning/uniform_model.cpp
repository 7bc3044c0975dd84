#include "planning/uniform_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

void require_sound(const UniformStep& step) {
  if (step.bytes > 0 && step.transfer.overhead.count() >= 0 && step.transfer.bytes_per_second > 0 &&
      step.seconds_per_byte > 0) {
    return;
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("{} bytes of gradients, {} s a byte, sent with an overhead of {} s at {} bytes/s: numbers "
                  "above zero are wanted",
                  step.bytes, step.seconds_per_byte, step.transfer.overhead.count(), step.transfer.bytes_per_second));
}

}  // namespace

Seconds exposed(const UniformStep& step, double bucket_bytes) {
  require_sound(step);
  if (!(bucket_bytes > 0) || bucket_bytes > step.bytes) {
    throw Error(ErrorKind::usage, fmt::format("buckets of {} bytes of {} in all", bucket_bytes, step.bytes));
  }
  const Seconds one = step.transfer.time(bucket_bytes);
  const Seconds lost = one - Seconds(bucket_bytes * step.seconds_per_byte);  // a bucket, against computing the next
  return one + std::max(Seconds(0), (step.bytes / bucket_bytes - 1) * lost);
}

double best_bucket_bytes(const UniformStep& step) {
  require_sound(step);
  const double overhead = step.transfer.overhead.count();
  const double ratio = step.seconds_per_byte * step.transfer.bytes_per_second;  // g·w
  const double saturated = std::sqrt(step.bytes * overhead / step.seconds_per_byte);
  const double paced = ratio > 1 ? overhead * step.transfer.bytes_per_second / (ratio - 1) : step.bytes;
  return std::min({saturated, paced, step.bytes});
}

}  // namespace syslab::parallel
