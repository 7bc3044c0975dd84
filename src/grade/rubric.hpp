// What earns which points: a rubric (TOML; tools/rubric/rubric-2026.toml says how it is written) and what it makes of
// what `check` found out about a submission.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/outcome.hpp"
#include "core/text/json.hpp"

namespace syslab::grade {

struct Item {
  std::string part;  // "a"; empty where the problem has but one
  double points = 0;
  bool written = false;              // graded by a person
  std::string function, experiment;  // else: searched by the laws of these
  Contract contract = Contract::handout;
  std::vector<std::string> laws{"*"};          // globs
  std::vector<std::string> only_with_another;  // globs: of these, what holds earns nothing unless another law holds
  bool all_or_nothing = false;                 // credit = "all"
  // Or timed beside this rung: grade/timing.hpp. Empty: it is not.
  std::string reference;
  std::vector<std::string> at;  // "seq=512": the one case that is timed
  std::vector<double> within;   // times the reference's time; each that is kept earns its share
  int launches = 5;             // fresh processes a side
  bool is_timed() const { return !reference.empty(); }
};

struct Problem {
  std::string id, title;
  double points = 0;
  std::vector<Item> items;
};

struct Rubric {
  std::string handout;
  std::vector<Problem> problems;
  double points() const;
  std::vector<std::string> experiments() const;  // each once; whose laws earn points, or qualify what is timed
  std::vector<Item> timed() const;
  std::vector<std::string> laws_beyond_handout()
      const;  // globs of the items that ask for more than the hand-out's tests
};

// Error(usage) with the line for what is not TOML, for unknown keys and for points that do not add up. `name` is that
// of the file, for messages.
Rubric parse_rubric(std::string_view text, const std::string& name);
// The one that is shipped for "2025" or "2026"; Error(usage) for another year.
Rubric default_rubric(const std::string& handout);

struct Law {
  std::string name, message, input;
  std::string check;  // uid of what was stored about it; empty: nothing
  bool held = false;
  bool out_of_time = false;
  bool open = false;       // it needs what this Python lacks, and says nothing
  std::string lacks;       // which is that, in words
  std::string cause{};     // what it looks like (contract/finding.hpp); empty: nothing known
  std::int64_t tries = 0;  // inputs that were searched; 0: not known
};

struct ItemScore {
  const Item* item = nullptr;
  double earned = 0;
  bool open = false;       // neither earned nor lost: written, or could not be checked here
  std::string why;         // one line: "not implemented", "needs a GPU"
  std::string told;        // what the submission's code said of it, or what may quote that; may tell of hidden inputs
  std::vector<Law> laws;   // that decided
  bool lacking = false;    // open, since this Python lacks what it needs
  bool failed = false;     // before any law was looked at: not implemented, wrong where it was timed
  bool fails = false;      // its function fails where it is imported or first called
  bool at_import = false;  // `told` was found out before there were inputs, and can tell nothing of them
  std::string text() const { return told.empty() ? why : why + ": " + told; }
  // It has all that it asks for. An item of 0 points, too, asks for something.
  bool is_full() const;
};

struct ProblemScore {
  const Problem* problem = nullptr;
  std::vector<ItemScore> items;
  double earned() const;
  double checked() const;  // points of items that are not open
};

// `record` is the last line of `check --json` of a submission (cli/check_submission.cpp), or {"error": "…"} of one that
// could not be checked, which earns nothing. Points are rounded to hundredths.
std::vector<ProblemScore> score(const Rubric& rubric, const Json& record);

}  // namespace syslab::grade
