// Laws: properties that hold for every input, searched by RapidCheck with a budget, and replayable.
//
// A law is written in property_tests/ against its operator's Rung and bound to one implementation:
//
//   for (const check::Law& law : attention::laws(rung))      // property_tests/attention/laws.hpp
//     check::LawResult result = law.search({.contract = Contract::full, .seed = 7, .max_success = 100});
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace syslab::check {

// What the implementation promises. `handout`: powers of two ≥ 16, tolerance 1e-2, TF32 inside fp32 and atomics
// allowed. `full`: any shape, derived bounds, bitwise repeatability where the rung says deterministic.
enum class Contract { handout, full };
std::string_view to_string(Contract contract);
Contract parse_contract(std::string_view text);  // Error(usage) with the two names

enum class Outcome { passed, falsified, gave_up, error, not_run };
std::string_view to_string(Outcome outcome);

struct LawRequest {
  Contract contract = Contract::full;
  std::uint64_t seed = 1;
  int max_success = 100;  // cases to pass
  int max_size = 100;     // RapidCheck's size
  // Where that many hold, as many again, of another seed, until so much time is spent.
  std::chrono::nanoseconds search_time{0};
  // Where all hold, none begins once so much time is spent, `spent` since the search began (empty: by the wall clock),
  // if kFewestCases have held, or it is spent four times; 0: no such limit.
  std::chrono::nanoseconds most_time{0};
  std::function<std::chrono::nanoseconds()> spent;
  static constexpr int kFewestCases = 5;
  int shrink_tries = 500;
  std::chrono::milliseconds shrink_time{2000};
  std::string reproduce;  // replay this counterexample instead of searching
  // A process that ended lives again at the next call: its end is a failure to shrink, and not the end of the search.
  bool revives = false;
  // Where it holds, it is asked again, so often and for so long: a fault may strike now and then.
  int replay_tries = 1;
  std::chrono::milliseconds replay_time{5000};
};

struct LawResult {
  Outcome outcome = Outcome::not_run;
  std::int64_t cases_run = 0, shrinks_tried = 0, shrinks_taken = 0;
  std::uint64_t seed = 0;
  std::string reproduce;                              // RapidCheck's minimal string
  std::map<std::string, std::string> counterexample;  // generator name → value
  // Why it failed, or why it did not run: one line, and behind it, of a counterexample, what the law's owner says more.
  std::string message;
  std::string error_map;                         // of a counterexample: where it is wrong, as JSON; or empty
  std::optional<double> worst_error, tolerance;  // over all cases run, where worst relative to its tolerance
};

// Worst error seen while a law runs; law bodies report into it.
struct Observation {
  std::optional<double> worst_error, tolerance;
  void record(double error, double bound);  // keeps the pair with the largest error / bound
};

struct Law {
  std::string id;         // "attention.causal_prefix"
  std::string statement;  // one line
  std::function<LawResult(const LawRequest&)> search;
};

}  // namespace syslab::check
