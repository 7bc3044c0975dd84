#include "grade/rubric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "grade/record.hpp"
#include "grade/timing.hpp"
#include "submission/adapters.hpp"
#include "verdict/law_verdict.hpp"

namespace syslab::grade {
namespace {

constexpr double kSame = 1e-9;

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void fail(const toml::node& at, const std::string& what) const {
    throw Error(ErrorKind::usage, fmt::format("{}, line {}: {}", name_, at.source().begin.line, one_line(what)));
  }

  void only(const toml::table& table, std::initializer_list<std::string_view> known) const {
    const std::vector<std::string> names(known.begin(), known.end());
    for (const auto& [key, value] : table) {
      if (std::ranges::find(names, key.str()) == names.end()) fail(value, unknown_name("key", key.str(), names));
    }
  }

  std::string text(const toml::table& table, std::string_view key, std::optional<std::string> otherwise) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr && otherwise) return *otherwise;
    if (node == nullptr) fail(table, fmt::format("'{}' is missing", key));
    if (!node->is_string()) fail(*node, fmt::format("'{}' must be a text in quotation marks", key));
    return **node->as_string();
  }

  double points(const toml::table& table) const {
    const toml::node* const node = table.get("points");
    if (node == nullptr) fail(table, "'points' is missing");
    const std::optional<double> value = node->value<double>();
    if (!node->is_number() || !(*value >= 0 && *value <= 10'000))
      fail(*node, "'points' must be a number from 0 to 10000");
    return *value;
  }

  const toml::array& tables(const toml::table& table, std::string_view key) const {
    const toml::array* const found = table[key].as_array();
    if (found == nullptr || found->empty() || !found->is_homogeneous(toml::node_type::table)) {
      fail(table, fmt::format("there is no [[{}]]", key));
    }
    return *found;
  }

  std::vector<std::string> texts(const toml::node& node, const char* otherwise) const {
    const toml::array* const all = node.as_array();
    if (all == nullptr || all->empty() || !all->is_homogeneous(toml::node_type::string)) fail(node, otherwise);
    std::vector<std::string> found;
    for (const toml::node& one : *all) found.push_back(**one.as_string());
    return found;
  }

  void read_timing(const toml::table& table, Item& item) const {
    for (const char* key : {"laws", "only_with_another", "credit", "contract"}) {
      if (const toml::node* const node = table.get(key))
        fail(*node, fmt::format("'{}' is of laws, and this item is timed", key));
    }
    item.reference = text(table, "reference", std::nullopt);
    if (item.reference.empty()) fail(*table.get("reference"), "'reference' names no rung");
    if (const toml::node* const at = table.get("at")) {
      item.at = texts(*at, R"('at' must be a list of axes: ["seq=512", "causal=true"])");
    }
    if (const toml::node* const within = table.get("within")) {
      const toml::array* const all = within->as_array();
      if (all == nullptr || all->empty())
        fail(*within, "'within' must be a list of ratios to the reference's time: [2, 1]");
      for (const toml::node& one : *all) {
        const std::optional<double> ratio = one.value<double>();
        if (!one.is_number() || !(*ratio > 0 && *ratio <= 1e6)) fail(one, "a ratio of 'within' is a number above 0");
        item.within.push_back(*ratio);
      }
    } else if (item.points > 0) {
      fail(table, "a timed item with points needs 'within': [2, 1] is twice the reference's time, and its time");
    }
    if (const toml::node* const launches = table.get("launches")) {
      const std::optional<std::int64_t> number = launches->value<std::int64_t>();
      if (!launches->is_integer() || *number < 3 || *number > 100)
        fail(*launches, "'launches' is a number from 3 to 100");
      item.launches = static_cast<int>(*number);
    }
  }

  Item item(const toml::table& table) const {
    only(table, {"part", "points", "written", "function", "experiment", "contract", "laws", "only_with_another",
                 "credit", "reference", "at", "within", "launches"});
    Item item;
    item.part = text(table, "part", "");
    item.points = points(table);
    item.written = table["written"].value_or(false);
    if (item.written == table.contains("function")) {
      fail(table, "an item has either `written = true` or a `function` with its `experiment`");
    }
    if (item.written) return item;
    item.function = text(table, "function", std::nullopt);
    item.experiment = text(table, "experiment", std::nullopt);
    const auto contract = contract_of(text(table, "contract", std::string(to_string(Contract::handout))));
    if (!contract) fail(*table.get("contract"), R"('contract' is "handout" or "full")");
    item.contract = *contract;
    if (table.contains("reference")) {
      read_timing(table, item);
      return item;
    }
    for (const char* key : {"at", "within", "launches"}) {
      if (const toml::node* const node = table.get(key)) fail(*node, fmt::format("'{}' needs a 'reference'", key));
    }
    const std::string credit = text(table, "credit", "each");
    if (credit != "each" && credit != "all") fail(*table.get("credit"), R"('credit' is "each" or "all")");
    item.all_or_nothing = credit == "all";
    if (const toml::node* const laws = table.get("laws")) {
      item.laws = texts(*laws, R"('laws' must be a list of names: ["attention.*"])");
    }
    if (const toml::node* const others = table.get("only_with_another")) {
      item.only_with_another = texts(*others, R"('only_with_another' must be a list of names: ["attention.refusal"])");
    }
    return item;
  }

  Rubric rubric(const toml::table& table) const {
    only(table, {"handout", "problem"});
    Rubric rubric;
    rubric.handout = text(table, "handout", std::nullopt);
    if (rubric.handout != "2025" && rubric.handout != "2026") fail(*table.get("handout"), "there is 2025 and 2026");
    std::set<std::string> ids;
    for (const toml::node& node : tables(table, "problem")) {
      const toml::table& one = *node.as_table();
      only(one, {"id", "title", "points", "item"});
      Problem problem{text(one, "id", std::nullopt), text(one, "title", ""), points(one), {}};
      if (problem.title.empty()) problem.title = problem.id;
      if (!ids.insert(problem.id).second) fail(one, fmt::format("problem '{}' is there twice", problem.id));
      double sum = 0;
      for (const toml::node& part : tables(one, "item")) {
        problem.items.push_back(item(*part.as_table()));
        sum += problem.items.back().points;
      }
      if (std::abs(sum - problem.points) > kSame) {
        fail(one, fmt::format("the items of '{}' have {:g} points together, and the problem {:g}", problem.id, sum,
                              problem.points));
      }
      rubric.problems.push_back(std::move(problem));
    }
    return rubric;
  }

 private:
  std::string name_;
};

// A law beyond the hand-out's that keeps its PASS away (verdict/law_verdict.hpp).
bool breaks_promise(const verdict::LawRow& law) {
  return law.contract != Contract::handout &&
         verdict::fails_handout(verdict::Part::beyond, law.outcome, law.finding.kind, law.finding.promised);
}

// In words; empty: none.
std::string lack_in(const Json& object) {
  const auto found = object.find("lacks");
  const std::optional<Lack> lack = found == object.end() ? std::nullopt : lack_of(*found);
  return lack ? lack->text() : "";
}

std::vector<Law> laws_of(const Item& item, const Json& row) {
  std::vector<Law> laws;
  for (const verdict::LawRow& law : verdict::law_rows_of(row)) {
    if (law.experiment != item.experiment) continue;
    if (item.contract == Contract::handout && breaks_promise(law)) {
      laws.push_back({.name = law.law + " on what is promised",
                      .message = law.message,
                      .input = law.input,
                      .check = law.check,
                      .lacks = {},
                      .cause = law.finding.cause});
      continue;
    }
    if (law.contract != item.contract) continue;
    if (std::ranges::none_of(item.laws, [&](const std::string& glob) { return glob_match(glob, law.law); })) continue;
    // Of the hand-out's all are wanted; beyond it, those that apply to it. A refusal of a law's inputs must not remove
    // the law.
    if (item.contract != Contract::handout && !law.applies) continue;
    laws.push_back({.name = law.law,
                    .message = law.message,
                    .input = law.input,
                    .check = law.check,
                    .held = law.outcome == Outcome::passed,
                    .out_of_time = law.out_of_time,
                    .open = law.open,
                    .lacks = law.lacks ? law.lacks->text() : "",
                    .cause = law.finding.cause,
                    .tries = law.tries});
  }
  return laws;
}

void leave_open(ItemScore& score, const std::string& lacks) {
  score.open = score.lacking = true;
  score.why = score.item->function + " needs what this Python lacks";
  score.told = lacks;
}

ItemScore score_item(const Item& item, const Json& record) {
  ItemScore score{.item = &item};
  if (item.written) {
    score.open = true;
    score.why = "graded by a person";
    return score;
  }
  if (const std::string error = text_field(record, "error"); !error.empty()) {
    score.why = error;
    score.failed = true;
    return score;
  }
  const Json* const row = row_of(record, item.function);
  const submission::State state = state_of(row);
  if (state != submission::State::implemented) {
    if (row != nullptr && is_set(*row, "open")) {
      leave_open(score, lack_in(*row));
      score.at_import = true;
      return score;
    }
    score.failed = true;
    score.fails = state == submission::State::fails;
    score.why = fmt::format("{} {}", item.function, submission::to_string(state));
    if (row != nullptr) score.told = text_field(*row, "why");
    score.at_import = row != nullptr && row->value("at_import", false);
    return score;
  }
  if (const std::string why = text_field(*row, "not_checked"); !why.empty()) {
    score.open = true;
    score.why = fmt::format("{} {}", item.function, why);
    return score;
  }
  if (item.is_timed()) return score_timing(item, record);
  score.laws = laws_of(item, *row);
  const auto of = static_cast<double>(score.laws.size());
  const bool earns = std::ranges::any_of(score.laws, [&](const Law& law) {
    return law.held && std::ranges::none_of(item.only_with_another,
                                            [&](const std::string& glob) { return glob_match(glob, law.name); });
  });
  const auto held = static_cast<double>(std::ranges::count_if(score.laws, &Law::held));
  if (of == 0) {
    score.open = true;
    score.why = "no law of the rubric was searched";
    return score;
  }
  const auto open = std::ranges::find_if(score.laws, &Law::open);
  if (open != score.laws.end() &&
      std::ranges::all_of(score.laws, [](const Law& law) { return law.held || law.open; })) {
    leave_open(score, open->lacks);
    return score;
  }
  score.earned = item.all_or_nothing ? (held == of ? item.points : 0) : hundredths(item.points * held / of);
  if (!earns) score.earned = 0;
  score.why = fmt::format("{} of {} laws hold", held, of);
  if (!earns && held > 0) score.why += ", and alone they earn nothing";
  const auto late = std::ranges::count_if(score.laws, &Law::out_of_time);
  if (late > 0) score.why += fmt::format("; {} ran out of time", late);
  return score;
}

}  // namespace

