#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/experiment_json.hpp"
#include "cli/handout.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "plan/expand.hpp"

namespace syslab::cli {
namespace {

std::string posed_in(const registry::Experiment& experiment) {
  std::string text;
  for (const registry::HandoutProblem& problem : experiment.problems) {
    text += (text.empty() ? "" : ", ") + problem.handout;
  }
  return text.empty() ? "-" : text;
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
  std::size_t id_width = 10, handout_width = 8;
  for (const registry::Experiment* experiment : experiments) {
    id_width = std::max(id_width, experiment->id.size());
    handout_width = std::max(handout_width, posed_in(*experiment).size());
  }
  std::string text = console.styled(fmt::format("{:<{}}  {:<{}}  {:>5}  {:>4}  title", "experiment", id_width,
                                                "hand-out", handout_width, "impls", "laws"),
                                    Style::bold);
  text += "\n";
  for (const registry::Experiment* experiment : experiments) {
    text += fmt::format("{:<{}}  {:<{}}  {:>5}  {:>4}  {}{}\n", experiment->id, id_width, posed_in(*experiment),
                        handout_width, experiment->implementations.size(), experiment->laws.size(), experiment->title,
                        experiment->accepts_mine ? " [--mine]" : "");
  }
  if (whole) {
    const auto [handout, standing] = stood(context, options.handout);
    text += "\n" + parts_table(console, handout, standing) + standing_text(options.handout, standing) + "\n";
  }
  console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
