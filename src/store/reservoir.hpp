// Which samples of an attempt are kept when there are too many to store.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syslab::store {

inline constexpr std::int64_t kMaxSamplesPerAttempt = 50'000;

// Shares `limit` among series of the given sizes so that short ones stay whole: every series gets what it asks for or
// the same level (water filling). The sum is min(limit, sum of sizes).
std::vector<std::int64_t> sample_quotas(std::span<const std::int64_t> sizes, std::int64_t limit);

// `count` of 0 … size−1, ascending, every subset equally likely; the same for the same seed. Source: Knuth, TAOCP 2,
// 3.4.2, algorithm S.
std::vector<std::int64_t> choose_indices(std::int64_t size, std::int64_t count, std::uint64_t seed);

}  // namespace syslab::store
