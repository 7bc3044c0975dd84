// What `claim` and `verify` share: a claim's two sides measured in turns in every case, and stored as a comparison is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "claim/claim_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "compare/sweep.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

// How often and how long; the rest is the claim's.
struct ClaimLimits {
  std::optional<int> launches;
  std::optional<std::string> budget;
  std::string timeout, memory_limit, label;
};

// A is the slower side. `question` gets the experiments' ids and the protocol's name.
plan::ComparisonPlan plan_of(const Context& context, const claim::Statement& statement, claim::Question& question,
                             const SelectionOptions& files);

struct ClaimRun {
  std::vector<verdict::MeasuredSpeed> measured;  // a point of the plan each; those not reached say so
  std::vector<claim::Case> cases;                // with their samples
  // What the database has of laws searched with the very code that was measured, by implementation.
  std::map<std::string, std::vector<claim::Law>> laws;
  std::string run_uid;
  stats::TimingReason code = stats::TimingReason::none;  // why a case has no time, where that has one
  std::string what_would_do;  // where it is unclear: a sentence on what would make it clear, or nothing
  // What `compare` would say of interruptions and of sides that did not end well, but for a faster side that is wrong:
  // that refutes the claim.
  Exit exit = Exit::well;
};
// `tolerance`: as verdict::SpeedBorder has it.
ClaimRun measure(const Context& context, const std::string& verb, const plan::ComparisonPlan& plan,
                 const claim::File& file, double tolerance, const ClaimLimits& limits);
// Why there is no time, of the cases that have none and of which `finding` does not speak: a line each.
std::string other_failures(const std::vector<verdict::MeasuredSpeed>& measured, const verdict::SpeedFinding& finding);

// What the verdict is to be told with, a line each.
std::string warnings_of(const std::vector<claim::Case>& cases);

claim::Side side_of(const plan::ComparisonPlan& plan, char side);

// The cases of a plan before they are measured: experiment, version and axes.
std::vector<claim::Case> cases_of(const plan::ComparisonPlan& plan);

// Fills in what the claim says of the machine and the program: those here.
void take_machine(claim::File& file);

// SHA-256 of the files behind --reference and --inputs, by option.
std::map<std::string, std::string> digests_of(const plan::ComparisonPlan& plan);

Exit exit_of(verdict::SpeedVerdict verdict);

// For a terminal: a line a case, whose numbers compare with the claim's border as printed. `claimed`: what the file's
// samples say of the same cases; null: there is no file.
std::string case_table(const Console& console, const std::vector<verdict::MeasuredSpeed>& measured,
                       const verdict::SpeedFinding& finding, double log_border, const verdict::SpeedFinding* claimed);

}  // namespace syslab::cli
