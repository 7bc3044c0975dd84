#include "device/cuda/sm_clock.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "device/cuda/kernels.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

using kernels::ClockStamp;

// At most 2 % off with a timer resolution of a microsecond.
constexpr std::uint64_t kShortest = 50'000;

// No GPU is as fast.
constexpr double kFastest = 1e10;

}  // namespace

std::optional<double> median_rate(std::span<const ClockStamp> begin, std::span<const ClockStamp> end) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (begin[i].nanoseconds == 0 || end[i].nanoseconds < begin[i].nanoseconds + kShortest) continue;
    if (end[i].cycles <= begin[i].cycles) continue;
    const auto cycles = static_cast<double>(end[i].cycles - begin[i].cycles);
    const double rate = cycles * 1e9 / static_cast<double>(end[i].nanoseconds - begin[i].nanoseconds);
    if (rate <= kFastest) rates.push_back(rate);
  }
  if (rates.empty()) return std::nullopt;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

SmClock::SmClock(Stream stream, int stretches) : stream_(stream), stretches_(stretches) {
  if (stream.kind == Kind::cpu) return;
  multiprocessors_ = properties(place_of(stream)).multiprocessors;
  const auto stamps =
      static_cast<std::size_t>(2) * static_cast<std::size_t>(stretches) * static_cast<std::size_t>(multiprocessors_);
  stamps_ = Buffer(stamps * sizeof(ClockStamp), "clock stamps", stream);
  fill_bytes(stamps_.data(), 0, stamps_.bytes(), stream_);
}

void SmClock::begin(int stretch) { stamp(2 * stretch); }

void SmClock::end(int stretch) { stamp(2 * stretch + 1); }

void SmClock::stamp(int index) {
  if (index < 0 || index >= 2 * stretches_) throw Error(ErrorKind::internal, "a clock stretch out of range");
  if (stream_.kind == Kind::cpu) return;
  const CurrentDevice current(stream_);
  kernels::stamp_clocks(stamps_.as<ClockStamp>() + static_cast<std::ptrdiff_t>(index) * multiprocessors_,
                        multiprocessors_, stream_);
}

std::vector<std::optional<double>> SmClock::read() {
  std::vector<std::optional<double>> rates(static_cast<std::size_t>(stretches_));
  if (stream_.kind == Kind::cpu) return rates;
  std::vector<ClockStamp> stamps(stamps_.bytes() / sizeof(ClockStamp));
  copy_now(stamps.data(), stamps_.data(), stamps_.bytes(), stream_);
  fill_bytes(stamps_.data(), 0, stamps_.bytes(), stream_);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const auto each = static_cast<std::size_t>(multiprocessors_);
    const auto both = std::span<const ClockStamp>(stamps).subspan(2 * i * each, 2 * each);
    rates[i] = median_rate(both.first(each), both.last(each));
  }
  return rates;
}

}  // namespace syslab::device
