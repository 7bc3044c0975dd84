#include "report/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/contains.hpp"
#include "core/text.hpp"
#include "report/byte_unit.hpp"
#include "report/cells.hpp"
#include "report/grid.hpp"
#include "report/standing.hpp"

namespace syslab::report {
namespace {

constexpr std::size_t kSentences = 3;  // of a part
constexpr std::size_t kRows = 12;      // of the one table
constexpr std::size_t kNamed = 3;      // of a list of titles or of what failed

// All deliverables of one letter, in the hand-out's order.
struct Part {
  std::string letter;
  std::vector<const Deliverable*> wanted;
};

std::vector<Part> parts_of(const Problem& problem, const std::string& handout) {
  std::vector<Part> parts;
  for (const Deliverable& wanted : problem.deliverables) {
    if (!wanted.handout.empty() && !handout.empty() && wanted.handout != handout) continue;
    const auto found = std::ranges::find(parts, wanted.part, &Part::letter);
    if (found == parts.end()) {
      parts.push_back({wanted.part, {&wanted}});
    } else {
      found->wanted.push_back(&wanted);
    }
  }
  return parts;
}

// --- what is said of a part ---

// What the searches of the laws found, of all implementations at once.
Text said_of_laws(const Table& laws) {
  std::int64_t passed = 0, cases = 0;
  std::set<std::string> names, implementations;
  std::vector<std::string> failed, ended;
  for (std::size_t row = 0; row < laws.result.rows.size(); ++row) {
    const auto cell = [&](const char* column) { return plain(cell_of(laws.result, row, column)); };
    const std::string outcome = cell("outcome");
    if (outcome == "passed") {
      ++passed;
      names.insert(cell("law"));
      implementations.insert(cell("implementation"));
      cases += cell_of(laws.result, row, "cases").integer;
    } else if (outcome == "falsified" || outcome == "error") {
      (outcome == "error" ? ended : failed).push_back(fmt::format("`{}` of `{}`", cell("law"), cell("implementation")));
    }
  }
  if (passed == 0 && failed.empty() && ended.empty()) return {};
  std::vector<std::string> named;
  for (const std::string& name : implementations) named.push_back("`" + name + "`");
  const std::string whom = named.size() <= kNamed ? fmt::format("{}", fmt::join(named, ", "))
                                                  : counted(static_cast<std::int64_t>(named.size()), "implementation");
  const auto many = static_cast<std::int64_t>(names.size());
  std::string text;
  if (passed > 0) {
    text = fmt::format("{} {} for {} in {}.", counted(many, "property"), many == 1 ? "holds" : "hold", whom,
                       counted(cases, "random case"));
  }
  const auto add = [&](const char* what, std::vector<std::string> laws_of) {
    if (laws_of.empty()) return;
    const std::size_t others = laws_of.size() - std::min(laws_of.size(), kNamed);
    laws_of.resize(laws_of.size() - others);
    text += fmt::format("{}{}: {}{}.", text.empty() ? "" : " ", what, fmt::join(laws_of, ", "),
                        others > 0 ? fmt::format(" and {} more", others) : "");
  };
  add("Falsified", failed);
  add("Ended by a crash or an error", ended);
  return marked(text) + source_text(laws.source.file);
}

// One a table: the first row that is no smoke run, or the first.
Text best_sentence(const Table& table) {
  const std::vector<Text> all = sentences(table);
  const auto is_smoke = [](const Text& text) { return !text.empty() && text.front().text == "Smoke run:"; };
  const auto found = std::ranges::find_if_not(all, is_smoke);
  if (found != all.end()) return *found;
  return all.empty() ? Text{} : all.front();
}

Text without_smoke(Text text) {
  constexpr std::ptrdiff_t kSpans = 2;  // the mark and its space (sentences.cpp)
  if (!text.empty() && text.front().text == "Smoke run:") text.erase(text.begin(), text.begin() + kSpans);
  return text;
}

// In which part what was found by the searches of a table of laws is said: once in a problem.
using LawsSaid = std::map<const Table*, std::string>;

class Words {
 public:
  Words(bool smoke_is_told, std::string letter = {}, LawsSaid* laws_said = nullptr)
      : smoke_is_told_(smoke_is_told), letter_(std::move(letter)), laws_said_(laws_said) {}
  // True if it was new.
  bool add(const Table& table) {
    if (said_.size() >= kSentences || contains(sources_, &table)) return false;
    Text text = is_sentence(table) ? best_sentence(table) : table.source.id == kLaws ? of_laws(table) : Text{};
    if (text.empty()) return false;
    sources_.push_back(&table);
    said_.push_back(smoke_is_told_ ? without_smoke(std::move(text)) : std::move(text));
    return true;
  }
  bool empty() const { return said_.empty(); }
  Text text() const {
    Text all;
    for (const Text& one : said_) all = (all.empty() ? all : all + plain_text(" ")) + one;
    return all;
  }

