#include "report/section.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/resources.hpp"
#include "report/cells.hpp"
#include "report/grid.hpp"
#include "report/standing.hpp"

namespace syslab::report {
namespace {

using registry::Experiment;

TableSource source_at(const Resource& file) {
  const std::string path(file.path);
  const std::size_t slash = path.rfind('/');
  TableSource source = parse_table(path.substr(slash + 1, path.size() - slash - 1 - std::string_view(".sql").size()),
                                   std::string(file.text));
  source.file = file.file;
  return source;
}

TableSource shared_source(const std::string& name) {
  const std::string path = "reports/tables/" + name + ".sql";
  const std::vector<Resource> found = resources(path);
  if (found.empty()) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", path));
  return source_at(found.front());
}

bool has_rows(const Table& table) { return !table.result.rows.empty(); }

std::string points_of(const Problem& problem, const std::string& handout) {
  std::vector<std::string> places;
  for (const auto& [year, points] : problem.points) {
    if (!handout.empty() && year != handout) continue;
    const std::string worth =
        points == 0 ? "not graded" : fmt::format("{} {}", points, points == 1 ? "point" : "points");
    places.push_back(fmt::format("hand-out {}: {}", year, worth));
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

// Of an experiment outside the problems of the report's hand-out.
std::string other_places(const Experiment& experiment) {
  std::vector<std::string> years;
  for (const registry::HandoutProblem& one : experiment.problems) years.push_back(one.handout);
  if (years.empty()) return "posed by no hand-out";
  std::sort(years.begin(), years.end());
  return fmt::format("posed by the hand-out of {}", fmt::join(years, " and "));
}

// --- what is to be handed in ---

std::string name_of(const Deliverable& wanted) {
  const std::string part = wanted.part.empty() ? "" : "(" + wanted.part + ") ";
  const std::string kind = wanted.kind == "answer" ? "In words" : wanted.kind;
  std::string name = part + kind;
  name[part.size()] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[part.size()])));
  return name;
}

bool asked(const Deliverable& wanted, const std::string& handout) {
  return wanted.handout.empty() || handout.empty() || wanted.handout == handout;
}

std::string without_experiment(const Problem& problem) {
  const bool on_paper = std::all_of(problem.deliverables.begin(), problem.deliverables.end(),
                                    [](const Deliverable& wanted) { return in_words(wanted); });
  return on_paper ? "A derivation; no experiment yet." : "Not measured: there is no experiment yet.";
}

void add_deliverables(std::vector<Block>& blocks, const Problem& problem, const std::vector<Shown>& shown,
                      const SectionOptions& options) {
  Bullets list;
  for (const Deliverable& wanted : problem.deliverables) {
    if (!asked(wanted, options.handout)) continue;
    Text item = strong(name_of(wanted)) + marked(": " + wanted.what);
    if (!shown.empty()) item = item + plain_text(" → ") + standing(wanted, shown, options.answers).text;
    list.items.push_back(std::move(item));
  }
  if (!list.items.empty()) blocks.emplace_back(std::move(list));
  if (shown.empty()) blocks.emplace_back(Paragraph{plain_text(without_experiment(problem)), Tone::missing});
  if (options.answers) return;
  for (const Deliverable& wanted : problem.deliverables) {
    if (!asked(wanted, options.handout) || !in_words(wanted)) continue;
    blocks.emplace_back(Paragraph{plain_text(name_of(wanted) + ": your answer goes here."), Tone::answer});
  }
}

// --- what an experiment shows ---

void add_sentences(std::vector<Block>& blocks, const Shown& shown) {
  Bullets found;
  Text nothing;
  std::string unsaid;  // the command for what is missing
  bool rows = false;
  for (const Table& table : shown.tables) {
    if (!is_sentence(table)) {
      rows = rows || (table.source.id != kLaws && has_result(table));
      continue;
    }
    const std::vector<Sentence> filled = sentences(table);
    std::ranges::transform(filled, std::back_inserter(found.items), &Sentence::marked);
    if (!filled.empty()) continue;
    nothing = without_rows(table);
    if (table.source.empty.empty()) unsaid = table.source.command;
  }
  if (found.items.empty()) {
    if (rows && !unsaid.empty()) nothing = marked("No summary of these cases alone: `" + unsaid + "`.");
    if (!nothing.empty()) blocks.emplace_back(Paragraph{nothing, Tone::missing});
    return;
  }
  blocks.emplace_back(Paragraph{plain_text("Results")});
  blocks.emplace_back(std::move(found));
}

// Store::hold_still() hides them, so the report must say that they exist.
void add_other_versions(std::vector<Block>& blocks, const Experiment& experiment, const store::Store& store) {
  const std::int64_t others = store.count_other_versions(experiment.id, experiment.version);
  if (others == 0) return;
  blocks.emplace_back(Paragraph{
      marked(fmt::format(
          "{} of `{}` in this database {} of another version than {}, whose numbers have another meaning, and {} "
          "left out of its tables.",
          others == 1 ? "One attempt" : fmt::format("{} attempts", others), experiment.id, others == 1 ? "is" : "are",
          experiment.version, others == 1 ? "is" : "are")),
      Tone::warning});
}

void add_experiment(std::vector<Block>& blocks, const Shown& shown, bool answers) {
  if (answers) add_sentences(blocks, shown);
  bool any = false;
  for (const Table& table : shown.tables) {
    if (is_sentence(table) || table.source.id == kLaws) continue;
    blocks.emplace_back(table);
    any = true;
  }
  for (const Picture& picture : shown.pictures) {
    if (picture.left_out) continue;
    blocks.emplace_back(picture);
    any = true;
  }
  if (!any) {
    blocks.emplace_back(Paragraph{plain_text("This experiment has no table yet."), Tone::missing});
  }
  for (const Table& table : shown.tables) {
    if (table.source.id == kLaws) blocks.emplace_back(table);
  }
}

// --- what must not be overlooked ---

// The warning that belongs above a block; empty if the block shows no times.
const std::string* warning_of(const Block& block) {
  if (const auto* table = std::get_if<Table>(&block)) {
    return has_rows(*table) && holds_times(table->source) ? &table->warning : nullptr;
  }
  const auto* picture = std::get_if<Picture>(&block);
  return picture != nullptr && picture->missing.empty() ? &picture->warning : nullptr;
}

}  // namespace

