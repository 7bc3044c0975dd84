// How tests run laws: with CI's budget, and with the counterexample in the failure's text.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>

#include "check/law.hpp"

namespace syslab::property {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Cheap and repeatable by default. For a night of searching:
//   SYSLAB_LAW_TIMES=50 SYSLAB_LAW_SEED=7 build/property_tests/laws_attention
// and where every case costs twenty times as much, as under a sanitizer, with at most SYSLAB_LAW_MOST cases a law.
inline check::LawRequest ci_request(check::Contract contract, int cases) {
  check::LawRequest request;
  request.contract = contract;
  request.seed = from_environment("SYSLAB_LAW_SEED", 2026);
  request.max_success = cases * static_cast<int>(from_environment("SYSLAB_LAW_TIMES", 1));
  request.max_success = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(request.max_success),
                                                                 from_environment("SYSLAB_LAW_MOST", UINT64_MAX)));
  return request;
}

// What to print when a law does not end as a test wants: all that `replay` needs, and what a reader wants to know.
inline std::string story(const check::Law& law, const check::LawResult& result) {
  std::string text = law.id + ": " + law.statement + "\n" + std::string(to_string(result.outcome)) + " after " +
                     std::to_string(result.cases_run) + " cases: " + result.message + "\n";
  for (const auto& [name, value] : result.counterexample) text += "  " + name + " = " + value + "\n";
  if (!result.reproduce.empty()) text += "  " + result.reproduce + "\n";
  return text;
}

}  // namespace syslab::property
