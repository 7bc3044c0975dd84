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

#include "contract/finding.hpp"
#include "contract/outcome.hpp"
#include "core/lack.hpp"

namespace syslab::check {

using syslab::Contract;
using syslab::Outcome;
using syslab::parse_contract;
using syslab::to_string;

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
  bool applies = true;  // false: it does not apply to this implementation, and was not run
  std::int64_t cases_run = 0, shrinks_tried = 0, shrinks_taken = 0;
  std::uint64_t seed = 0;
  std::string reproduce;                              // RapidCheck's minimal string
  std::map<std::string, std::string> counterexample;  // generator name → value
  // Why it failed, or why it did not run: one line, and behind it, of a counterexample, what the law's owner says more.
  std::string message;
  Finding finding;                                  // of one that failed
  std::chrono::nanoseconds looking_in_promised{0};  // what finding that out took, by the request's clock
  // What it could not be asked for, or failed for, where the implementation claims that its Python lacks something.
  std::optional<Lack> lacks;
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
  bool asked_by_handout = false;  // as LawInfo has it
};

}  // namespace syslab::check