 private:
  Text of_laws(const Table& table) {
    Text text = said_of_laws(table);
    if (text.empty() || laws_said_ == nullptr) return text;
    const auto [said, is_first] = laws_said_->try_emplace(&table, letter_);
    return is_first ? text
                    : plain_text(fmt::format("The property searches of ({}) cover this part, too.", said->second));
  }

  bool smoke_is_told_;
  std::string letter_;
  LawsSaid* laws_said_;
  std::vector<const Table*> sources_;
  std::vector<Text> said_;
};

bool is_filled(const Table& table, const std::string& letter) {
  return contains(table.source.fills, letter.empty() ? "*" : letter);
}

// Sentences that a part names or that say they fill it; of a problem with one part all that its experiments say.
Words words_of(const Part& part, const std::vector<Shown>& shown, bool only_part, bool smoke_is_told,
               LawsSaid& laws_said) {
  Words words(smoke_is_told, part.letter, &laws_said);
  for (const Deliverable* wanted : part.wanted) {
    for (const Place& place : places_of(*wanted, shown)) {
      if (const auto* const* table = std::get_if<const Table*>(&place)) words.add(**table);
    }
  }
  for (const Shown& one : shown) {
    for (const Table& table : one.tables) {
      const bool fits = is_sentence(table) && (only_part || is_filled(table, part.letter));
      if (fits) words.add(table);
    }
  }
  return words;
}

// --- the one table or figure ---

// How far a number can be trusted is the appendix's to show.
bool is_for_the_appendix(const Column& column) {
  static const std::set<std::string> kNames{"worst_error", "bound", "scratch", "n", "checked_percent", "noise"};
  return kNames.contains(column.name);
}

// What would say nothing there: of no row is there a value, or all went well.
bool says_nothing(const Table& table, const Column& column) {
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const store::Cell& cell = cell_of(table.result, row, column.name);
    if (column.name == "status" ? plain(cell) != "ok" : cell.type != store::Cell::Type::null) return false;
  }
  return true;
}

// Columns of bytes in the unit that fits the smallest of them; to the byte they stand in the appendix.
void fit_bytes(Table& table) {
  for (Column& column : table.source.columns) {
    const auto at = find_column(table.result, column.name);
    if (column.unit != "B" || !at) continue;
    double least = 0;
    for (auto& row : table.result.rows) {
      store::Cell& cell = row[*at];
      if (cell.type == store::Cell::Type::integer) cell.real = static_cast<double>(cell.integer);
      if (cell.type == store::Cell::Type::null) cell.real = 0;
      if (cell.real > 0 && (least == 0 || cell.real < least)) least = cell.real;
    }
    const std::string unit(fitting_unit(least, "GiB"));
    if (least == 0 || unit == "B") continue;
    for (auto& row : table.result.rows) {
      store::Cell& cell = row[*at];
      if (cell.type == store::Cell::Type::integer) cell.type = store::Cell::Type::real;
      cell.real /= *bytes_in(unit);
    }
    column.unit = unit;
    column.format = ".4g";
  }
}

// Rows that are results. Our own reference answers nothing: where it is compared with, a column says so.
std::vector<std::size_t> good_rows(const Table& table) {
  std::vector<std::size_t> good, references;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const std::string status = plain(cell_of(table.result, row, "status"));
    if (!status.empty() && status != "ok" && status != "oom") continue;
    const bool is_reference = plain(cell_of(table.result, row, "implementation")) == "reference";
    (is_reference ? references : good).push_back(row);
  }
  return good.empty() ? references : good;
}

