#include "cli/experiment_json.hpp"

#include <nlohmann/json.hpp>

namespace syslab::cli {
namespace {

Json values_json(const Values& values) {
  Json json = Json::array();
  for (const Value& value : values) json.push_back(to_json_value(value));
  return json;
}

}  // namespace

Json experiment_json(const registry::Experiment& experiment) {
  Json axes = Json::array(), presets = Json::object(), implementations = Json::array(), metrics = Json::array(),
       laws = Json::array(), problems = Json::array(), chosen = Json::array();
  for (const Axis& axis : experiment.axes) {
    axes.push_back({{"name", axis.name},
                    {"values", values_json(axis.values)},
                    {"also", values_json(axis.also)},
                    {"closed", axis.closed},
                    {"names_files", axis.kind == AxisKind::file},
                    {"help", axis.help}});
  }
  for (const auto& [name, preset] : experiment.presets) {
    Json json = Json::object();
    for (const auto& [axis, values] : preset) json[axis] = values_json(values);
    presets[name] = json;
  }
  for (const registry::Implementation& it : experiment.implementations) {
    implementations.push_back({{"name", it.name},
                               {"teaches", it.teaches},
                               {"dtypes", it.dtypes},
                               {"device", to_string(it.device)},
                               {"minimum_sm", it.minimum_sm},
                               {"maximum_sm", it.maximum_sm > 0 ? Json(it.maximum_sm) : Json()},
                               {"takes", it.takes},
                               {"role", to_string(it.role)},
                               {"reference", it.role == Role::reference},
                               {"peer", it.role == Role::peer},
                               {"unavailable", it.unavailable.empty() ? Json() : Json(it.unavailable)}});
  }
  for (const registry::Choice& row : experiment.chosen) {
    chosen.push_back({{"implementation", row.implementation}, {"because", row.because}});
  }
  for (const registry::Metric& metric : experiment.metrics) {
    metrics.push_back({{"name", metric.name}, {"unit", metric.unit}, {"help", metric.help}});
  }
  for (const LawInfo& law : experiment.laws) {
    laws.push_back({{"id", law.id}, {"statement", law.statement}, {"asked_by_handout", law.asked_by_handout}});
  }
  for (const registry::HandoutProblem& problem : experiment.problems) {
    problems.push_back({{"handout", problem.handout}, {"problem", problem.problem}, {"points", problem.points}});
  }
  return {{"id", experiment.id},
          {"version", experiment.version},
          {"title", experiment.title},
          {"question", experiment.question},
          {"analogue", experiment.analogue},
          {"aliases", experiment.aliases},
          {"tags", experiment.tags},
          {"problems", problems},
          {"axes", axes},
          {"world_sizes", values_json(experiment.ranks.values)},
          {"takes_ranks", experiment.takes_ranks()},
          {"presets", presets},
          {"implementations", implementations},
          {"chosen", chosen},
          {"metrics", metrics},
          {"laws", laws},
          {"accepts_mine", experiment.accepts_mine},
          {"oom_is_an_answer", experiment.oom_is_an_answer}};
}

}  // namespace syslab::cli
