#include "plan/expand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"
#include "plan/assignment.hpp"

namespace syslab::plan {
namespace {

using registry::Experiment;
using Experiments = std::vector<const Experiment*>;

constexpr std::size_t kMostCases = 1'000'000;  // of one experiment

bool poses(const Experiment& experiment, std::string_view handout) {
  return std::any_of(experiment.problems.begin(), experiment.problems.end(),
                     [handout](const registry::HandoutProblem& problem) { return problem.handout == handout; });
}

std::string texts(const Values& values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + to_string(value);
  return text;
}

std::string where(const Experiments& experiments) {
  return experiments.size() == 1 ? "of " + experiments[0]->id
                                 : fmt::format("of the {} selected experiments", experiments.size());
}

// What a word that hand-outs use means in the hand-out of `year`.
Value by_handout(const Experiment& experiment, const Axis& axis, const std::string& word, const std::string& year) {
  const std::map<std::string, Value>& meanings = axis.by_handout.at(word);
  if (const auto found = meanings.find(year); found != meanings.end()) return found->second;
  std::string say;
  for (const auto& [handout, value] : meanings) {
    say += fmt::format("{}--handout {} ({})", say.empty() ? "" : " or ", handout, to_string(value));
  }
  throw Error(ErrorKind::usage, fmt::format("value '{}' of axis '{}' of {} is another one in each hand-out; say {}",
                                            word, axis.name, experiment.id, say));
}

Value axis_value(const Experiment& experiment, const Axis& axis, const std::string& text, const std::string& year) {
  if (axis.by_handout.contains(text)) return by_handout(experiment, axis, text, year);
  const std::optional<Value> value = typed(text, axis.values.front());
  if (!value) {
    throw Error(ErrorKind::usage, fmt::format("axis '{}' of {} takes {}, not '{}' (declared: {})", axis.name,
                                              experiment.id, type_name(axis.values.front()), text, texts(axis.values)));
  }
  if (axis.accepts(*value)) return *value;
  if (!axis.closed) {  // for an open axis any value of its type, but none below zero if no declared value is
    throw Error(ErrorKind::usage, fmt::format("axis '{}' of {} takes nothing below 0, not '{}' (declared: {})",
                                              axis.name, experiment.id, text, texts(axis.values)));
  }
  std::vector<std::string> known;
  for (const Values* values : {&axis.values, &axis.also}) {
    for (const Value& one : *values) known.push_back(to_string(one));
  }
  for (const auto& [word, meanings] : axis.by_handout) known.push_back(word);
  throw Error(ErrorKind::usage,
              unknown_name(fmt::format("value of axis '{}' of {}", axis.name, experiment.id), text, known));
}

// That the selection asks for; null where it asks for none.
const registry::Preset* preset_of(const Experiment& experiment, const Selection& selection) {
  if (selection.unnamed_preset) return &*selection.unnamed_preset;
  return selection.preset ? &experiment.presets.at(*selection.preset) : nullptr;
}

Values axis_values(const Experiment& experiment, const Axis& axis, const Selection& selection) {
  Values values;
  bool assigned = false;
  for (const AxisAssignment& assignment : selection.assignments) {
    if (assignment.name != axis.name) continue;
    assigned = true;
    for (const std::string& text : assignment.values) {
      values.push_back(axis_value(experiment, axis, text, selection.handout));
      if (selection.file_names == FileNames::refused && axis.names_file(values.back())) {
        throw Error(
            ErrorKind::usage,
            fmt::format("axis '{}' of {} names the file '{}', but a claim or a database chooses no file; expected a "
                        "file that you name\ntry: syslab run {} -a {}=FILE",
                        axis.name, experiment.id, text, experiment.id, axis.name));
      }
    }
  }
  if (!assigned) {
    values = axis.values;
    if (const registry::Preset* const preset = preset_of(experiment, selection)) {
      if (const auto found = preset->find(axis.name); found != preset->end()) values = found->second;
    }
  }
  Values distinct;  // "seq=128,128" is one case
  std::set<Value> seen;
  for (Value& value : values) {
    if (seen.insert(value).second) distinct.push_back(std::move(value));
  }
  return distinct;
}

// Patterns of --impl and of the reserved axis `impl`.
std::vector<std::string> implementation_patterns(const Selection& selection) {
  std::vector<std::string> patterns;
  for (const std::string& item : selection.implementations) {
    for (const std::string& part : split(item, ',')) patterns.push_back(trim(part));
  }
  for (const AxisAssignment& assignment : selection.assignments) {
    if (assignment.name == "impl") patterns.insert(patterns.end(), assignment.values.begin(), assignment.values.end());
  }
  return patterns;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](const std::string& pattern) { return glob_match(pattern, name); });
}

