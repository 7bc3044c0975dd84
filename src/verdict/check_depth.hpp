// How far a check goes where nobody says otherwise: so many tries a law, while the time lasts that all share.
#pragma once

#include <chrono>

namespace syslab::verdict {

struct CheckDepth {
  int cases;
  std::chrono::seconds within;
};
inline constexpr CheckDepth kUsualDepth{100, std::chrono::seconds(20)}, kDeepDepth{1000, std::chrono::minutes(5)};
// Of `grade`: as many tries as the deep one, in a fifth of its time, so that fifty submissions of attention do not take
// two processors hours. Each try of a law of ranks trains on several, so that these are fewer.
inline constexpr CheckDepth kGradedDepth{1000, std::chrono::seconds(60)};
inline constexpr int kGradedTriesOfRanks = 50;

}  // namespace syslab::verdict
