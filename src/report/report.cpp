#include "report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "report/answers.hpp"
#include "report/deliverables.hpp"
#include "report/document.hpp"
#include "report/figure/figure.hpp"
#include "report/first_page.hpp"
#include "report/section.hpp"
#include "report/writers/writers.hpp"

namespace syslab::report {
namespace {

using registry::Experiment;

bool posed_in(const Problem& problem, const std::string& handout) {
  return handout.empty() || problem.points.count(handout) > 0;
}

// What is worth no point is no part of a hand-in.
bool is_graded(const Problem& problem, const std::string& handout) {
  return std::ranges::any_of(problem.points, [&](const auto& posed) {
    return posed.second > 0 && (handout.empty() || posed.first == handout);
  });
}

bool answers(const Experiment& experiment, const Problem& problem, const std::string& handout) {
  if (experiment.problems.empty()) return experiment.id == problem.id;
  return std::any_of(experiment.problems.begin(), experiment.problems.end(),
                     [&](const registry::HandoutProblem& posed) {
                       return posed.problem == problem.id && (handout.empty() || posed.handout == handout);
                     });
}

// Every problem of the hand-out, then the experiments that are not in a hand-out.
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
  // Pointers into one list, in the order of the hand-out; experiments that are not in it come last.
  std::stable_sort(plans.begin(), plans.end(), [](const SectionPlan& a, const SectionPlan& b) {
    return a.problem != nullptr && (b.problem == nullptr || a.problem < b.problem);
  });
  return plans;
}

std::string part_name(const SectionPlan& plan) {
  return plan.problem != nullptr ? plan.problem->id : plan.experiments.empty() ? "" : plan.experiments.front()->id;
}

bool is_hand_in(const ReportOptions& options) {
  return options.experiments.empty() && options.extent == Extent::hand_in;
}

bool has_appendix(const ReportOptions& options) { return is_hand_in(options) && !options.appendix.empty(); }

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

// The description of a figure, whether or not it is drawn.
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

// An HTML page contains its pictures; Markdown and LaTeX refer to files next to them, which standard output does not
// have.
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
  const std::string handout = options.extent == Extent::hand_in ? options.handout : std::string();
  const bool inside = options.format == Format::html, pdf = options.format == Format::latex;
  if (!inside && !options.files) {
    return left_out(sources, "No figures here: they are files beside the report, which `--output FILE` writes.");
  }
  for (Figure& figure : draw_figures(sources, store, {.pdf = pdf, .handout = handout})) {
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
                    figure.fills,
                    figure.file};
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
        runs_(shared_table(store, "runs")),
        all_parts_(1 + plans_.size() * (has_appendix(options) ? 2 : 1)) {
    tell("figures");
    pictures_ = pictures_of(plans_, store, options);
    if (options.experiments.empty() && !options.handout.empty() && options.names_others) {
      others_ = other_handouts(registry, store, plans_);
    }
  }

  // Of a skeleton, reports/report.txt or handin.txt: "# title", "## heading", "{{name}}" alone on a line, and
  // paragraphs between empty lines, with {handout} in them.
  Document document(const std::string& skeleton);
  // The pictures' that the document shows.
  std::vector<ReportFile> files_of(const Document& document) const;

 private:
  template <typename OneBlock>
  void add(OneBlock&& block) {
    document_.blocks.emplace_back(std::forward<OneBlock>(block));
  }
  void tell(const std::string& part) {
    if (options_.progress) options_.progress(part, parts_++, all_parts_);
  }
  // A hand-in of which some runs alone are to be warned of says so where they are shown.
  bool warns_beside() const { return is_hand_in(options_) && runs_.smoke_runs.size() < runs_.result.rows.size(); }
  void add_paragraph(std::string text);
  void add_named(const std::string& name);
  void add_leaderboard();
  void add_hand_in();

