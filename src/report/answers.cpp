#include "report/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/contains.hpp"
#include "core/text.hpp"
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
  std::string text =
      fmt::format("{} on {}: {} passed, {}.", counted(static_cast<std::int64_t>(names.size()), "property"),
                  counted(static_cast<std::int64_t>(implementations.size()), "implementation"),
                  counted(passed, "search"), counted(cases, "random case"));
  const auto add = [&](const char* what, std::vector<std::string> laws_of) {
    if (laws_of.empty()) return;
    const std::size_t others = laws_of.size() - std::min(laws_of.size(), kNamed);
    laws_of.resize(laws_of.size() - others);
    text += fmt::format(" {}: {}{}.", what, fmt::join(laws_of, ", "),
                        others > 0 ? fmt::format(" and {} more", others) : "");
  };
  add("Falsified", failed);
  add("Ended by a crash or an error", ended);
  return marked(text);
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

class Words {
 public:
  explicit Words(bool smoke_is_told) : smoke_is_told_(smoke_is_told) {}
  // True if it was new.
  bool add(const Table& table) {
    if (said_.size() >= kSentences || contains(sources_, &table)) return false;
    Text text = is_sentence(table) ? best_sentence(table) : table.source.id == kLaws ? said_of_laws(table) : Text{};
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
  bool smoke_is_told_;
  std::vector<const Table*> sources_;
  std::vector<Text> said_;
};

bool is_filled(const Table& table, const std::string& letter) {
  return contains(table.source.fills, letter.empty() ? "*" : letter);
}

// Sentences that a part names or that say they fill it; of a problem with one part all that its experiments say.
Words words_of(const Part& part, const std::vector<Shown>& shown, bool only_part, bool smoke_is_told) {
  Words words(smoke_is_told);
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

Table first_of(const Table& table, const std::string& appendix) {
  std::vector<std::size_t> good;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const std::string status = plain(cell_of(table.result, row, "status"));
    if (status.empty() || status == "ok" || status == "oom") good.push_back(row);
  }
  Table made = table;
  made.result.rows.clear();
  const std::size_t shown = std::min(good.size(), kRows);
  const bool by_size = table.source.columns.front().align == "right";
  for (std::size_t i = 0; i < shown; ++i) {
    // Of a table in the order of a size both ends, and what lies evenly between; else the first, which matter most.
    const std::size_t place = by_size && shown > 1 ? (i * (good.size() - 1) + (shown - 1) / 2) / (shown - 1) : i;
    made.result.rows.push_back(table.result.rows[good[place]]);
  }
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
  for (const Part& part : parts) {
    ++made.parts;
    const Text letter = part.letter.empty() ? Text{} : strong("(" + part.letter + ")") + plain_text(" ");
    const Words words =
        options.answers ? words_of(part, shown, parts.size() == 1, options.smoke_is_told) : Words(false);
    Text said = words.empty() ? titles_of(part, shown, carrier, options.appendix) : words.text();
    const bool own_answer = !own.empty() && (parts.size() == 1 || in_own_words.contains(part.letter));
    if (said.empty() && own_answer) continue;  // it follows
    if (said.empty()) {
      made.open.push_back(part.letter);
      said = Text{{Style::emphasis, "Open:"}} + plain_text(" ") + why_open(part, shown, options.answers);
    }
    list.items.push_back(letter + said);
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
