#include "contract/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace syslab {

std::string_view to_string(Contract contract) { return contract == Contract::handout ? "handout" : "full"; }

std::optional<Contract> contract_of(std::string_view word) {
  for (const Contract one : {Contract::handout, Contract::full}) {
    if (to_string(one) == word) return one;
  }
  return std::nullopt;
}

Contract parse_contract(std::string_view text) {
  if (const auto contract = contract_of(text)) return *contract;
  throw Error(ErrorKind::usage, fmt::format("unknown contract '{}'; use 'handout' or 'full'", text));
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::falsified:
      return "falsified";
    case Outcome::gave_up:
      return "gave_up";
    case Outcome::error:
      return "error";
    case Outcome::not_run:
      return "not_run";
  }
  return "?";
}

std::optional<Outcome> outcome_of(std::string_view word) {
  const auto found = std::ranges::find(kOutcomes, word, [](Outcome one) { return to_string(one); });
  return found == kOutcomes.end() ? std::nullopt : std::optional(*found);
}

}  // namespace syslab