  const store::Store& store_;
  const ReportOptions& options_;
  std::vector<SectionPlan> plans_;
  Pictures pictures_;
  Table runs_;
  std::vector<Text> others_;
  Document document_;
  std::size_t parts_ = 0, all_parts_;  // that were told
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
    if (!runs_.warning.empty() && !warns_beside()) add(Paragraph{plain_text(runs_.warning), Tone::warning});
    Text beside;
    for (const Text& other : others_) beside = beside.empty() ? other : beside + plain_text(" ") + other;
    if (!pictures_.note.empty()) {
      beside = beside.empty() ? marked(pictures_.note) : beside + marked(" " + pictures_.note);
    }
    if (!beside.empty()) add(Paragraph{beside, Tone::missing});
    return;
  }
  if (name == "leaderboard") return add_leaderboard();
  if (name == "hand-in") return add_hand_in();
  if (name != "problems") {
    throw Error(ErrorKind::internal, fmt::format("reports/*.txt: there is no '{}' to fill in", name));
  }
  for (const SectionPlan& plan : plans_) {
    tell(part_name(plan));
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

// The first page, and after it each problem's answers.
void DocumentMaker::add_hand_in() {
  std::vector<Answered> problems;
  const bool only_smoke = !runs_.result.rows.empty() && runs_.smoke_runs.size() == runs_.result.rows.size();
  const bool to_a_file = options_.files || options_.format == Format::html;
  const std::string device = only_machine(store_);
  const std::vector<GpuResults> gpu_results = results_of_gpus(store_);
  CaptionsShown captions;
  for (const SectionPlan& plan : plans_) {
    tell(part_name(plan));
    if (plan.problem == nullptr || !is_graded(*plan.problem, options_.handout)) continue;
    const auto own = options_.own_words.find(plan.problem->id);
    std::vector<std::string> experiments;
    for (const registry::Experiment* one : plan.experiments) experiments.push_back(one->id);
    problems.push_back(answered(plan, store_, pictures_.drawn,
                                {.handout = options_.handout,
                                 .answers = options_.answers,
                                 .own_words = own == options_.own_words.end() ? "" : own->second,
                                 .appendix = options_.appendix,
                                 .device = device,
                                 .gpus = gpus_of(gpu_results, experiments),
                                 .only_words = only_smoke || !to_a_file,
                                 .is_page = to_a_file,
                                 .smoke_is_told = only_smoke},
                                captions));
  }
  for (Block& block :
       first_page(store_, {options_.handout, options_.standing, options_.appendix, options_.missing}, problems)) {
    add(std::move(block));
  }
  add_named("notes");
  if (to_a_file) add(Contents{});  // a terminal has no links
  std::vector<Block> blocks;
  for (Answered& one : problems) std::move(one.blocks.begin(), one.blocks.end(), std::back_inserter(blocks));
  if (runs_.warning.empty() || warns_beside()) warn_once(blocks, 0);  // else it is told already
  for (Block& block : blocks) add(std::move(block));
}

std::vector<ReportFile> DocumentMaker::files_of(const Document& document) const {
  std::vector<ReportFile> files;
  for (const Block& block : document.blocks) {
    const auto* picture = std::get_if<Picture>(&block);
    if (picture == nullptr) continue;
    for (const ReportFile& file : pictures_.files) {
      if (file.path.starts_with(picture->file + ".")) files.push_back(file);
    }
  }
  return files;
}

Document DocumentMaker::document(const std::string& skeleton) {
  document_ = {};
  const auto text = find_resource("reports/" + skeleton);
  if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry 'reports/{}'", skeleton));
  std::string paragraph;
  for (const std::string& line : split(std::string(*text) + "\n\n", '\n')) {
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
  std::vector<Table> all;
  std::string text;
  const std::vector<SectionPlan> plans = plan_of(registry, options);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (options.progress) options.progress(part_name(plans[i]), i, plans.size());
    for (const Experiment* experiment : plans[i].experiments) {
      for (Table& table : tables_of(*experiment, store)) {
        if (options.format == Format::json) {
          all.push_back(std::move(table));
        } else {
          text += fmt::format("# {}/{}\n{}\n", experiment->id, table.source.id, write(table, options.format));
        }
      }
    }
  }
  return options.format == Format::json ? write_json(all) : text;
}

}  // namespace

std::vector<SourceFile> sources(const registry::Registry& registry, const ReportOptions& options) {
  std::vector<SourceFile> all;
  for (const SectionPlan& plan : plan_of(registry, options)) {
    for (const Experiment* experiment : plan.experiments) {
      for (const TableSource& table : table_sources(*experiment)) {
        const bool sentence = table.title.empty();
        all.push_back(
            {experiment->id, sentence ? "sentence" : "table", sentence ? table.sentence : table.title, table.file});
      }
      for (const FigureSource& figure : figures_of(experiment->id)) {
        all.push_back({experiment->id, "figure", figure.title, figure.file});
      }
    }
  }
  if (options.experiments.empty()) {
    for (const TableSource& table : sources_of_the_whole()) {
      all.push_back({"all", "table", table.title, table.file});
    }
  }
  return all;
}

Report render(const registry::Registry& registry, const store::Store& store, const ReportOptions& options) {
  if (options.format == Format::csv || options.format == Format::json) {
    return {render_data(registry, store, options), {}};
  }
  DocumentMaker maker(registry, store, options);
  const auto written = [&](const Document& document) {
    switch (options.format) {
      case Format::latex:
        return write_tex(document);
      case Format::html:
        return write_html(document);
      default:
        return write_markdown(document);
    }
  };
  const bool hands_in = is_hand_in(options);
  Document document = maker.document(hands_in ? "handin.txt" : "report.txt");
  document.hand_in = hands_in;
  Report report{written(document), maker.files_of(document)};
  if (!has_appendix(options)) return report;
  const Document appendix = maker.document("report.txt");
  report.files.push_back({options.appendix, written(appendix)});
  for (ReportFile& file : maker.files_of(appendix)) {
    const bool there = std::ranges::find(report.files, file.path, &ReportFile::path) != report.files.end();
    if (!there) report.files.push_back(std::move(file));
  }
  return report;
}

}  // namespace syslab::report
