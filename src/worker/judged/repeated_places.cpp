#include "worker/judged/repeated_places.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace syslab::worker {
namespace {

constexpr std::size_t kMostPlaces = 1 << 14;
constexpr std::size_t kEarlierCalls = 16;
constexpr std::size_t kWord = sizeof(std::uint64_t);

std::vector<std::uint64_t> values_that_occur_twice(std::vector<std::uint64_t> values) {
  std::ranges::sort(values);
  std::vector<std::uint64_t> twice;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] == values[i - 1] && (twice.empty() || twice.back() != values[i])) twice.push_back(values[i]);
  }
  return twice;
}

}  // namespace

RepeatedPlaces::RepeatedPlaces(std::size_t bytes, std::size_t item_bytes)
    : width_(item_bytes < sizeof(float) ? kWord : std::min(item_bytes, kWord)) {
  const std::size_t step = std::max(item_bytes, width_);
  const std::size_t all = bytes / step, looked_at = std::min(all, kMostPlaces);
  for (std::size_t i = 0; i < looked_at; ++i) {
    const std::size_t share = all / looked_at;
    places_.push_back((i * share + (i * 0x9E3779B9U) % share) * step);  // not one in so many: columns have a period
  }
}

double RepeatedPlaces::take(std::span<const std::byte> content) {
  std::vector<std::uint64_t> values(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) std::memcpy(&values[i], content.data() + places_[i], width_);
  const std::vector<std::uint64_t> twice = values_that_occur_twice(values);
  std::size_t again = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool came = std::ranges::any_of(kept_, [&](const auto& earlier) { return earlier[i] == values[i]; });
    again += came && !std::ranges::binary_search(twice, values[i]) ? 1 : 0;
  }
  const double part = values.empty() ? 0 : static_cast<double>(again) / static_cast<double>(values.size());
  if (kept_.size() < kEarlierCalls) {
    kept_.push_back(std::move(values));
  } else {
    kept_[std::exchange(next_, (next_ + 1) % kEarlierCalls)] = std::move(values);
  }
  return part;
}

}  // namespace syslab::worker
