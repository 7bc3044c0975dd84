#include "report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text.hpp"
#include "report/deliverables.hpp"
#include "report/document.hpp"
#include "report/figure.hpp"
#include "report/section.hpp"
#include "report/writers.hpp"

namespace syslab::report {
namespace {

using registry::Experiment;

bool posed_in(const Problem& problem, const std::string& handout) {
  return handout.empty() || problem.points.count(handout) > 0;
}

bool answers(const Experiment& experiment, const Problem& problem, const std::string& handout) {
  if (experiment.problems.empty()) return experiment.id == problem.id;
  return std::any_of(experiment.problems.begin(), experiment.problems.end(),
                     [&](const registry::HandoutProblem& posed) {
                       return posed.problem == problem.id && (handout.empty() || posed.handout == handout);
                     });
}

// Every problem of the hand-out, then what no hand-out poses.
std::vector<SectionPlan> whole_plan(const registry::Registry& registry, const std::string& handout) {
  std::vector<SectionPlan> plans;
  std::vector<std::string> placed;
  for (const Problem& problem : handout_problems()) {
    if (!posed_in(problem, handout)) continue;
    SectionPlan plan{&problem, {}};
    for (const Experiment& experiment : registry.experiments()) {
      if (contains(placed, experiment.id) || !answers(experiment, problem, handout)) continue;
      plan.experiments.push_back(&experiment);
      placed.push_back(experiment.id);
    }
    plans.push_back(std::move(plan));
  }
  for (const Experiment& experiment : registry.experiments()) {
    const bool beside = experiment.problems.empty() && !contains(experiment.tags, "selftest");
    if (beside && !contains(placed, experiment.id)) plans.push_back({nullptr, {&experiment}});
  }
  return plans;
}

std::vector<SectionPlan> plan_of(const registry::Registry& registry, const ReportOptions& options) {
  if (options.experiments.empty()) return whole_plan(registry, options.handout);
  std::vector<SectionPlan> plans;
  for (const Experiment* experiment : registry.select(options.experiments)) {
    const auto& problems = handout_problems();
    const auto found = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) {
      return answers(*experiment, problem, options.handout);
    });
    plans.push_back({found == problems.end() ? nullptr : &*found, {experiment}});
  }
  // Pointers into one list, in the order of the hand-out; what none poses comes last.
  std::stable_sort(plans.begin(), plans.end(), [](const SectionPlan& a, const SectionPlan& b) {
    return a.problem != nullptr && (b.problem == nullptr || a.problem < b.problem);
  });
  return plans;
}

// A sentence for each other hand-out: experiments with results in the store that no part of this report shows, because
// that one alone poses their problems.
std::vector<Text> other_handouts(const registry::Registry& registry, const store::Store& store,
                                 const std::vector<SectionPlan>& plans) {
  std::vector<std::string> placed, found;
  for (const SectionPlan& plan : plans) {
    for (const Experiment* experiment : plan.experiments) placed.push_back(experiment->id);
  }
  for (const auto& row : store.query("SELECT DISTINCT experiment FROM v_newest WHERE ending IN ('ok', 'oom')").rows) {
    found.push_back(row.at(0).text);
  }
  std::map<std::string, std::vector<std::string>> left_out;  // by hand-out
  for (const Experiment& experiment : registry.experiments()) {
    if (contains(placed, experiment.id) || !contains(found, experiment.id)) continue;
    for (const registry::HandoutProblem& posed : experiment.problems) {
      std::vector<std::string>& ids = left_out[posed.handout];
      if (!contains(ids, "`" + experiment.id + "`")) ids.push_back("`" + experiment.id + "`");
    }
  }
  std::vector<Text> sentences;
  for (const auto& [handout, ids] : left_out) {
    sentences.push_back(marked(fmt::format(
        "Also in this store, posed by the hand-out of {} alone: {}; `syslab report --handout {}` shows them.", handout,
        fmt::join(ids, ", "), handout)));
  }
  return sentences;
}