// If an experiment takes several ranks, the numbers asked for must be ones that a single host can have; other
// experiments stay at one, as with any axis that they lack.
void check_world_sizes(const Experiments& experiments, const AxisAssignment& assignment) {
  const bool taken =
      std::any_of(experiments.begin(), experiments.end(), [](const Experiment* it) { return it->takes_ranks(); });
  for (const std::string& text : assignment.values) {
    const std::optional<std::int64_t> size = parse_integer(text);
    if (!size || *size < 1 || *size > registry::kMostRanks) {
      throw Error(ErrorKind::usage,
                  fmt::format("axis 'world_size' takes 1 to {} ranks, each a process of this host, not '{}'",
                              registry::kMostRanks, text));
    }
    if (*size > 1 && !taken) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: axis 'world_size' takes 1, not '{}': a case is one process's work there",
                              experiments.size() == 1 ? experiments[0]->id : "the selected experiments", text));
    }
  }
}

void check_axes(const Experiments& experiments, const Selection& selection) {
  for (const AxisAssignment& assignment : selection.assignments) {
    if (assignment.name == "impl" || assignment.name == "device") continue;
    if (assignment.name == "world_size") {
      check_world_sizes(experiments, assignment);
      continue;
    }
    if (std::any_of(experiments.begin(), experiments.end(),
                    [&](const Experiment* it) { return it->find_axis(assignment.name) != nullptr; })) {
      continue;
    }
    std::vector<std::string> known;
    for (const Experiment* experiment : experiments) {
      for (const Axis& axis : experiment->axes) {
        if (std::find(known.begin(), known.end(), axis.name) == known.end()) known.push_back(axis.name);
      }
    }
    known.insert(known.end(), {"impl", "world_size", "device"});
    throw Error(ErrorKind::usage, unknown_name("axis " + where(experiments), assignment.name, known));
  }
}

// The words of -a device= and --device.
std::vector<std::string> device_words(const Selection& selection) {
  std::vector<std::string> devices;
  for (const std::string& item : selection.devices) {
    for (const std::string& part : split(item, ',')) devices.push_back(trim(part));
  }
  for (const AxisAssignment& assignment : selection.assignments) {
    if (assignment.name == "device") devices.insert(devices.end(), assignment.values.begin(), assignment.values.end());
  }
  return devices;
}

// Those that are devices.
std::vector<DeviceKind> kinds_of(const std::vector<std::string>& words) {
  std::vector<DeviceKind> kinds;
  for (const std::string& word : words) {
    if (const auto kind = device_kind_of(word)) kinds.push_back(*kind);
  }
  return kinds;
}

void check_devices(const Experiments& experiments, const Selection& selection) {
  const std::vector<std::string> known{"cpu", "cuda"};
  for (const std::string& word : device_words(selection)) {
    if (device_kind_of(word)) continue;
    throw Error(ErrorKind::usage, unknown_name("device " + where(experiments), word, known));
  }
}

