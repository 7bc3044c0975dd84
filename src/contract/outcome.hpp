// How searching a law may end, and what the implementation promises.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace syslab {

// What the implementation promises. `handout`: powers of two ≥ 16, tolerance 1e-2, TF32 inside fp32 and atomics
// allowed. `full`: any shape, derived bounds, bitwise repeatability where the rung says deterministic.
enum class Contract { handout, full };
std::string_view to_string(Contract contract);
std::optional<Contract> contract_of(std::string_view word);
Contract parse_contract(std::string_view text);  // Error(usage) with the two names

enum class Outcome { passed, falsified, gave_up, error, not_run };
inline constexpr std::array kOutcomes{Outcome::passed, Outcome::falsified, Outcome::gave_up, Outcome::error,
                                      Outcome::not_run};
std::string_view to_string(Outcome outcome);
std::optional<Outcome> outcome_of(std::string_view word);

}  // namespace syslab
