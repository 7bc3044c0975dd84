// The state of a deliverable: answered below, or not measured, with the command that would measure it.
#pragma once

#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include "registry/experiment.hpp"
#include "report/deliverables.hpp"
#include "report/document.hpp"

namespace syslab::report {

// Tables that all experiments share; those of the second kind are shown only
constexpr std::string_view kLaws = "laws";
// Where they have rows.
constexpr std::array<std::string_view, 6> kWhereAny{"not_passed", "comparisons", "comparisons_of_rates",
                                                    "kernels",    "launched",    "published"};
// The first of them in a sentence, for below a hand-in's table.
constexpr std::string_view kNotPassedSaid = "not_passed_said";

// What an experiment has to show.
struct Shown {
  const registry::Experiment* experiment;
  std::vector<Table> tables;
  std::vector<Picture> pictures;
};

inline bool is_sentence(const Table& table) { return !table.source.sentence.empty(); }
inline bool in_words(const Deliverable& wanted) { return wanted.kind == "answer" || wanted.kind == "derivation"; }

// True if a row holds a result. Running out of memory is one; a row without a status is one too, unless it is of a law
// that was not reached.
bool has_result(const Table& table);

// The tables (sentences among them) and pictures that show a deliverable: those it names, then those that say they fill
// its part.
using Place = std::variant<const Table*, const Picture*>;
std::vector<Place> places_of(const Deliverable& wanted, const std::vector<Shown>& shown);

// "below: Speeds"; where nothing holds a result: that nothing was measured, with the command that would, or what it
// needs where every row says that it needs more GPUs or ranks than there were.
struct Standing {
  Text text;
  bool missing = false;  // nothing was tried, or nothing could be on so few GPUs or ranks
};
// `answers`: ReportOptions.
Standing standing(const Deliverable& wanted, const std::vector<Shown>& shown, bool answers);

}  // namespace syslab::report
