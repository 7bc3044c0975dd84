// The values that a contract and a law's wants leave, before a rung is asked what it takes of them.
#pragma once

#include <cstdint>

#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

// Multiply-adds of one product, all heads: keeps a case below some ten milliseconds on one core.
inline constexpr std::int64_t kMostVolume = 1'100'000;
// Every length up to here is drawn with every other.
inline constexpr std::int64_t kMostOfBoth = 257;
// What the hand-out's tests draw, tests/test_attention.py: four times as much as kMostVolume.
inline constexpr std::int64_t kTestsBatch = 4, kTestsLength = 128, kTestsWidth = 64;

// Of somebody's own, what its author answers for: the hand-out, or what was declared.
bool is_promised(const Candidate& rung, check::Contract contract);

Menu contract_menu(const Candidate& rung, check::Contract contract, const Wants& wants);

}  // namespace syslab::attention
