#include "registry/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::registry {
namespace {

constexpr std::string_view kReserved[] = {"impl", "world_size", "device"};

[[noreturn]] void fault(const Experiment& experiment, const std::string& what) {
  throw Error(ErrorKind::internal, fmt::format("experiment '{}': {}", experiment.id, what));
}

// Letters, digits, '_', '-', '.': names that need no quoting on a command line, in a file name or in SQL.
bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

void check_world_sizes(const Experiment& experiment, std::string_view where, const Values& values) {
  if (values.empty()) fault(experiment, fmt::format("{} gives no values for 'world_size'", where));
  for (const Value& value : values) {
    const auto* size = std::get_if<std::int64_t>(&value);
    if (size == nullptr || *size < 1 || *size > kMostRanks) {
      fault(experiment, fmt::format("{}: a world size is a whole number from 1 to {}, not '{}'", where, kMostRanks,
                                    to_string(value)));
    }
    if (*size > 1 && !experiment.takes_ranks()) {
      fault(experiment, fmt::format("{} asks for {} ranks, and the experiment declares no world_sizes", where, *size));
    }
  }
}

template <typename Range, typename Name>
void check_names(const Experiment& experiment, std::string_view what, const Range& range, Name name_of) {
  std::vector<std::string_view> names;
  for (const auto& item : range) {
    const std::string& name = name_of(item);
    if (!is_name(name)) fault(experiment, fmt::format("'{}' is no name for {}", name, what));
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fault(experiment, fmt::format("{} '{}' is declared twice", what, *twice));
}

void check_axis(const Experiment& experiment, const Axis& axis) {
  if (std::find(std::begin(kReserved), std::end(kReserved), axis.name) != std::end(kReserved)) {
    fault(experiment, fmt::format("axis '{}' is reserved and must not be declared", axis.name));
  }
  if (axis.values.empty()) fault(experiment, fmt::format("axis '{}' has no values", axis.name));
  for (const Values* values : {&axis.values, &axis.also}) {
    for (const Value& value : *values) {
      if (value.index() != axis.values.front().index()) {
        fault(experiment, fmt::format("axis '{}' mixes types: '{}' is not of the type of '{}'", axis.name,
                                      to_string(value), to_string(axis.values.front())));
      }
    }
  }
  for (const auto& [word, meanings] : axis.by_handout) {
    for (const auto& [handout, value] : meanings) {
      if (!axis.accepts(value)) {
        fault(experiment, fmt::format("axis '{}' does not take '{}', which '{}' is to be in {}", axis.name,
                                      to_string(value), word, handout));
      }
    }
  }
}

void check_preset(const Experiment& experiment, const std::string& preset_name, const Preset& preset) {
  for (const auto& [name, values] : preset) {
    if (values.empty()) fault(experiment, fmt::format("preset '{}' gives no values for '{}'", preset_name, name));
    if (name == "impl") {
      for (const Value& value : values) {
        if (experiment.find_implementation(to_string(value)) == nullptr) {
          fault(experiment, fmt::format("preset '{}' names the implementation '{}', which there is not", preset_name,
                                        to_string(value)));
        }
      }
      continue;
    }
    if (name == "device") {
      for (const Value& value : values) {
        if (device_kind_of(to_string(value))) continue;
        fault(experiment,
              fmt::format("preset '{}' names the device '{}'; there are cpu and cuda", preset_name, to_string(value)));
      }
      continue;
    }
    if (name == "world_size") {
      check_world_sizes(experiment, fmt::format("preset '{}'", preset_name), values);
      continue;
    }
    const Axis* axis = experiment.find_axis(name);
    if (axis == nullptr) {
      fault(experiment, fmt::format("preset '{}' names the axis '{}', which there is not", preset_name, name));
    }
    for (const Value& value : values) {
      if (!axis->accepts(value)) {
        fault(experiment,
              fmt::format("preset '{}': axis '{}' does not take '{}'", preset_name, name, to_string(value)));
      }
    }
  }
}

void check_evidence(const Experiment& experiment, const Evidence& evidence) {
  check_preset(experiment, "of evidence", evidence.grid);
  if (!evidence.preset.empty() && !experiment.presets.contains(evidence.preset)) {
    fault(experiment, fmt::format("evidence begins with the preset '{}', which there is not", evidence.preset));
  }
  if (evidence.laws && experiment.laws.empty()) fault(experiment, "evidence wants laws, and there are none");
  const auto poses = [&](const HandoutProblem& one) {
    return evidence.handout.empty() || one.handout == evidence.handout;
  };
  if (evidence.problem.empty() && std::none_of(experiment.problems.begin(), experiment.problems.end(), poses)) {
    fault(experiment, "evidence names no problem, and the experiment poses none in its hand-out");
  }
}

}  // namespace

void validate(const Experiment& experiment) {
  if (!is_name(experiment.id)) fault(experiment, "its id is no name");
  if (experiment.version.empty()) fault(experiment, "has no version");
  if (experiment.title.empty()) fault(experiment, "has no title");
  if (experiment.protocol.empty()) fault(experiment, "names no protocol");
  if (!experiment.run) fault(experiment, "has no function to run");
  check_names(experiment, "axis", experiment.axes, [](const Axis& axis) -> const std::string& { return axis.name; });
  if (!experiment.limit_axis.empty() && experiment.find_axis(experiment.limit_axis) == nullptr) {
    fault(experiment, fmt::format("limits waits by the axis '{}', which there is not", experiment.limit_axis));
  }
  check_names(experiment, "implementation", experiment.implementations,
              [](const Implementation& it) -> const std::string& { return it.name; });
  check_names(experiment, "metric", experiment.metrics, [](const Metric& it) -> const std::string& { return it.name; });
  check_names(experiment, "law", experiment.laws, [](const LawInfo& it) -> const std::string& { return it.id; });
  check_names(experiment, "alias", experiment.aliases, [](const std::string& it) -> const std::string& { return it; });
  check_names(experiment, "tag", experiment.tags, [](const std::string& it) -> const std::string& { return it; });
  const auto references = std::count_if(experiment.implementations.begin(), experiment.implementations.end(),
                                        [](const Implementation& it) { return it.role == Role::reference; });
  if (references > 1) fault(experiment, "has more than one reference");
  for (const Axis& axis : experiment.axes) check_axis(experiment, axis);
  check_world_sizes(experiment, "the declaration", experiment.ranks.values);
  for (const auto& [name, preset] : experiment.presets) check_preset(experiment, name, preset);
  for (const Evidence& one : experiment.evidence) check_evidence(experiment, one);
  for (const SkipRule& rule : experiment.skips) {
    if (rule.reason.empty() || !rule.applies) fault(experiment, "a skip rule lacks its reason or its condition");
  }
  for (const HandoutProblem& problem : experiment.problems) {
    if (problem.handout != "2025" && problem.handout != "2026") {
      fault(experiment, fmt::format("hand-out '{}' is neither 2025 nor 2026", problem.handout));
    }
  }
}

void probe_skip_rules(const Experiment& experiment) {
  Params first;
  for (const Axis& axis : experiment.axes) first.set(axis.name, axis.values.front());
  const std::string implementation =
      experiment.implementations.empty() ? std::string() : experiment.implementations.front().name;
  for (const SkipRule& rule : experiment.skips) {
    try {
      rule.applies(first, implementation);
    } catch (const std::exception& error) {
      fault(experiment, fmt::format("the skip rule '{}' fails: {}", rule.reason, error.what()));
    }
  }
}

}  // namespace syslab::registry
