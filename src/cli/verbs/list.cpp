#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "cli/experiment_json.hpp"
#include "cli/handout.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "plan/expand.hpp"
#include "store/damaged.hpp"

namespace syslab::cli {
namespace {

// Years that pose an experiment's problem, for its heading.
std::string posed_in(const registry::Experiment& experiment) {
  std::set<std::string> years;
  for (const registry::HandoutProblem& problem : experiment.problems) years.insert(problem.handout);
  if (years.empty()) return "Of no hand-out";
  return fmt::format("Hand-out{} {}", years.size() > 1 ? "s" : "", fmt::join(years, " and "));
}

// Points of each problem by what is stored: what its parts are worth.
class Worth {
 public:
  Worth(const Context& context, std::span<const registry::Experiment* const> experiments) {
    std::error_code ignored;
    if (!std::filesystem::exists(context.global.database, ignored)) return;
    std::set<std::string> years;
    for (const registry::Experiment* one : experiments) {
      for (const registry::HandoutProblem& problem : one->problems) years.insert(problem.handout);
    }
    try {
      for (const std::string& year : years) {
        const auto [handout, standing] = stood(context, year);
        for (std::size_t i = 0; i < handout.parts.size(); ++i) {
          of_[{year, handout.parts[i].problem}] += standing.parts[i].worth;
        }
      }
    } catch (const store::DamagedDatabase&) {
      throw;
    } catch (const Error& error) {  // the list is there without it
      context.console.note(fmt::format("what is answered is not told: {}", error.what()));
    }
  }

  // Of an experiment, a year after the other where they differ: "4.5", "2, 3"; "-" where no database is.
  std::string text_of(const registry::Experiment& experiment) const {
    return by_year(experiment, [this](const registry::HandoutProblem& problem) -> std::optional<double> {
      const auto found = of_.find({problem.handout, problem.problem});
      return found == of_.end() ? std::nullopt : std::optional(found->second);
    });
  }
  static std::string points_of(const registry::Experiment& experiment) {
    return by_year(experiment, [](const registry::HandoutProblem& problem) -> std::optional<double> {
      return static_cast<double>(problem.points);
    });
  }

 private:
  template <typename ValueOf>
  static std::string by_year(const registry::Experiment& experiment, const ValueOf& value_of) {
    std::map<std::string, double> sums;
    for (const registry::HandoutProblem& problem : experiment.problems) {
      if (const std::optional<double> one = value_of(problem)) sums[problem.handout] += *one;
    }
    std::vector<std::string> texts;
    for (const auto& [year, sum] : sums) {
      const std::string text = fmt::format("{:.3g}", sum);
      if (texts.empty() || texts.back() != text) texts.push_back(text);
    }
    return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
  }

  std::map<std::pair<std::string, std::string>, double> of_;  // by year and problem
};

std::string table_of(const Console& console, const std::vector<const registry::Experiment*>& experiments,
                     const Worth& worth) {
  std::map<std::string, std::vector<const registry::Experiment*>> groups;
  std::size_t width = 10;
  for (const registry::Experiment* one : experiments) {
    groups[posed_in(*one)].push_back(one);
    width = std::max(width, one->id.size());
  }
  std::string text;
  // Both years' first, what no hand-out poses last.
  for (const char* begin : {"Hand-outs", "Hand-out 2026", "Hand-out 2025", "Of no"}) {
    for (const auto& [heading, members] : groups) {
      if (!heading.starts_with(begin)) continue;
      text += (text.empty() ? "" : "\n") + console.styled(heading, Style::bold) + "\n";
      text += fmt::format("{:<{}}  {:>6}  {:>8}  {:>5}  {:>4}  title\n", "experiment", width, "points", "answered",
                          "impls", "laws");
      for (const registry::Experiment* one : members) {
        text += fmt::format("{:<{}}  {:>6}  {:>8}  {:>5}  {:>4}  {}{}\n", one->id, width, Worth::points_of(*one),
                            worth.text_of(*one), one->implementations.size(), one->laws.size(), one->title,
                            one->accepts_mine ? " [--mine]" : "");
      }
    }
  }
  return text;
}

Json deliverables_json(const Handout& handout, const evidence::Standing& standing) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < handout.parts.size(); ++i) {
    const evidence::PartStanding& one = standing.parts[i];
    parts.push_back({{"problem", handout.parts[i].problem},
                     {"part", handout.parts[i].letter},
                     {"points", handout.parts[i].points},
                     {"worth", one.worth},
                     {"answered", one.answered},
                     {"least", {one.least.done, one.least.of}},
                     {"asked", {one.asked.done, one.asked.of}}});
  }
  Json all = to_json(standing);
  all["parts"] = parts;
  return all;
}

}  // namespace

Exit execute(const Context& context, const ListOptions& options) {
  plan::Selection selection;
  selection.patterns = options.patterns;
  if (!options.tag.empty()) selection.patterns.push_back("tag:" + options.tag);
  if (selection.patterns.empty()) selection.patterns.emplace_back("all");
  selection.handout = options.handout;
  const Console& console = context.console;
  if (context.registry.experiments().empty()) throw Error(ErrorKind::internal, "this binary has no experiments");
  const auto experiments = plan::selected_experiments(context.registry, selection);
  const bool whole = !options.handout.empty() && options.patterns.empty() && options.tag.empty();
  if (console.json()) {
    Json all = Json::array();
    for (const registry::Experiment* experiment : experiments) all.push_back(experiment_json(*experiment));
    Json document{{"experiments", all}};
    if (whole) {
      const auto [handout, standing] = stood(context, options.handout);
      document["handout"] = deliverables_json(handout, standing);
    }
    console.print_document(document);
    return Exit::well;
  }
  std::string text = table_of(console, experiments, Worth(context, experiments));
  if (whole) {
    const auto [handout, standing] = stood(context, options.handout);
    text += "\n" + parts_table(console, handout, standing) + standing_text(options.handout, standing) + "\n";
  }
  console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
