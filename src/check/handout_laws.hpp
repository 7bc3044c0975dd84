// What the hand-out's own attention tests look at: whether the call is answered, O and the one saved L, and dQ, dK, dV.
// All other laws go beyond them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace syslab::check {

inline constexpr std::array<std::string_view, 4> kHandoutLaws{
    "attention.refusal", "attention.equals_oracle", "attention.lse_equals_oracle", "attention.gradients_equal_oracle"};

inline bool is_of_handout(std::string_view law) {
  return std::find(kHandoutLaws.begin(), kHandoutLaws.end(), law) != kHandoutLaws.end();
}

}  // namespace syslab::check