void check_preset(const Experiments& experiments, const Selection& selection) {
  if (!selection.preset) return;
  std::vector<std::string> known;
  for (const Experiment* experiment : experiments) {
    for (const auto& [name, preset] : experiment->presets) {
      if (name == *selection.preset) return;
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  throw Error(ErrorKind::usage, unknown_name("preset " + where(experiments), *selection.preset, known));
}

void check_implementations(const Experiments& experiments, const Selection& selection) {
  std::vector<std::string> known;
  for (const Experiment* experiment : experiments) {
    for (const registry::Implementation& it : experiment->implementations) known.push_back(it.name);
  }
  std::set<std::string> mine_names;
  for (const Submitted& mine : selection.mine) {
    if (std::find(known.begin(), known.end(), mine.name) != known.end()) {
      throw Error(ErrorKind::usage, fmt::format("--mine '{}' has the name of an implementation {}; choose another",
                                                mine.name, where(experiments)));
    }
    if (!mine_names.insert(mine.name).second) {
      throw Error(ErrorKind::usage, fmt::format("--mine names '{}' twice; choose another name for one", mine.name));
    }
  }
  known.insert(known.end(), mine_names.begin(), mine_names.end());
  for (const std::string& pattern : implementation_patterns(selection)) {
    if (std::none_of(known.begin(), known.end(), [&](const std::string& name) { return glob_match(pattern, name); })) {
      throw Error(ErrorKind::usage, unknown_name("implementation " + where(experiments), pattern, known));
    }
  }
  if (!selection.mine.empty() &&
      std::none_of(experiments.begin(), experiments.end(), [](const Experiment* it) { return it->accepts_mine; })) {
    throw Error(ErrorKind::usage,
                fmt::format("--mine cannot join any {}; `syslab list` marks those that it can", where(experiments)));
  }
}

// The preset's value for one of the names that are not axes; empty without a preset, or if it has none.
std::vector<std::string> of_preset(const Experiment& experiment, const Selection& selection, const char* name) {
  std::vector<std::string> texts;
  const registry::Preset* const preset = preset_of(experiment, selection);
  if (preset == nullptr) return texts;
  if (const auto found = preset->find(name); found != preset->end()) {
    for (const Value& value : found->second) texts.push_back(to_string(value));
  }
  return texts;
}

bool runs_on(const std::vector<Chosen>& chosen, DeviceKind device) {
  return std::any_of(chosen.begin(), chosen.end(), [device](const Chosen& it) { return it.device == device; });
}

// Keeps only the devices that were asked for.
void keep_devices(const Experiment& experiment, const Selection& selection, bool implementations_asked,
                  std::vector<Chosen>& chosen) {
  std::vector<DeviceKind> devices = kinds_of(device_words(selection));
  std::vector<std::string> spelled_out;
  if (devices.empty()) {
    if (implementations_asked) spelled_out = implementation_patterns(selection);
    devices = kinds_of(of_preset(experiment, selection, "device"));
    // A preset's devices are a preference: without a GPU, or without anything that runs there, the rest is run.
    std::erase_if(devices, [&](DeviceKind device) {
      return (device == DeviceKind::cuda && !selection.machine.has_gpu()) || !runs_on(chosen, device);
    });
    if (devices.empty()) {
      const bool there =
          runs_on(chosen, DeviceKind::cuda) && (selection.machine.has_gpu() || !runs_on(chosen, DeviceKind::cpu));
      devices = {there ? DeviceKind::cuda : DeviceKind::cpu};
    }
  }
  std::erase_if(chosen,
                [&](const Chosen& it) { return !contains(devices, it.device) && !contains(spelled_out, it.name); });
}

// A user's own implementation runs on the CPU unless the selection says otherwise: a kernel for the host must not be
// given memory of a GPU.
DeviceKind device_of_mine(const Selection& selection) {
  const std::vector<DeviceKind> devices = kinds_of(device_words(selection));
  const bool on_gpus = contains(devices, DeviceKind::cuda) && !contains(devices, DeviceKind::cpu);
  return on_gpus ? DeviceKind::cuda : DeviceKind::cpu;
}

// Those of its own points that the values of each axis leave.
std::vector<Params> chosen_points(const Experiment& experiment, const Selection& selection) {
  std::vector<Params> points = experiment.points;
  for (const Axis& axis : experiment.axes) {
    const Values values = axis_values(experiment, axis, selection);
    std::erase_if(points,
                  [&](const Params& point) { return std::ranges::find(values, point.at(axis.name)) == values.end(); });
  }
  return points;
}

}  // namespace

Experiments selected_experiments(const registry::Registry& registry, const Selection& selection) {
  if (!selection.handout.empty() && selection.handout != "2025" && selection.handout != "2026") {
    throw Error(ErrorKind::usage, fmt::format("unknown hand-out '{}' (known: 2025, 2026)", selection.handout));
  }
  Experiments experiments = registry.select(selection.patterns);
  if (!selection.handout.empty()) {
    std::erase_if(experiments, [&](const Experiment* it) { return !poses(*it, selection.handout); });
    if (experiments.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("the hand-out of {} poses none of the selected experiments", selection.handout));
    }
  }
  if (experiments.empty()) throw Error(ErrorKind::usage, "no experiment was named; `syslab list` shows all");
  return experiments;
}

