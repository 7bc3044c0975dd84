// What earns which points: a rubric (TOML; tools/rubric/rubric-2026.toml says how it is written) and what it makes of
// what `check` found out about a submission.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"

namespace syslab::grade {

struct Item {
  std::string part;  // "a"; empty where the problem has but one
  double points = 0;
  bool written = false;              // graded by a person
  std::string function, experiment;  // else: searched by the laws of these
  std::string contract = "handout";
  std::vector<std::string> laws{"*"};  // globs
  bool all_or_nothing = false;         // credit = "all"
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
  std::vector<std::string> experiments() const;  // whose laws earn points, each once
};

// Error(usage) with the line for what is not TOML, for unknown keys and for points that do not add up. `name` is that
// of the file, for messages.
Rubric parse_rubric(std::string_view text, const std::string& name);
// The one that is shipped for "2025" or "2026"; Error(usage) for another year.
Rubric default_rubric(const std::string& handout);

struct Law {
  std::string name, message, input;
  bool held = false;
};

struct ItemScore {
  const Item* item = nullptr;
  double earned = 0;
  bool open = false;      // neither earned nor lost: written, or could not be checked here
  std::string why;        // one line: "not implemented", "needs a GPU"
  std::vector<Law> laws;  // that decided
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