namespace {

// An experiment that only times has no laws of such a function: those that check it are searched.
std::vector<std::string> searched_for(const Item& item) {
  const submission::Adapter* const adapter = submission::find_adapter(item.function);
  if (!item.is_timed() || adapter == nullptr) return {item.experiment};
  const std::vector<std::string> timed = split(adapter->timed, ' ');
  if (std::ranges::find(timed, item.experiment) == timed.end()) return {item.experiment};
  return split(adapter->experiments, ' ');
}

}  // namespace

std::vector<std::string> Rubric::experiments() const {
  std::set<std::string> found;
  for (const Problem& problem : problems) {
    for (const Item& item : problem.items) {
      if (!item.written) std::ranges::copy(searched_for(item), std::inserter(found, found.end()));
    }
  }
  return {found.begin(), found.end()};
}

std::vector<Item> Rubric::timed() const {
  std::vector<Item> found;
  for (const Problem& problem : problems) {
    std::ranges::copy_if(problem.items, std::back_inserter(found), &Item::is_timed);
  }
  return found;
}

std::vector<std::string> Rubric::laws_beyond_handout() const {
  std::set<std::string> found;
  for (const Problem& problem : problems) {
    for (const Item& item : problem.items) {
      if (!item.written && !item.is_timed() && item.contract != Contract::handout)
        found.insert(item.laws.begin(), item.laws.end());
    }
  }
  return {found.begin(), found.end()};
}