void warn_once(std::vector<Block>& blocks, std::size_t place) {
  std::vector<std::string> said;
  for (const Block& block : blocks) {
    const std::string* warning = warning_of(block);
    if (warning == nullptr) continue;
    if (warning->empty()) return;
    if (!contains(said, *warning)) said.push_back(*warning);
  }
  if (said.empty()) return;
  for (Block& block : blocks) {
    if (auto* table = std::get_if<Table>(&block)) table->warning.clear();
    if (auto* picture = std::get_if<Picture>(&block)) picture->warning.clear();
  }
  std::vector<Block> paragraphs;
  for (const std::string& warning : said) paragraphs.emplace_back(Paragraph{plain_text(warning), Tone::warning});
  blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(place), std::make_move_iterator(paragraphs.begin()),
                std::make_move_iterator(paragraphs.end()));
}

Table shared_table(const store::Store& store, const std::string& name, const std::string& experiment) {
  return fill(shared_source(name), store, experiment);
}

std::vector<TableSource> sources_of_the_whole() {
  return {shared_source("runs"), shared_source("failures"), shared_source("leaderboard")};
}

std::vector<TableSource> table_sources(const Experiment& experiment) {
  std::vector<TableSource> sources;
  for (const Resource& file : resources("experiments/" + experiment.id + "/tables/")) {
    sources.push_back(source_at(file));
  }
  for (const std::string_view name : kWhereAny) sources.push_back(shared_source(std::string(name)));
  sources.push_back(shared_source(std::string(kNotPassedSaid)));
  if (!experiment.laws.empty()) sources.push_back(shared_source(std::string(kLaws)));
  return sources;
}

std::vector<Table> tables_of(const Experiment& experiment, const store::Store& store) {
  std::vector<Table> tables;
  for (const Resource& file : resources("experiments/" + experiment.id + "/tables/")) {
    tables.push_back(fill(source_at(file), store));
  }
  for (const std::string_view name : kWhereAny) {
    Table table = shared_table(store, std::string(name), experiment.id);
    if (has_rows(table)) tables.push_back(std::move(table));
  }
  if (!experiment.laws.empty()) tables.push_back(shared_table(store, std::string(kLaws), experiment.id));
  return tables;
}

std::vector<Shown> shown_of(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures) {
  std::vector<Shown> shown;
  for (const Experiment* experiment : plan.experiments) {
    Shown one{experiment, tables_of(*experiment, store), {}};
    std::copy_if(pictures.begin(), pictures.end(), std::back_inserter(one.pictures),
                 [&](const Picture& picture) { return picture.experiment == experiment->id; });
    shown.push_back(std::move(one));
  }
  return shown;
}

std::vector<Block> section(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures,
                           const SectionOptions& options) {
  const std::vector<Shown> shown = shown_of(plan, store, pictures);
  const Experiment* first = plan.experiments.empty() ? nullptr : plan.experiments.front();
  const std::string id = plan.problem != nullptr ? plan.problem->id : first->id;
  std::vector<Block> blocks;
  // By the hand-out's name where it poses the problem: a reader looks for that.
  blocks.emplace_back(Heading{2, plain_text(plan.problem != nullptr ? plan.problem->title : first->title), id});
  const std::string places = plan.problem != nullptr ? points_of(*plan.problem, options.handout) : other_places(*first);
  blocks.emplace_back(Paragraph{marked("`" + id + "` · " + places), Tone::meta});
  blocks.emplace_back(Paragraph{marked(first != nullptr ? first->question : plan.problem->question)});
  if (first != nullptr && !first->analogue.empty())
    blocks.emplace_back(Paragraph{marked("Our analogue: " + first->analogue + ".")});
  if (plan.problem != nullptr) add_deliverables(blocks, *plan.problem, shown, options);
  const std::size_t evidence = blocks.size();
  for (const Shown& one : shown) {
    if (shown.size() > 1)
      blocks.emplace_back(Heading{3, plain_text(one.experiment->title), id + "-" + one.experiment->id});
    add_other_versions(blocks, *one.experiment, store);
    add_experiment(blocks, one, options.answers);
  }
  warn_once(blocks, evidence);
  return blocks;
}

}  // namespace syslab::report