void check_names(const Experiments& experiments, const Selection& selection) {
  check_axes(experiments, selection);
  check_devices(experiments, selection);
  check_preset(experiments, selection);
  check_implementations(experiments, selection);
}

std::vector<Params> grid(const Experiment& experiment, const Selection& selection) {
  if (selection.preset && experiment.presets.find(*selection.preset) == experiment.presets.end()) return {};
  if (!experiment.points.empty()) return chosen_points(experiment, selection);
  std::vector<Params> points(1);
  for (const Axis& axis : experiment.axes) {
    const Values values = axis_values(experiment, axis, selection);
    if (points.size() > kMostCases / values.size()) {
      throw Error(ErrorKind::usage, fmt::format("{} would have more than {} cases; give axis '{}' fewer values",
                                                experiment.id, kMostCases, axis.name));
    }
    std::vector<Params> extended;
    extended.reserve(points.size() * values.size());
    for (const Params& point : points) {
      for (const Value& value : values) {
        extended.push_back(point);
        extended.back().set(axis.name, value);
      }
    }
    points = std::move(extended);
  }
  return points;
}

std::vector<int> world_sizes(const Experiment& experiment, const Selection& selection) {
  if (!experiment.takes_ranks()) return {1};
  std::vector<int> sizes;
  for (const Value& value : axis_values(experiment, experiment.ranks, selection)) {
    sizes.push_back(static_cast<int>(std::get<std::int64_t>(value)));
  }
  return sizes;
}

std::vector<Chosen> implementations(const Experiment& experiment, const Selection& selection, bool mine_alone) {
  std::vector<std::string> patterns = implementation_patterns(selection);
  const bool asked = !patterns.empty();
  const bool joined = experiment.accepts_mine && !selection.mine.empty();
  if (!asked) patterns = of_preset(experiment, selection, "impl");
  std::vector<Chosen> chosen;
  if (asked || !mine_alone || !joined) {
    for (const registry::Implementation& it : experiment.implementations) {
      if (it.beside_classes) continue;
      if (patterns.empty() || matches_any(patterns, it.name)) chosen.push_back({it.name, it.device});
    }
    // An experiment without implementations to choose from has one way to run, without a name.
    if (experiment.implementations.empty() && !asked && !joined) chosen.push_back({"", DeviceKind::cpu});
    keep_devices(experiment, selection, asked, chosen);
  }
  for (const registry::Implementation& it : experiment.implementations) {
    const bool joins = asked ? matches_any(patterns, it.name) : joined && !mine_alone;
    if (it.beside_classes && joins) chosen.push_back({it.name, device_of_mine(selection)});
  }
  if (joined) {
    for (const Submitted& mine : selection.mine) {
      if (!asked || matches_any(patterns, mine.name)) chosen.push_back({mine.name, device_of_mine(selection)});
    }
  }
  return chosen;
}

}  // namespace syslab::plan
