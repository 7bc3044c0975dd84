// A hand-out as a whole: the evidence that its deliverables want, what is stored of it, and what comes next. What
// `run`, `plan` and `list` do where --handout stands alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "evidence/schedule.hpp"
#include "evidence/standing.hpp"
#include "session/context.hpp"
#include "session/stored_evidence.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

// No experiment is named: the hand-out's evidence says what is to be measured.
inline bool is_whole_handout(const SelectionOptions& options) {
  return options.names.empty() && !options.handout.empty();
}

// Error(usage) where an option was given (-a, --preset …) that only experiments that are named can follow.
void refuse_choices(const char* verb, const SelectionOptions& selection, const MeasuringOptions& measuring);
void refuse_choice(bool given, const char* verb, const SelectionOptions& selection, const char* option);

// How long a case may take where nothing else is said.
Nanoseconds usual_timeout();

Exit plan_handout(const Context& context, const PlanOptions& options);
Exit run_handout(const Context& context, const RunOptions& options);

struct Handout {
  std::string year;
  std::vector<evidence::Part> parts;
  std::vector<evidence::Demand> demands;
  plan::Plan frame;  // machine, --mine, seed: a plan without cases
};
Handout handout_of(const Context& context, const std::string& year, const plan::Selection& selection);

evidence::Standing standing_of(const Handout& handout, const StoredEvidence& stored);
// How far its deliverables are answered by what is stored; nothing is where there is no database.
std::pair<Handout, evidence::Standing> stood(const Context& context, const std::string& year);

// All steps in order, those of stored cases too: of predictions that no measurement changes.
evidence::Schedule schedule_of(const Context& context, const Handout& handout, const plan::Selection& selection,
                               bool laws);

// What is left to do of a step: neither stored, nor failed here.
plan::Plan rest_of(const Handout& handout, const evidence::Step& step, const StoredEvidence& stored);

// "2026: 71 of 85 deliverables, 112 of 137 points' worth".
std::string standing_text(const std::string& year, const evidence::Standing& standing);
Json to_json(const evidence::Standing& standing);

// Each reason why something cannot run here, once: "not here: needs a GPU: …: 24 cases of naive_ddp, fsdp".
std::vector<std::string> impossible_texts(const std::vector<evidence::Impossible>& all);

// Of a problem's parts: "flash_forward (b)", its points, and how far it is answered.
std::string parts_table(const Console& console, const Handout& handout, const evidence::Standing& standing);

}  // namespace syslab::cli