// Of tables about the whole store: it would name every run there is.
Table without_footnote(Table table) {
  table.warning.clear();
  table.footnote.clear();
  return table;
}

// --- figures ---

struct Pictures {
  std::vector<Picture> drawn;
  std::vector<ReportFile> files;
  std::string note;  // why there is none
};

// What a figure will be, whether or not it is drawn.
Picture picture_of(const FigureSource& source) {
  Picture picture;
  picture.id = source.experiment + "-" + source.id;
  picture.experiment = source.experiment;
  picture.title = source.title;
  picture.fills = source.fills;
  picture.left_out = true;
  return picture;
}

Pictures left_out(const std::vector<FigureSource>& sources, const std::string& note) {
  Pictures pictures;
  for (const FigureSource& source : sources) pictures.drawn.push_back(picture_of(source));
  pictures.note = note;
  return pictures;
}

// A page holds its pictures; Markdown and LaTeX refer to files beside them, which standard output has not.
Pictures pictures_of(const std::vector<SectionPlan>& plans, const store::Store& store, const ReportOptions& options) {
  std::vector<FigureSource> sources;
  for (const SectionPlan& plan : plans) {
    for (const Experiment* experiment : plan.experiments) {
      for (FigureSource& source : figures_of(experiment->id)) sources.push_back(std::move(source));
    }
  }
  Pictures pictures;
  if (sources.empty()) return pictures;
  if (!options.figures) return left_out(sources, "No figures here: `--no-figures` left them out.");
  const bool inside = options.format == Format::html, pdf = options.format == Format::latex;
  if (!inside && !options.files) {
    return left_out(sources, "No figures here: they are files beside the report, which `--output FILE` writes.");
  }
  for (Figure& figure : draw_figures(sources, store, {.pdf = pdf})) {
    Picture picture{figure.experiment + "-" + figure.id,
                    figure.experiment,
                    figure.title,
                    figure.caption,
                    figure.svg,
                    "figures/" + figure.experiment + "-" + figure.id,
                    figure.missing,
                    false,
                    figure.notes,
                    figure.warning,
                    figure.footnote,
                    figure.fills};
    if (!inside && picture.missing.empty()) {
      pictures.files.push_back({picture.file + (pdf ? ".pdf" : ".svg"), pdf ? std::move(figure.pdf) : figure.svg});
    }
    pictures.drawn.push_back(std::move(picture));
  }
  return pictures;
}

// --- the document ---

class DocumentMaker {
 public:
  DocumentMaker(const registry::Registry& registry, const store::Store& store, const ReportOptions& options)
      : store_(store),
        options_(options),
        plans_(plan_of(registry, options)),
        pictures_(pictures_of(plans_, store, options)),
        runs_(shared_table(store, "runs")) {
    if (options.experiments.empty() && !options.handout.empty() && options.names_others) {
      others_ = other_handouts(registry, store, plans_);
    }
  }

  // reports/report.txt: "# title", "## heading", "{{name}}" alone on a line, and paragraphs between empty lines, with
  // {handout} in them.
  Document document();
  std::vector<ReportFile>& files() { return pictures_.files; }

 private:
  template <typename OneBlock>
  void add(OneBlock&& block) {
    document_.blocks.emplace_back(std::forward<OneBlock>(block));
  }
  void add_paragraph(std::string text);
  void add_named(const std::string& name);
  void add_leaderboard();

  const store::Store& store_;
  const ReportOptions& options_;
  std::vector<SectionPlan> plans_;
  Pictures pictures_;
  Table runs_;
  std::vector<Text> others_;
  Document document_;
};

void DocumentMaker::add_paragraph(std::string text) {
  constexpr std::string_view kHandout = "{handout}";
  if (const auto at = text.find(kHandout); at != std::string::npos) {
    text.replace(at, kHandout.size(), options_.handout.empty() ? "2025 and 2026" : options_.handout);
  }
  if (!text.empty()) add(Paragraph{marked(text)});
}

