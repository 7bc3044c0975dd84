#include "store/reservoir.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace syslab::store {

std::vector<std::int64_t> sample_quotas(std::span<const std::int64_t> sizes, std::int64_t limit) {
  std::vector<std::size_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::sort(by_size, {}, [&](std::size_t i) { return sizes[i]; });

  std::vector<std::int64_t> quotas(sizes.size());
  std::int64_t left = limit;
  for (std::size_t i = 0; i < by_size.size(); ++i) {
    const auto sharers = static_cast<std::int64_t>(by_size.size() - i);
    const std::int64_t quota = std::min(sizes[by_size[i]], left / sharers);
    quotas[by_size[i]] = quota;
    left -= quota;
  }
  return quotas;
}

std::vector<std::int64_t> choose_indices(std::int64_t size, std::int64_t count, std::uint64_t seed) {
  // mt19937_64's sequence is fixed by the standard, the distributions are not: draw the range by hand. The bias of the
  // remainder is below size / 2^64.
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < size && count > 0; ++i) {
    const auto remaining = static_cast<std::uint64_t>(size - i);
    if (random() % remaining < static_cast<std::uint64_t>(count)) {
      chosen.push_back(i);
      --count;
    }
  }
  return chosen;
}

}  // namespace syslab::store
