#include "report/standing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "contract/outcome.hpp"
#include "contract/shortage.hpp"
#include "core/contains.hpp"
#include "core/text/json_text.hpp"
#include "report/cells.hpp"

namespace syslab::report {
namespace {

// How a row without a result ended; nothing if it has a result.
std::optional<std::string> no_result(const Table& table, std::size_t row) {
  const auto status = status_of(table, row);
  if (!status) {
    const auto outcome = outcome_of(plain(cell_of(table.result, row, "outcome")));
    return outcome == Outcome::not_run ? std::optional(std::string(to_string(*outcome))) : std::nullopt;
  }
  if (status == Status::ok || status == Status::oom) return std::nullopt;
  return std::string(to_string(*status));
}

// Rows without a result, and why they have none.
class Fruitless {
 public:
  void add(const std::string& status, const std::optional<Shortage>& needs) {
    ++endings_[status];
    if (!needs) {
      other_reasons_ = true;
    } else if (!least_ || needs->needed < least_->needed) {
      least_ = needs;
    }
  }
  bool empty() const { return endings_.empty(); }
  bool needs_more() const { return !other_reasons_; }  // of every row, or there is none
  // "not measured, needs 2 GPUs", which is what the least of them needs; "nothing was measured (3 timeout, 1 wrong)".
  std::string why() const {
    if (!other_reasons_) return "not measured, " + least_->text();
    std::vector<std::string> counts;
    for (const auto& [status, count] : endings_) counts.push_back(fmt::format("{} {}", count, status_word(status)));
    return fmt::format("nothing was measured ({})", fmt::join(counts, ", "));
  }

 private:
  std::map<std::string, int> endings_;
  std::optional<Shortage> least_;
  bool other_reasons_ = false;
};

// What the places of a deliverable have in them.
struct Evidence {
  bool exists = false, measured = false, left_out = false;
  Fruitless fruitless;
  std::vector<std::string> titles;
  std::string command;

  void add(const Table* table) {
    exists = true;
    if (has_result(*table)) {
      measured = true;
      titles.push_back(is_sentence(*table) ? "in words" : table->source.title);
    }
    for (std::size_t row = 0; row < table->result.rows.size(); ++row) {
      const auto status = no_result(*table, row);
      if (status) fruitless.add(*status, shortage_of(json_or_discarded(cell_of(table->result, row, "needs").text)));
    }
    if (command.empty()) command = table->source.command;
  }

  void add(const Picture* picture) {
    if (picture->left_out) {
      left_out = true;
      return;
    }
    exists = true;
    measured = measured || picture->missing.empty();
    if (picture->missing.empty()) titles.push_back(picture->title);
    if (command.empty()) command = "syslab run " + picture->experiment;
  }
};

// The tables and pictures that "experiment/what" names.
void add_named(std::vector<Place>& places, const std::vector<Shown>& shown, const std::string& name) {
  const std::size_t slash = name.find('/');
  const std::string experiment = name.substr(0, slash), what = name.substr(slash + 1);
  for (const Shown& one : shown) {
    if (one.experiment->id != experiment) continue;
    for (const Table& table : one.tables) {
      const bool shared = table.source.id == kLaws || contains(kWhereAny, table.source.id);
      const bool fits = what == table.source.id || (what == "*" && !shared && !is_sentence(table)) ||
                        (what == "sentences" && is_sentence(table));
      if (fits) places.emplace_back(&table);
    }
    if (what != "figures") continue;
    for (const Picture& picture : one.pictures) places.emplace_back(&picture);
  }
}

const std::set<std::string> kShownAsTable{"table", "code"};  // kinds of deliverables

// Everything that declares that it fills this part; its kind tells which of the part's deliverables.
void add_what_fills(std::vector<Place>& places, const std::vector<Shown>& shown, const Deliverable& wanted) {
  const std::string part = wanted.part.empty() ? "*" : wanted.part;
  const bool as_table = kShownAsTable.contains(wanted.kind);
  for (const Shown& one : shown) {
    for (const Table& table : one.tables) {
      const bool fits = is_sentence(table) ? in_words(wanted) : as_table;
      if (fits && contains(table.source.fills, part)) places.emplace_back(&table);
    }
    for (const Picture& picture : one.pictures) {
      if (wanted.kind == "figure" && contains(picture.fills, part)) places.emplace_back(&picture);
    }
  }
}

}  // namespace

bool has_result(const Table& table) {
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    if (!no_result(table, row)) return true;
  }
  return false;
}

std::vector<Place> places_of(const Deliverable& wanted, const std::vector<Shown>& shown) {
  std::vector<Place> places;
  for (const std::string& name : wanted.by) add_named(places, shown, name);
  add_what_fills(places, shown, wanted);
  return places;
}

Standing standing(const Deliverable& wanted, const std::vector<Shown>& shown, bool answers) {
  if (wanted.kind == "answer" && !answers) return {plain_text("your own words, in the place below")};
  Evidence evidence;
  for (const Place& place : places_of(wanted, shown)) {
    std::visit([&](const auto* what) { evidence.add(what); }, place);
  }
  if (evidence.measured) {
    std::vector<std::string> once;
    for (const std::string& title : evidence.titles) {
      if (std::find(once.begin(), once.end(), title) == once.end()) once.push_back(title);
    }
    return {plain_text(fmt::format("below: {}", fmt::join(once, ", ")))};
  }
  if (evidence.exists) {
    const std::string why = evidence.fruitless.empty() ? "not measured" : unmarked(evidence.fruitless.why());
    return {marked(why + ": `" + unmarked(evidence.command) + "`"), evidence.fruitless.needs_more()};
  }
  if (evidence.left_out) return {{{Style::emphasis, "left out, as all figures of this report are"}}};
  if (in_words(wanted)) return {{{Style::emphasis, "your own words"}}};
  return {{{Style::emphasis, "not shown by this report yet"}}};
}

}  // namespace syslab::report
