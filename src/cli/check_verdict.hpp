// The end of `check --mine`: what was never tried, and in the last line the verdict with its warnings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/lack.hpp"
#include "core/text/units.hpp"
#include "plan/plan.hpp"
#include "session/context.hpp"
#include "store/store.hpp"
#include "verdict/gist.hpp"
#include "verdict/law_row.hpp"
#include "verdict/law_verdict.hpp"

namespace syslab::cli {

struct CheckVerdict {
  std::string year;             // of the hand-out
  bool beyond_decides = false;  // --contract full
  bool strict = false;          // --strict
  int cases = 0;                // tries a law
  Nanoseconds within{};         // that all laws together had for them; 0: as long as they took
  bool may_end_early = false;   // laws that were not begun are no sign that somebody stopped the run
  std::string until;            // for how long they went on; empty: no longer
  std::string chosen_by;        // "-k oracle": what left laws out; empty: nothing
};

// Reads what the run stored of each case of `plan`. `ended`: what the run as a whole came to.
Exit print_verdict(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan,
                   const CheckVerdict& asked, Exit ended);

struct JudgedLaw {
  Outcome outcome = Outcome::not_run;
  std::string message, counterexample;
  std::string check{};       // uid of what is stored
  bool out_of_time = false;  // no outcome: it was stopped at --timeout
  std::int64_t cases_run = 0;
  bool stopped = false;  // no outcome: a signal ended the run
  Finding finding{};
  bool applies = true;  // false: it does not apply to this implementation, and was not run
  // What a process of ours has found that this Python lacks, and for want of which it failed or was not tried.
  std::optional<Lack> lacks{};
};

// What the verdict's room is told of a law of the plan, by the hand-out of that year. `same`: of all laws that are
// judged together. `barely`: it held in fewer tries than a law has at the least.
verdict::LawFact fact_of(const plan::Plan& plan, const plan::PlannedCase& planned, const JudgedLaw& law,
                         std::string_view year, verdict::SameFindings& same, bool barely = false);

// Laws of experiments that ranks do together: each try starts none, but trains on several, and a depth's time would
// leave few.
bool is_of_ranks(const plan::PlannedCase& planned);

// The command that lets the causal mask decide, of Python classes on the CPU, whose official tests are of the full mask
// alone; empty where the mask was asked.
std::string mask_command(const plan::Plan& plan);

// "me: nothing was checked: …", of something with so many cases, so many attempts that have ended and so many that were
// neither skipped nor unsupported; empty where something was checked, or the run ended before all were looked at.
std::string nothing_checked(const std::string& name, std::int64_t cases, std::int64_t attempts, std::int64_t tried);

// What first calls took that count in no law's share of the time (worker/judged/first_calls.hpp).
double first_call_seconds(const store::Store& store, store::RowId run);

// By their numbers in the plan; none of laws that were not begun.
std::map<std::int64_t, JudgedLaw> judged_laws(const store::Store& store, store::RowId run);

// "dtype=fp32 mask=top_left seq_q=17": the drawn values, without RapidCheck's own order.
std::string input_of(const std::string& counterexample);

bool is_mine(const plan::Plan& plan, const plan::PlannedCase& planned);

}  // namespace syslab::cli