void DocumentMaker::add_named(const std::string& name) {
  if (name == "runs") return add(without_footnote(runs_));
  if (name == "failures") return add(without_footnote(shared_table(store_, "failures")));
  if (name == "notes") {
    if (!runs_.warning.empty()) add(Paragraph{plain_text(runs_.warning), Tone::warning});
    for (const Text& other : others_) add(Paragraph{other, Tone::missing});
    if (!pictures_.note.empty()) add(Paragraph{marked(pictures_.note), Tone::missing});
    return;
  }
  if (name == "leaderboard") return add_leaderboard();
  if (name != "problems") {
    throw Error(ErrorKind::internal, fmt::format("reports/report.txt: there is no '{}' to fill in", name));
  }
  for (const SectionPlan& plan : plans_) {
    for (Block& block : section(plan, store_, pictures_.drawn, {options_.handout, options_.answers})) {
      add(std::move(block));
    }
  }
}

// Of all experiments at once, or of each that was named and has entries.
void DocumentMaker::add_leaderboard() {
  std::vector<Table> boards;
  for (const std::string& experiment : options_.experiments) {
    boards.push_back(shared_table(store_, "leaderboard", experiment));
  }
  if (boards.empty()) boards.push_back(shared_table(store_, "leaderboard"));
  const auto filled = std::stable_partition(boards.begin(), boards.end(),
                                            [](const Table& board) { return !board.result.rows.empty(); });
  boards.erase(std::max(filled, boards.begin() + 1), boards.end());  // of those without entries one says so
  for (Table& board : boards) {
    board.footnote.clear();  // the warning stays: a rank from a smoke run is none
    add(std::move(board));
  }
}

Document DocumentMaker::document() {
  const auto skeleton = find_resource("reports/report.txt");
  if (!skeleton) throw Error(ErrorKind::internal, "this binary does not carry 'reports/report.txt'");
  std::string paragraph;
  for (const std::string& line : split(std::string(*skeleton) + "\n\n", '\n')) {
    if (line.starts_with("# ")) {
      document_.title = line.substr(2);
    } else if (line.starts_with("## ")) {
      std::string anchor = line.substr(3);
      std::replace(anchor.begin(), anchor.end(), ' ', '-');
      add(Heading{2, plain_text(line.substr(3)), anchor});
    } else if (line.starts_with("{{") && line.ends_with("}}")) {
      add_named(line.substr(2, line.size() - 4));
    } else if (line.empty()) {
      add_paragraph(std::exchange(paragraph, {}));
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  return std::move(document_);
}

// For machines: every table of every chosen experiment, one after the other.
std::string render_data(const registry::Registry& registry, const store::Store& store, const ReportOptions& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (const SectionPlan& plan : plan_of(registry, options)) {
    for (const Experiment* experiment : plan.experiments) {
      for (const Table& table : tables_of(*experiment, store)) {
        const std::string written = write(table, options.format);
        if (options.format == Format::json) {
          list.push_back(nlohmann::ordered_json::parse(written));
        } else {
          text += fmt::format("# {}/{}\n{}\n", experiment->id, table.source.id, written);
        }
      }
    }
  }
  return options.format == Format::json ? list.dump(2) + "\n" : text;
}

}  // namespace

Report render(const registry::Registry& registry, const store::Store& store, const ReportOptions& options) {
  if (options.format == Format::csv || options.format == Format::json) {
    return {render_data(registry, store, options), {}};
  }
  DocumentMaker maker(registry, store, options);
  const Document document = maker.document();
  const auto written = [&] {
    switch (options.format) {
      case Format::latex:
        return write_tex(document);
      case Format::html:
        return write_html(document);
      default:
        return write_markdown(document);
    }
  };
  return {written(), std::move(maker.files())};
}

}  // namespace syslab::report
