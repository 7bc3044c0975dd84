#include "report/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "contract/outcome.hpp"
#include "core/contains.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/grid.hpp"
#include "report/hand_in_table.hpp"
#include "report/handout_models.hpp"
#include "report/provenance.hpp"
#include "report/standing.hpp"

namespace syslab::report {
namespace {

constexpr std::size_t kSentences = 3;  // of a part
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
    const std::optional<Outcome> outcome = outcome_of(cell("outcome"));
    if (outcome == Outcome::passed) {
      ++passed;
      names.insert(cell("law"));
      implementations.insert(cell("implementation"));
      cases += cell_of(laws.result, row, "cases").integer;
    } else if (outcome == Outcome::falsified || outcome == Outcome::error) {
      std::vector<std::string>& told = outcome == Outcome::error ? ended : failed;
      std::string of = fmt::format("`{}` of `{}`", cell("law"), cell("implementation"));
      if (std::ranges::find(told, of) == told.end()) told.push_back(std::move(of));  // under either contract
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

// In which part what was found by the searches of a table of laws is said: once in a problem.
using LawsSaid = std::map<const Table*, std::string>;

class Words {
 public:
  Words(const AnswerOptions& options, Brevity& brevity, std::string letter = {}, LawsSaid* laws_said = nullptr)
      : options_(options), brevity_(brevity), letter_(std::move(letter)), laws_said_(laws_said) {}
  // True if it was new. What the searches of laws found is said where no sentence tells more of it.
  bool add(const Table& table) {
    if (said_.size() >= kSentences || contains(sources_, &table)) return false;
    const bool of_laws_alone = table.source.id == kLaws && said_.empty();
    Text text;
    if (is_sentence(table)) {
      std::optional<Sentence> best = best_sentence(table, brevity_, options_.gpus);
      if (best && options_.smoke_is_told) best->smoke = false;
      if (best) text = best->marked();
    } else if (of_laws_alone) {
      text = of_laws(table);
    }
    if (text.empty()) return false;
    sources_.push_back(&table);
    said_.push_back(std::move(text));
    return true;
  }
  bool empty() const { return said_.empty(); }
  // `between` each two.
  Text text(const Text& between) const {
    Text all;
    for (const Text& one : said_) all = (all.empty() ? all : all + between) + one;
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

  const AnswerOptions& options_;
  Brevity& brevity_;  // the problem's
  std::string letter_;
  LawsSaid* laws_said_;
  std::vector<const Table*> sources_;
  std::vector<Text> said_;
};

bool is_filled(const Table& table, const std::string& letter) {
  return contains(table.source.fills, letter.empty() ? "*" : letter);
}

// Sentences that a part names or that say they fill it; of a problem with one part all of an experiment where none of
// them says so.
Words words_of(const Part& part, const std::vector<Shown>& shown, bool only_part, const AnswerOptions& options,
               Brevity& brevity, LawsSaid& laws_said) {
  Words words(options, brevity, part.letter, &laws_said);
  for (const Deliverable* wanted : part.wanted) {
    for (const Place& place : places_of(*wanted, shown)) {
      if (const auto* const* table = std::get_if<const Table*>(&place)) words.add(**table);
    }
  }
  for (const Shown& one : shown) {
    const bool says_which = std::ranges::any_of(
        one.tables, [&](const Table& table) { return is_sentence(table) && is_filled(table, part.letter); });
    for (const Table& table : one.tables) {
      const bool fits = is_sentence(table) && ((only_part && !says_which) || is_filled(table, part.letter));
      if (fits) words.add(table);
    }
  }
  return words;
}

// --- the one table or figure ---

Picture alone(Picture picture) {
  picture.notes.clear();
  picture.footnote.clear();
  return picture;
}

struct Carrier {
  const Picture* picture = nullptr;  // before a table
  const Table* table = nullptr;
  std::string of_picture, of_table;  // whose part each is

  bool is_any() const { return picture != nullptr || table != nullptr; }
  const std::string& letter() const { return picture != nullptr ? of_picture : of_table; }
  // "Table 3": it stands below the answer, which names it.
  Text name() const {
    if (picture != nullptr) return {{Style::number, "Figure", number_label(*picture)}};
    return {{Style::number, "Table", number_label(*table)}};
  }
};

// What of a deliverable's places is drawn or has a result.
void take_places(Carrier& found, const Deliverable& wanted, const std::vector<Shown>& shown) {
  for (const Place& place : places_of(wanted, shown)) {
    if (const auto* const* picture = std::get_if<const Picture*>(&place)) {
      const bool drawn = !(*picture)->left_out && (*picture)->missing.empty();
      if (!drawn || found.picture != nullptr) continue;
      found.picture = *picture;
      found.of_picture = wanted.part;
    } else if (const Table* table = std::get<const Table*>(place); !is_sentence(*table)) {
      const bool is_first = found.table == nullptr && table->source.id != kLaws && has_result(*table);
      if (!is_first) continue;
      found.table = table;
      found.of_table = wanted.part;
    }
  }
}

// That of the deliverable which carries the problem's point; else a figure where one is asked for and drawn, else the
// first table that has a result; of a problem that wants only words neither.
Carrier carrier_of(const std::vector<Part>& parts, const std::vector<Shown>& shown) {
  for (const bool chosen : {true, false}) {
    Carrier found;
    for (const Part& part : parts) {
      for (const Deliverable* wanted : part.wanted) {
        if (!in_words(*wanted) && (wanted->carries || !chosen)) take_places(found, *wanted, shown);
      }
    }
    if (found.is_any()) return found;
  }
  return {};
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
    Standing one = standing(*wanted, shown, answers);
    if (why.empty() || one.missing) why = std::move(one.text);
    if (one.missing) break;
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

// Whose part a paragraph answers: "(b) …" or "**(b)** …"; empty: it does not say.
std::string letter_of(const std::string& paragraph) {
  const std::size_t open = paragraph.find_first_not_of('*'), close = paragraph.find(')');
  if (open == std::string::npos || close == std::string::npos || paragraph[open] != '(' || close < open) return {};
  return paragraph.substr(open + 1, close - open - 1);
}

// "**(b)** ", "**(a)–(e)** ", on a page with a place to go to for each; nothing for the only part of a problem.
Text lettered(const std::string& problem, const std::vector<std::string>& letters, bool is_page) {
  if (letters.front().empty()) return {};
  const std::string range =
      letters.size() == 1 ? "(" + letters.front() + ")" : fmt::format("({})–({})", letters.front(), letters.back());
  Text text = strong(range);
  for (const std::string& letter : letters) {
    if (is_page) text.push_back({Style::anchor, "", letter_anchor(problem, letter)});
  }
  return text + plain_text(" ");
}

// A sentence an experiment of the problem that has attempts which did not pass.
std::vector<Text> not_passed_of(const SectionPlan& plan, const store::Store& store, const std::string& handout) {
  std::vector<Text> found;
  for (const registry::Experiment* experiment : plan.experiments) {
    Table table = shared_table(store, std::string(kNotPassedSaid), experiment->id);
    keep_models_of(handout, table.result);
    std::ranges::transform(sentences(table, {.brief = true}), std::back_inserter(found), &Sentence::marked);
  }
  return found;
}

// A caption of several problems' tables is read once.
void say_once(CaptionsShown& captions, TableSource& source) {
  const std::string caption = whole_caption(source);
  const auto [first, is_new] = captions.try_emplace(caption, source.title);
  if (is_new || caption.empty()) return;
  source.caption = "Columns as in “" + first->second + "”.";
  source.about.clear();
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

// A person's own words, and the letters of the parts that they answer.
struct OwnWords {
  std::vector<std::string> paragraphs;
  std::set<std::string> letters;

  explicit OwnWords(const std::string& text) : paragraphs(paragraphs_of(text)) {
    for (const std::string& paragraph : paragraphs) letters.insert(letter_of(paragraph));
  }
  bool answer(const Part& part, bool only_part) const {
    return !paragraphs.empty() && (only_part || letters.contains(part.letter));
  }
};

// A problem, what is measured of it and what of that carries its point.
struct Material {
  const Problem& problem;
  std::vector<Part> parts;
  std::vector<Shown> shown;
  Carrier carrier;
};

Material material_of(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures,
                     const AnswerOptions& options) {
  Material made{*plan.problem, parts_of(*plan.problem, options.handout), shown_of(plan, store, pictures), {}};
  for (Shown& one : made.shown) {
    for (Table& table : one.tables) keep_models_of(options.handout, table.result);
  }
  if (!options.only_words) made.carrier = carrier_of(made.parts, made.shown);
  return made;
}

// What is said of the parts, an item each.
struct Said {
  Bullets list;
  std::vector<std::string> letters, open;  // of parts with an item; of those, without an answer
  std::size_t before_carrier = 0;          // items up to the one whose part the carrier shows; 0: it comes last
  std::string device;                      // that the first sentence with one names

  void add_to_last(const Text& more) {
    if (!list.items.empty()) list.items.back() = list.items.back() + more;
  }
};

Said said_of(const Material& material, const OwnWords& own, const AnswerOptions& options) {
  const auto& [problem, parts, shown, carrier] = material;
  Said all;
  LawsSaid laws_said;
  Brevity brevity{.brief = true, .device = options.device};
  Text last_open;                    // of the last item, if that is an open part
  std::vector<std::string> of_item;  // letters of the last item
  const Text between = options.is_page ? next_line() : plain_text(" ");
  for (const Part& part : parts) {
    const Words words = options.answers ? words_of(part, shown, parts.size() == 1, options, brevity, laws_said)
                                        : Words(options, brevity);
    if (const auto device = brevity.said.find("device"); all.device.empty() && device != brevity.said.end()) {
      all.device = device->second;
    }
    Text said = words.empty() ? titles_of(part, shown, carrier, options.appendix) : words.text(between);
    if (said.empty() && own.answer(part, parts.size() == 1)) continue;  // it follows
    const bool is_open = said.empty();
    if (is_open) {
      all.open.push_back(part.letter);
      said = Text{{Style::emphasis, "Open:"}} + plain_text(" ") + why_open(part, shown, options.answers);
    }
    if (!part.letter.empty()) all.letters.push_back(part.letter);
    // Open parts that follow each other and want the same are one item: "(a)–(e)".
    if (is_open && bare(said) == bare(last_open)) {
      of_item.push_back(part.letter);
      all.list.items.back() = lettered(problem.id, of_item, options.is_page) + said;
      continue;
    }
    of_item = {part.letter};
    last_open = is_open ? said : Text{};
    const bool carries = carrier.is_any() && carrier.letter() == part.letter;
    all.list.items.push_back(lettered(problem.id, of_item, options.is_page) + (carries ? carrier.name() : Text{}) +
                             said);
    if (carries && !part.letter.empty()) all.before_carrier = all.list.items.size();
  }
  return all;
}

// `device`: that sentences have spoken of.
std::vector<Block> blocks_of(const Carrier& carrier, const store::Store& store, const AnswerOptions& options,
                             const std::string& device, CaptionsShown& captions) {
  if (carrier.picture != nullptr) return {alone(*carrier.picture)};
  if (carrier.table == nullptr) return {};
  Table table = hand_in_table(*carrier.table, options.appendix, options.gpus, device);
  const Provenance provenance = provenance_of(table.result, store);  // of the rows that it shows
  table.warning = provenance.warning();
  if (std::string note = provenance.note(); !note.empty()) table.source.notes.push_back(std::move(note));
  say_once(captions, table.source);
  return {std::move(table)};
}

void append(std::vector<Block>& blocks, const std::vector<Block>& more) {
  blocks.insert(blocks.end(), more.begin(), more.end());
}

// `carried` follows the item of its part.
void add_items(Said said, bool only_part, const std::vector<Block>& carried, std::vector<Block>& blocks) {
  std::vector<Text>& items = said.list.items;
  // The only part of a problem is a paragraph, not a list of one.
  if (items.size() == 1 && only_part) {
    blocks.emplace_back(Paragraph{std::move(items.front())});
    return;
  }
  if (said.before_carrier > 0) {
    const auto behind = items.begin() + static_cast<std::ptrdiff_t>(said.before_carrier);
    blocks.emplace_back(Bullets{{items.begin(), behind}});
    append(blocks, carried);
    items.erase(items.begin(), behind);
  }
  if (!items.empty()) blocks.emplace_back(std::move(said.list));
}

// `letters`: of the parts that have a place on the page; those that the words answer first join them.
void add_own_words(const OwnWords& own, const Material& material, bool is_page, std::vector<std::string>& letters,
                   std::vector<Block>& blocks) {
  for (const std::string& paragraph : own.paragraphs) {
    const std::string letter = letter_of(paragraph);
    const bool is_first = !letter.empty() && !contains(letters, letter) &&
                          std::ranges::find(material.parts, letter, &Part::letter) != material.parts.end();
    if (is_first) letters.push_back(letter);
    const Text place =
        is_first && is_page ? Text{{Style::anchor, "", letter_anchor(material.problem.id, letter)}} : Text{};
    blocks.emplace_back(Paragraph{place + marked(paragraph)});
  }
}

void add_places_for_answers(const std::vector<Part>& parts, std::vector<Block>& blocks) {
  for (const Part& part : parts) {
    if (std::ranges::none_of(part.wanted, [](const Deliverable* one) { return in_words(*one); })) continue;
    const std::string letter = part.letter.empty() ? "" : "(" + part.letter + ") ";
    blocks.emplace_back(Paragraph{plain_text(letter + "Your answer goes here."), Tone::answer});
  }
}

}  // namespace

Answered answered(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures,
                  const AnswerOptions& options, CaptionsShown& captions) {
  const Material material = material_of(plan, store, pictures, options);
  const Problem& problem = material.problem;
  const OwnWords own(options.own_words);
  Said said = said_of(material, own, options);
  Answered made{.problem = problem.id, .parts = static_cast<int>(material.parts.size()), .open = said.open};
  made.blocks.emplace_back();  // the heading, when all letters are known
  std::vector<std::string> letters = said.letters;
  if (!options.appendix.empty()) {
    const Span link{Style::link, "All measurements", options.appendix + "#" + problem.id};
    said.add_to_last(Text{{Style::plain, " "}, link, {Style::plain, "."}});
  }
  std::vector<Block> carried = blocks_of(material.carrier, store, options, said.device, captions);
  for (const Text& one : not_passed_of(plan, store, options.handout)) {
    // A terminal has no table for them to stand below.
    if (options.only_words && !said.list.items.empty()) {
      said.add_to_last(plain_text(" ") + one);
    } else {
      carried.emplace_back(Paragraph{one, Tone::meta});
    }
  }
  const bool carried_last = said.before_carrier == 0;
  add_items(std::move(said), material.parts.size() == 1, carried, made.blocks);
  add_own_words(own, material, options.is_page, letters, made.blocks);
  if (!options.answers) add_places_for_answers(material.parts, made.blocks);
  if (carried_last) append(made.blocks, carried);
  std::ranges::sort(letters);
  made.blocks.front() =
      Heading{2,
              plain_text(fmt::format("{} ({})", problem.title, points_text(problem, options.handout))),
              problem.id,
              {problem.section, problem.title, std::move(letters)}};
  return made;
}

}  // namespace syslab::report