Table first_of(const Table& table, const std::string& appendix) {
  const std::vector<std::size_t> good = good_rows(table);
  Table made = table;
  made.result.rows.clear();
  const std::size_t shown = std::min(good.size(), kRows);
  const bool by_size = table.source.columns.front().align == "right";
  for (std::size_t i = 0; i < shown; ++i) {
    // Of a table in the order of a size both ends, and what lies evenly between; else the first, which matter most.
    const std::size_t place = by_size && shown > 1 ? (i * (good.size() - 1) + (shown - 1) / 2) / (shown - 1) : i;
    made.result.rows.push_back(table.result.rows[good[place]]);
  }
  std::erase_if(made.source.columns, [&](const Column& column) {
    return is_for_the_appendix(column) || (shown > 0 && says_nothing(made, column));
  });
  fit_bytes(made);
  made.footnote.clear();
  made.source.notes.clear();
  if (shown < table.result.rows.size()) {
    made.source.notes.push_back(fmt::format("{} of {} rows{}.", shown, table.result.rows.size(),
                                            appendix.empty() ? "" : "; all are in the appendix"));
  }
  return made;
}

Picture alone(Picture picture) {
  picture.notes.clear();
  picture.footnote.clear();
  return picture;
}

struct Carrier {
  const Picture* picture = nullptr;
  const Table* table = nullptr;
};

// A figure where one is asked for and drawn, else the first table that has a result; of a problem that wants only words
// neither.
Carrier carrier_of(const std::vector<Part>& parts, const std::vector<Shown>& shown) {
  Carrier found;
  for (const Part& part : parts) {
    for (const Deliverable* wanted : part.wanted) {
      if (in_words(*wanted)) continue;
      for (const Place& place : places_of(*wanted, shown)) {
        if (const auto* const* picture = std::get_if<const Picture*>(&place)) {
          const bool drawn = !(*picture)->left_out && (*picture)->missing.empty();
          if (drawn && found.picture == nullptr) found.picture = *picture;
        } else if (const Table* table = std::get<const Table*>(place); !is_sentence(*table)) {
          const bool is_first = found.table == nullptr && table->source.id != kLaws && has_result(*table);
          if (is_first) found.table = table;
        }
      }
    }
  }
  return found;
}

// "Table: Speeds (appendix)": what shows a part that no sentence answers.
Text titles_of(const Part& part, const std::vector<Shown>& shown, const Carrier& carrier, const std::string& appendix) {
  std::vector<std::string> below, apart;
  for (const Deliverable* wanted : part.wanted) {
    for (const Place& place : places_of(*wanted, shown)) {
      if (const auto* const* picture = std::get_if<const Picture*>(&place)) {
        if ((*picture)->left_out || !(*picture)->missing.empty()) continue;
        (*picture == carrier.picture ? below : apart).push_back((*picture)->title);
      } else if (const Table* table = std::get<const Table*>(place); !is_sentence(*table) && has_result(*table)) {
        const bool is_below = carrier.picture == nullptr && table == carrier.table;
        (is_below ? below : apart).push_back(table->source.title);
      }
    }
  }
  const auto listed = [](std::vector<std::string> titles) {
    std::vector<std::string> once;
    for (const std::string& title : titles) {
      if (!contains(once, title) && once.size() < kNamed) once.push_back(title);
    }
    return fmt::format("{}", fmt::join(once, "; "));
  };
  std::string text;
  if (!below.empty()) text = "Below: " + listed(below) + ".";
  if (below.empty() && !apart.empty()) {
    text = (appendix.empty() ? "Measured (`--appendix` shows it): " : "In the appendix: ") + listed(apart) + ".";
  }
  return marked(text);
}

// The first of its deliverables that nothing answers.
Text why_open(const Part& part, const std::vector<Shown>& shown, bool answers) {
  Text why;
  for (const Deliverable* wanted : part.wanted) {
    Text one = standing(*wanted, shown, answers);
    if (why.empty() || bare(one).starts_with("not measured")) why = std::move(one);
    if (bare(why).starts_with("not measured")) break;
  }
  return why;
}

std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs{""};
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) {
      if (!paragraphs.back().empty()) paragraphs.emplace_back();
    } else {
      paragraphs.back() += (paragraphs.back().empty() ? "" : " ") + trim(line);
    }
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return paragraphs;
}

