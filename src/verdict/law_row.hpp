// One law of one function of a submission, as `check` found it and `grade` reads it: the same fields in memory, in
// `check --json` and in a stored record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/finding.hpp"
#include "contract/outcome.hpp"
#include "core/lack.hpp"
#include "core/text/json.hpp"

namespace syslab::verdict {

struct LawRow {
  std::string law, experiment;
  Contract contract = Contract::handout;
  Outcome outcome = Outcome::not_run;
  Finding finding{};    // where it is wrong
  bool applies = true;  // false: it does not apply to this implementation, and was not run
  bool open = false;    // it needs what this Python lacks, and says nothing
  bool out_of_time = false;
  std::optional<Lack> lacks{};
  std::string message{};
  std::string input{};     // of a counterexample, by the names of what was drawn; Finding has it in a caller's words
  std::string check{};     // uid of what is stored about it; empty: nothing
  std::int64_t tries = 0;  // inputs that were searched; 0: not known
};

bool is_wrong(Outcome outcome);  // falsified, or ended without an answer

Json to_json(const LawRow& row);
// A field that is not there keeps its default. Error(store) on a word that is none of its kind.
LawRow law_row_of(const Json& object);
// Of the list `laws` of an object; none where there is no such list.
std::vector<LawRow> law_rows_of(const Json& object);

}  // namespace syslab::verdict