double Rubric::points() const {
  double sum = 0;
  for (const Problem& problem : problems) sum += problem.points;
  return sum;
}

bool ItemScore::is_full() const { return !failed && earned >= item->points && std::ranges::all_of(laws, &Law::held); }

double ProblemScore::earned() const {
  double sum = 0;
  for (const ItemScore& one : items) sum += one.earned;
  return hundredths(sum);
}

double ProblemScore::checked() const {
  double sum = 0;
  for (const ItemScore& one : items) sum += one.open ? 0 : one.item->points;
  return hundredths(sum);
}

Rubric parse_rubric(std::string_view text, const std::string& name) {
  try {
    return Reader(name).rubric(toml::parse(text, name));
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::usage,
                fmt::format("{}, line {}: {}", name, error.source().begin.line, one_line(error.description())));
  }
}

Rubric default_rubric(const std::string& handout) {
  const auto text = find_resource(fmt::format("tools/rubric/rubric-{}.toml", handout));
  if (!text) throw Error(ErrorKind::usage, fmt::format("there is no hand-out '{}'; there is 2025 and 2026", handout));
  return parse_rubric(*text, fmt::format("rubric-{}.toml", handout));
}

std::vector<ProblemScore> score(const Rubric& rubric, const Json& record) {
  std::vector<ProblemScore> scores;
  for (const Problem& problem : rubric.problems) {
    ProblemScore one{.problem = &problem, .items = {}};
    for (const Item& item : problem.items) one.items.push_back(score_item(item, record));
    scores.push_back(std::move(one));
  }
  return scores;
}

}  // namespace syslab::grade
