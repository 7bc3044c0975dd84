#include "report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text.hpp"

namespace syslab::report {
namespace {

using registry::Experiment;
using Fields = std::map<std::string, std::function<std::string()>>;

std::string resource(const std::string& path) {
  const auto text = find_resource(path);
  if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", path));
  return std::string(*text);
}

// Replaces {{name}}; a paragraph that becomes empty leaves no gap.
std::string fill_template(const std::string& path, const Fields& fields) {
  std::string text = resource(path);
  for (std::size_t open = text.find("{{"); open != std::string::npos; open = text.find("{{", open)) {
    const std::size_t close = text.find("}}", open);
    if (close == std::string::npos) throw Error(ErrorKind::internal, path + ": '{{' without '}}'");
    const std::string name = text.substr(open + 2, close - open - 2);
    const auto field = fields.find(name);
    if (field == fields.end()) {
      throw Error(ErrorKind::internal, fmt::format("{}: there is no field '{}' to fill in", path, name));
    }
    std::string value = field->second();
    while (!value.empty() && value.back() == '\n') value.pop_back();
    std::size_t end = close + 2;
    if (value.empty()) {
      while (end < text.size() && text[end] == '\n') ++end;
    }
    text.replace(open, end - open, value);
    open += value.size();
  }
  while (text.size() > 1 && text[text.size() - 1] == '\n' && text[text.size() - 2] == '\n') text.pop_back();
  return text;
}

TableSource source_at(const std::string& path, std::string_view text) {
  const std::size_t slash = path.rfind('/');
  return parse_table(path.substr(slash + 1, path.size() - slash - 1 - std::string_view(".sql").size()),
                     std::string(text));
}

Table shared_table(const store::Store& store, const std::string& name, const std::string& experiment = {}) {
  const std::string path = "reports/tables/" + name + ".sql";
  return fill(source_at(path, resource(path)), store, experiment);
}

// The tables and sentences of an experiment, in order of their file names.
std::vector<Table> own_tables(const store::Store& store, const Experiment& experiment) {
  std::vector<Table> tables;
  for (const Resource& file : resources("experiments/" + experiment.id + "/tables/")) {
    tables.push_back(fill(source_at(std::string(file.path), file.text), store));
  }
  return tables;
}

std::vector<Table> all_tables(const store::Store& store, const Experiment& experiment) {
  std::vector<Table> tables = own_tables(store, experiment);
  if (!experiment.laws.empty()) tables.push_back(shared_table(store, "laws", experiment.id));
  return tables;
}

bool posed_in(const Experiment& experiment, const std::string& handout) {
  return handout.empty() || experiment.problems.empty() ||
         std::any_of(experiment.problems.begin(), experiment.problems.end(),
                     [&](const registry::HandoutProblem& problem) { return problem.handout == handout; });
}

// Where the hand-out poses it; what it does not pose comes last.
std::size_t position_in_handout(const Experiment& experiment) {
  const std::vector<std::string> order = split(resource("reports/handout_order.txt"), '\n');
  std::size_t position = order.size();
  const auto consider = [&](const std::string& name) {
    const auto found = std::find(order.begin(), order.end(), name);
    position = std::min(position, static_cast<std::size_t>(found - order.begin()));
  };
  consider(experiment.id);
  for (const registry::HandoutProblem& problem : experiment.problems) consider(problem.problem);
  return position;
}

std::vector<const Experiment*> chosen(const registry::Registry& registry, const ReportOptions& options) {
  if (!options.experiments.empty()) return registry.select(options.experiments);
  std::vector<const Experiment*> found;
  for (const Experiment& experiment : registry.experiments()) {
    const bool selftest =
        std::find(experiment.tags.begin(), experiment.tags.end(), "selftest") != experiment.tags.end();
    if (!selftest && posed_in(experiment, options.handout)) found.push_back(&experiment);
  }
  std::stable_sort(found.begin(), found.end(), [](const Experiment* a, const Experiment* b) {
    return position_in_handout(*a) < position_in_handout(*b);
  });
  return found;
}

std::string handouts_of(const Experiment& experiment) {
  if (experiment.problems.empty()) return "posed by no hand-out";
  std::vector<std::string> places;
  for (const registry::HandoutProblem& problem : experiment.problems) {
    places.push_back(fmt::format("hand-out {}: {} ({} {})", problem.handout, problem.problem, problem.points,
                                 problem.points == 1 ? "point" : "points"));
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

std::string section(const Experiment& experiment, const store::Store& store) {
  const std::vector<Table> tables = all_tables(store, experiment);
  std::string sentences, written, laws;
  for (const Table& table : tables) {
    if (!table.source.sentence.empty()) {
      sentences += write_sentences(table);
    } else if (table.source.id == "laws") {
      laws += write(table, Format::markdown);
    } else {
      written += write(table, Format::markdown) + "\n";
    }
  }
  if (written.empty() && sentences.empty()) written = "This experiment has no table yet.";
  return fill_template("reports/experiment.md.in", {{"title", [&] { return experiment.title; }},
                                                    {"id", [&] { return experiment.id; }},
                                                    {"handouts", [&] { return handouts_of(experiment); }},
                                                    {"question", [&] { return experiment.question; }},
                                                    {"analogue", [&] { return experiment.analogue; }},
                                                    {"sentences", [&] { return sentences; }},
                                                    {"tables", [&] { return written; }},
                                                    {"laws", [&] { return laws; }}});
}

std::string render_markdown(const std::vector<const Experiment*>& experiments, const store::Store& store,
                            const ReportOptions& options) {
  const Table runs = shared_table(store, "runs");
  const Table failures = shared_table(store, "failures");
  const auto sections = [&] {
    std::string text;
    for (const Experiment* experiment : experiments) text += section(*experiment, store) + "\n";
    return text;
  };
  const auto without_footnote = [](Table table) {
    table.warning.clear();
    table.footnote.clear();
    return write(table, Format::markdown);
  };
  return fill_template("reports/report.md.in",
                       {{"handout", [&] { return options.handout.empty() ? "2025 and 2026" : options.handout; }},
                        {"warning", [&] { return runs.warning.empty() ? "" : "> **" + runs.warning + "**"; }},
                        {"table:runs", [&] { return without_footnote(runs); }},
                        {"experiments", sections},
                        {"table:failures", [&] { return without_footnote(failures); }}});
}

// For machines: every table of every chosen experiment, one after the other.
std::string render_data(const std::vector<const Experiment*>& experiments, const store::Store& store, Format format) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (const Experiment* experiment : experiments) {
    for (const Table& table : all_tables(store, *experiment)) {
      const std::string written = write(table, format);
      if (format == Format::json) {
        list.push_back(nlohmann::ordered_json::parse(written));
      } else {
        text += fmt::format("# {}/{}\n{}\n", experiment->id, table.source.id, written);
      }
    }
  }
  return format == Format::json ? list.dump(2) + "\n" : text;
}

}  // namespace

std::string render(const registry::Registry& registry, const store::Store& store, const ReportOptions& options) {
  const std::vector<const Experiment*> experiments = chosen(registry, options);
  if (options.format != Format::markdown) return render_data(experiments, store, options.format);
  return render_markdown(experiments, store, options);
}

}  // namespace syslab::report
