// What a graded batch is written as: one table of all, and for each submission a page of evidence and what Gradescope
// reads. A page holds its own submission alone.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/device_kind.hpp"
#include "core/text/json.hpp"
#include "grade/rubric.hpp"
#include "store/store.hpp"

namespace syslab::grade {

struct Board;

struct Graded {
  std::string id;
  Json record;
  std::vector<ProblemScore> scores;
  std::string path{};  // as handed in
  double earned() const;
  double checked() const;     // points that were decided; the others are open
  std::string error() const;  // why nothing could be checked; empty: it was
};

struct PageOptions {
  int cases = 0;                        // tries a law; 0: `--as-graded`
  DeviceKind device = DeviceKind::cpu;  // of ranks
  bool seed_is_hidden = false;          // numbers and texts that come from hidden inputs are left out
  std::string walls_missing{};          // around what is judged, in words; empty: none
};

// "flash_forward (a)".
std::string item_name(const Problem& problem, const Item& item);

// In a line, of one that earned nothing: why nothing could be checked, or why its file cannot be imported; and whether
// it ran out of time. Else empty.
std::string note_of(const Graded& one);

enum class Audience {
  person,   // a cell a problem: "6 (+9 open)", or "open" if nothing of it is decided
  program,  // numbers alone: what a problem has earned, `PROBLEM.open` and `PROBLEM.possible`; `possible` of all
};

// student, name (with a roster), points, checked, open, each problem of which something is decided, note.
store::ResultSet table_of(const Rubric& rubric, const std::vector<Graded>& all, Audience audience,
                          const std::map<std::string, std::string>& roster = {});

// student, item, law, holds, replay: the command that tries a law again on what was handed in then, for appeals. For
// the instructor alone.
store::ResultSet checks_of(const std::vector<Graded>& all, const std::string& database);

// student, file, line, why, text: what a person should look at (grade/suspicions.hpp). For the instructor alone.
store::ResultSet suspicions_of(const std::vector<Graded>& all);

// Markdown. `boards`: those that the class sees (grade/board.hpp).
std::string evidence_page(const Rubric& rubric, const Graded& one, const PageOptions& options,
                          std::span<const Board> boards = {});
// results.json
std::string gradescope_results(const Rubric& rubric, const Graded& one, const PageOptions& options,
                               std::span<const Board> boards = {});
std::string junit(const Rubric& rubric, const std::vector<Graded>& all, const PageOptions& options);

}  // namespace syslab::grade
