// What the laws of operators share that the hand-out's tests are about: a rung under a contract, with the hand-out's
// tolerances where they are wider, and an operator's table of such laws.
//
//   using Subject = property::Contracted<Rung>;
//   constexpr property::ContractedLaw<Rung> kEntries[] = {{"rope.equals_oracle", "y is within …", equals_oracle,
//   true}}; std::vector<check::Law> laws(const Rung& rung) {
//     return property::bound(kEntries, rung, property::search_contracted<Rung>);
//   }
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "check/search.hpp"
#include "property_tests/law_table.hpp"
#include "property_tests/left_out.hpp"
#include "property_tests/on_device.hpp"

namespace syslab::property {

template <typename Rung>
struct Contracted {
  const Rung& rung;
  check::Contract contract;

  // What is said to repeat itself must do so to the bit.
  bool exact() const { return contract == check::Contract::full && rung.deterministic; }
  // What an element may be off, from the derived bounds and the exact values.
  std::vector<double> allowed(std::vector<double> derived, const std::vector<double>& expected) const {
    for (std::size_t i = 0; i < derived.size() && contract == check::Contract::handout; ++i) {
      derived[i] = std::max(derived[i], 1e-2 * (1 + std::abs(expected[i])));  // rtol and atol of the hand-out's tests
    }
    return derived;
  }
  template <typename Expected>
  std::vector<double> allowed(const Expected& expected) const {
    return allowed(expected.tolerance, expected.value);
  }
};

template <typename Rung>
struct ContractedLaw {
  const char* id;
  const char* statement;
  void (*body)(const Contracted<Rung>&, check::Observation&);
  bool against_oracle = false;
};

template <typename Rung>
check::LawResult search_contracted(const ContractedLaw<Rung>& law, const Rung& rung, const check::LawRequest& request) {
  if (!rung.unavailable.empty()) return does_not_apply(rung.name + " " + rung.unavailable);
  if (const auto reason = OnDevice::refusal(rung.device)) return does_not_apply(rung.name + " " + *reason);
  const Contracted<Rung> subject{rung, request.contract};
  return with_left_out(
      check::search(law.id, request, [&](check::Observation& observation) { law.body(subject, observation); }), rung,
      request);
}

}  // namespace syslab::property