// Whose part a paragraph answers: "(b) …" or "**(b)** …". The letters of all that say one.
std::set<std::string> letters_of(const std::vector<std::string>& paragraphs) {
  std::set<std::string> letters;
  for (const std::string& paragraph : paragraphs) {
    const std::size_t open = paragraph.find_first_not_of('*'), close = paragraph.find(')');
    if (open != std::string::npos && close != std::string::npos && paragraph[open] == '(' && close > open) {
      letters.insert(paragraph.substr(open + 1, close - open - 1));
    }
  }
  return letters;
}

// "**(b)** ", "**(a)–(e)** "; nothing for the only part of a problem.
Text lettered(const std::string& first, const std::string& last) {
  if (first.empty()) return {};
  const std::string range = first == last ? "(" + first + ")" : fmt::format("({})–({})", first, last);
  return strong(range) + plain_text(" ");
}

std::string points_text(const Problem& problem, const std::string& handout) {
  std::vector<std::string> texts;
  for (const auto& [year, points] : problem.points) {
    if (!handout.empty() && year != handout) continue;
    const std::string worth = points == 0 ? "not graded" : counted(points, "point");
    texts.push_back(handout.empty() ? year + ": " + worth : worth);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Answered answered(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures,
                  const AnswerOptions& options) {
  const Problem& problem = *plan.problem;
  const std::vector<Shown> shown = shown_of(plan, store, pictures);
  const std::vector<Part> parts = parts_of(problem, options.handout);
  const Carrier carrier = options.only_words ? Carrier{} : carrier_of(parts, shown);
  Answered made;
  made.problem = problem.id;
  const std::string points = points_text(problem, options.handout);
  made.blocks.emplace_back(Heading{2, plain_text(fmt::format("{} ({})", problem.title, points)), problem.id});
  Bullets list;
  const std::vector<std::string> own = paragraphs_of(options.own_words);
  const std::set<std::string> in_own_words = letters_of(own);
  LawsSaid laws_said;
  Text last_open;  // of the last item, if that is an open part
  std::string first_letter;
  for (const Part& part : parts) {
    ++made.parts;
    const Words words =
        options.answers ? words_of(part, shown, parts.size() == 1, options.smoke_is_told, laws_said) : Words(false);
    Text said = words.empty() ? titles_of(part, shown, carrier, options.appendix) : words.text();
    const bool own_answer = !own.empty() && (parts.size() == 1 || in_own_words.contains(part.letter));
    if (said.empty() && own_answer) continue;  // it follows
    const bool is_open = said.empty();
    if (is_open) {
      made.open.push_back(part.letter);
      said = Text{{Style::emphasis, "Open:"}} + plain_text(" ") + why_open(part, shown, options.answers);
    }
    // Open parts that follow each other and want the same are one item: "(a)–(e)".
    if (is_open && bare(said) == bare(last_open)) {
      list.items.back() = lettered(first_letter, part.letter) + said;
      continue;
    }
    first_letter = part.letter;
    last_open = is_open ? said : Text{};
    list.items.push_back(lettered(part.letter, part.letter) + said);
  }
  const bool refers = !options.appendix.empty() && !list.items.empty();
  if (refers) {
    const Span link{Style::link, "All measurements", options.appendix + "#" + problem.id};
    list.items.back() = list.items.back() + Text{{Style::plain, " "}, link, {Style::plain, "."}};
  }
  if (!list.items.empty()) made.blocks.emplace_back(std::move(list));
  for (const std::string& paragraph : own) {
    made.blocks.emplace_back(Paragraph{marked(paragraph)});
  }
  for (const Part& part : parts) {
    const bool wants_words = std::ranges::any_of(part.wanted, [](const Deliverable* one) { return in_words(*one); });
    if (options.answers || !wants_words) continue;
    const std::string letter = part.letter.empty() ? "" : "(" + part.letter + ") ";
    made.blocks.emplace_back(Paragraph{plain_text(letter + "Your answer goes here."), Tone::answer});
  }
  if (carrier.picture != nullptr) {
    made.blocks.emplace_back(alone(*carrier.picture));
  } else if (carrier.table != nullptr) {
    made.blocks.emplace_back(first_of(*carrier.table, options.appendix));
  }
  return made;
}

}  // namespace syslab::report
