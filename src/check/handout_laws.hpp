// What the hand-out's own tests look at. Of attention: whether the call is answered, O and the one saved L, and dQ, dK,
// dV. Of ranks: that they begin alike, end as one process does, and wait for what travels. Of these families all other
// laws go beyond them; other families have laws that no test of a hand-out is about.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace syslab::check {

inline constexpr std::array kHandoutLaws = std::to_array<std::string_view>(
    {"attention.refusal", "attention.equals_oracle", "attention.lse_equals_oracle", "attention.gradients_equal_oracle",
     "ddp.shares_parameters", "ddp.equals_one_process", "ddp.tied_weights", "ddp.waits", "sharded.equals_one_process",
     "sharded.adamw", "sharded.tied_weights", "sharded.waits", "fsdp.equals_one_process", "fsdp.waits"});

inline bool is_of_handout(std::string_view law) {
  return std::find(kHandoutLaws.begin(), kHandoutLaws.end(), law) != kHandoutLaws.end();
}

inline bool is_of_handout_family(std::string_view law) {
  return law.starts_with("attention.") || law.starts_with("ddp.") || law.starts_with("sharded.") ||
         law.starts_with("fsdp.");
}

}  // namespace syslab::check
