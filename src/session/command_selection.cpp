#include "session/command_selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/text/command_text.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "plan/assignment.hpp"
#include "registry/registry.hpp"
#include "store/utf8.hpp"
#include "worker/cases/command_params.hpp"

namespace syslab::cli {
namespace {

[[noreturn]] void refuse_command(const std::string& message) { throw Error(ErrorKind::usage, message); }

bool is_reserved(std::string_view axis) { return axis == "impl" || axis == "device" || axis == "world_size"; }

// Of the first type that all its values have: whole numbers, numbers, texts.
Axis axis_of(const plan::AxisAssignment& assignment) {
  Axis axis{assignment.name, {}, "of the command line", true, {}};
  for (const Value& like : {Value(std::int64_t{}), Value(0.0), Value(std::string())}) {
    axis.values.clear();
    for (const std::string& text : assignment.values) {
      const std::optional<Value> value = plan::typed(text, like);
      if (!value) break;
      axis.values.push_back(*value);
    }
    if (axis.values.size() == assignment.values.size()) break;
  }
  return axis;
}

// Each axis with the values of both sides.
std::vector<plan::AxisAssignment> axes_of_sides(const plan::Sides& sides) {
  std::vector<plan::AxisAssignment> all;
  for (const plan::SideSpec* side : {&sides.a, &sides.b}) {
    for (const plan::AxisAssignment& one : side->axes) {
      if (is_reserved(one.name)) continue;
      auto known = std::ranges::find(all, one.name, &plan::AxisAssignment::name);
      if (known == all.end()) known = all.insert(all.end(), {one.name, {}});
      for (const std::string& value : one.values) {
        if (std::ranges::find(known->values, value) == known->values.end()) known->values.push_back(value);
      }
    }
  }
  return all;
}

std::vector<Params> product(const std::vector<Axis>& axes) {
  constexpr std::size_t kMost = 100'000;
  std::vector<Params> points(1);
  for (const Axis& axis : axes) {
    std::vector<Params> longer;
    for (const Params& point : points) {
      for (const Value& value : axis.values) {
        longer.push_back(point);
        longer.back().set(axis.name, value);
      }
    }
    points = std::move(longer);
    if (points.size() > kMost) refuse_command(fmt::format("the axes of --command make more than {} cases", kMost));
  }
  return points;
}

void demand_axes(const std::vector<Submitted>& commands, const std::vector<Axis>& axes) {
  std::vector<std::string> places;
  for (const Submitted& mine : commands) {
    for (const std::string& place : places_in(parse_command_place(mine.path())->command)) places.push_back(place);
  }
  const auto is_axis = [&](const std::string& name) {
    return std::ranges::find(axes, name, &Axis::name) != axes.end();
  };
  for (const std::string& place : places) {
    if (!is_axis(place))
      refuse_command(fmt::format("--command has a place {{{}}} and -a no axis '{}': -a {}=…", place, place, place));
  }
  for (const Axis& axis : axes) {
    if (std::ranges::find(places, axis.name) != places.end()) continue;
    refuse_command(fmt::format("no --command has a place {{{}}} for the axis '{}'", axis.name, axis.name));
  }
}

// What its output must equal becomes part of each of the others.
void take_reference(std::vector<Submitted>& commands) {
  const auto reference = std::ranges::find(commands, plan::kReferenceName, &Submitted::name);
  if (reference == commands.end()) return;
  const std::string place = reference->path();
  for (Submitted& mine : commands) {
    CommandPlace own = *parse_command_place(mine.path());
    if (mine.name == plan::kReferenceName || !own.reference.empty()) continue;
    own.reference = place;
    mine.what = Command{to_string(own)};
    mine.digest = plan::digest_of(mine);
  }
}

// It is stored as text.
void require_utf8(const char* option, const std::string& text) {
  const std::optional<std::string> repaired = store::repaired_utf8(text);
  if (repaired) refuse_command(fmt::format("{} '{}'; expected text in UTF-8", option, *repaired));
}

}  // namespace

Quantity quantity_of(std::string_view experiment, const Params& params) {
  if (experiment != kCommandExperiment || !params.has(worker::kCommandReads)) return {};
  const std::string& reads = params.text(worker::kCommandReads);
  return reads == worker::kProcessTime ? Quantity{} : NumberPattern(reads).quantity();
}

Quantity quantity_of_stored(std::string_view experiment, const std::string& params) {
  const Json stored = json_or_discarded(params);
  if (!stored.is_object()) return {};
  const auto reads = stored.find(worker::kCommandReads);
  if (reads == stored.end() || !reads->is_string()) return {};
  Params known;
  known.set(worker::kCommandReads, reads->get<std::string>());
  try {
    Quantity quantity = quantity_of(experiment, known);
    quantity.unit = one_line(quantity.unit);
    return quantity;
  } catch (const Error&) {
    return {};
  }
}

void select_command(const SelectionOptions& options, plan::Selection& selection, const plan::Sides& sides) {
  std::vector<Submitted>& all = selection.mine;
  for (const std::string& text : options.commands) {
    require_utf8("--command", text);
    all.push_back(plan::parse_command(text));
  }
  require_utf8("--reads", options.reads);
  const auto commands = std::ranges::count_if(all, &Submitted::is_command);
  if (commands == 0) {
    if (!options.reads.empty()) refuse_command("--reads is about what --command prints, and there is no --command");
    if (std::ranges::count(selection.patterns, kCommandExperiment) == 0) return;
    refuse_command("command is about a program of yours: --command './bench {n}' -a n=1k:16k (docs/any-command.md)");
  }
  if (static_cast<std::size_t>(commands) != all.size() || !options.reference.empty() || !options.inputs.empty()) {
    refuse_command(
        "--command stands alone: programs are measured beside programs; leave out --mine, --reference and --inputs");
  }
  if (selection.patterns.empty()) selection.patterns = {std::string(kCommandExperiment)};
  if (selection.patterns != std::vector{std::string(kCommandExperiment)}) {
    refuse_command("--command is of the experiment command alone; leave the other names out");
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].name != all[j].name) continue;
      refuse_command(fmt::format("two commands are called '{}'; write --command NAME='…'", all[i].name));
    }
  }
  std::vector<Axis> axes;
  std::string reads = options.reads;
  for (const plan::AxisAssignment& assignment : selection.assignments) {
    if (assignment.name == worker::kCommandReads && reads.empty()) reads = assignment.values.front();
    if (is_reserved(assignment.name) || assignment.name == worker::kCommandReads) continue;
    axes.push_back(axis_of(assignment));
  }
  for (const plan::AxisAssignment& assignment : axes_of_sides(sides)) {
    // One that -a has, too, is refused where the sides are made.
    if (std::ranges::find(axes, assignment.name, &Axis::name) == axes.end()) axes.push_back(axis_of(assignment));
  }
  demand_axes(all, axes);
  take_reference(all);
  if (reads.empty()) reads = worker::kProcessTime;
  if (reads != worker::kProcessTime) const NumberPattern valid(reads);
  axes.push_back({worker::kCommandReads, {reads}, "what its time is", true, {}});
  std::vector<Params> points = product(axes);
  selection.registry = selection.registry->with(kCommandExperiment, std::move(axes), std::move(points));
}

}  // namespace syslab::cli
