#include "plan/sides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/text/command_text.hpp"
#include "core/text/text.hpp"

namespace syslab::plan {
namespace {

constexpr std::string_view kImpl = "impl";

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::usage, message); }

void add_item(SideSpec& side, char name, std::string_view word, const std::string& item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
    refuse(fmt::format("'{}': '{}' is no axis=value; write {}:impl=NAME, {}:axis=value,axis=value or {}:build=SYSLAB",
                       word, item, name, name, name));
  }
  std::string axis = trim(item.substr(0, equals));
  const std::string value = trim(item.substr(equals + 1));
  if (axis == "build") {
    if (!side.build.empty()) refuse(fmt::format("side {} names two builds, '{}' and '{}'", name, side.build, value));
    side.build = value;
    return;
  }
  if (axis == "mine") axis = kImpl;
  if (side.find(axis) != nullptr) refuse(fmt::format("side {} assigns axis '{}' twice", name, axis));
  side.axes.push_back({axis, {value}});
}

std::set<std::string> axes_of(const Sides& sides) {
  std::set<std::string> names;
  for (const SideSpec* side : {&sides.a, &sides.b}) {
    for (const AxisAssignment& assignment : side->axes) names.insert(assignment.name);
  }
  return names;
}

bool assigned_by_both(const Sides& sides, const std::string& axis) {
  return sides.a.find(axis) != nullptr && sides.b.find(axis) != nullptr;
}

// A side must not repeat what -a or --impl say: it would be unclear which counts.
void check_shared(const Selection& selection, const std::set<std::string>& side_axes) {
  for (const AxisAssignment& assignment : selection.assignments) {
    if (side_axes.contains(assignment.name)) {
      refuse(
          fmt::format("axis '{}' is assigned by -a and by a side; say it once: -a is for both sides", assignment.name));
    }
  }
  if (!selection.implementations.empty() && side_axes.contains(std::string(kImpl))) {
    refuse("--impl is for both sides, and a side names its own; say it once");
  }
}

// What the sides of functions or commands can only mean: where there are two beside a reference these, in their order;
// of one the reference and it. Else nothing.
std::vector<std::string> pair_of(const Selection& selection) {
  std::vector<std::string> names;
  bool reference = false;
  for (const Submitted& mine : selection.mine) {
    if (!mine.is_function() && !mine.is_command()) return {};
    if (mine.name == kReferenceName) {
      reference = true;
    } else {
      names.push_back(mine.name);
    }
  }
  if (names.size() == 1 && reference) names.insert(names.begin(), std::string(kReferenceName));
  if (names.size() != 2) names.clear();
  return names;
}

// The only one of the two names that the other side does not have.
bool fill_in_function(SideSpec& missing, const SideSpec& other, const Selection& selection) {
  const AxisAssignment* impl = other.find(kImpl);
  const std::vector<std::string> pair = pair_of(selection);
  if (impl == nullptr || std::ranges::find(pair, impl->values.front()) == pair.end()) return false;
  missing.axes = {{std::string(kImpl), {pair[pair[0] == impl->values.front() ? 1 : 0]}}};
  return true;
}

void fill_in(Sides& sides, const Selection& selection) {
  if (sides.a.given && sides.b.given) return;
  if (!sides.a.given && !sides.b.given) {
    if (const std::vector<std::string> pair = pair_of(selection); !pair.empty()) {
      sides.a.axes = {{std::string(kImpl), {pair[0]}}};
      sides.b.axes = {{std::string(kImpl), {pair[1]}}};
      return;
    }
  }
  if (!sides.a.given && !sides.b.given) {
    if (selection.patterns.empty() && selection.mine.size() == 1) {
      const Submitted& mine = selection.mine.front();
      refuse(
          fmt::format("{} is measured beside what? A function beside --reference FILE.py:NAME or another --mine; what "
                      "is of an experiment by the experiment's name and a side, B:impl=NAME",
                      mine.name));
    }
    refuse(
        "a comparison has two sides: A:axis=value and B:axis=value, for example A:impl=naive B:impl=flash_tiled, or "
        "A:build=PATH_OF_ANOTHER_SYSLAB");
  }
  SideSpec& missing = sides.a.given ? sides.b : sides.a;
  const SideSpec& other = sides.a.given ? sides.a : sides.b;
  const char name = sides.a.given ? 'B' : 'A';
  if (!other.build.empty()) {
    missing.axes = other.axes;  // the same case by this program
    return;
  }
  if (fill_in_function(missing, other, selection)) return;
  const AxisAssignment* impl = other.find(kImpl);
  if (selection.mine.size() == 1 && impl != nullptr && impl->values.front() != selection.mine[0].name) {
    missing.axes = {{std::string(kImpl), {selection.mine[0].name}}};
    return;
  }
  refuse(
      fmt::format("side {} is missing: write {}:impl=NAME, {}:axis=value or {}:build=SYSLAB", name, name, name, name));
}

// What two cases must have in common to be one point: everything that no side assigns.
std::string key_of(const PlannedCase& planned, const std::set<std::string>& side_axes) {
  Params shared;
  for (const auto& [axis, value] : planned.params) {
    if (!side_axes.contains(axis)) shared.set(axis, value);
  }
  const bool by_side = side_axes.contains(std::string(kImpl));
  const std::string ranks = side_axes.contains("world_size") ? "" : std::to_string(planned.world_size);
  return planned.experiment->id + "\n" + shared.label() + "\n" + (by_side ? "" : planned.implementation) + "\n" + ranks;
}

using Groups = std::map<std::string, std::vector<PlannedCase>>;

Groups grouped(const registry::Registry& registry, const Selection& selection, const SideSpec& side,
               const std::set<std::string>& side_axes) {
  Selection own = selection;
  own.assignments.insert(own.assignments.end(), side.axes.begin(), side.axes.end());
  Groups groups;
  for (PlannedCase& planned : make_plan(registry, own).cases) groups[key_of(planned, side_axes)].push_back(planned);
  return groups;
}

// The values that distinguish the members of a group, as the user should write them.
std::string ambiguity(char name, const std::vector<PlannedCase>& group, const Sides& sides) {
  for (const std::string& axis : axes_of(sides)) {
    if (assigned_by_both(sides, axis)) continue;
    std::vector<std::string> values;
    for (const PlannedCase& planned : group) {
      const std::string value = axis == kImpl              ? planned.implementation
                                : axis == "world_size"     ? std::to_string(planned.world_size)
                                : planned.params.has(axis) ? to_string(planned.params.at(axis))
                                                           : "";
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    if (values.size() < 2) continue;
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ", ") + value;
    return fmt::format("side {} does not say its {}, which could be {}; add {}:{}={}", name, axis, list, name, axis,
                       values.front());
  }
  return fmt::format("side {} names several cases at one point", name);
}

// The single case of a group; skipped cases count only if all are skipped.
PlannedCase only(char name, std::vector<PlannedCase> group, const Sides& sides) {
  if (group.size() > 1) {
    std::vector<PlannedCase> able;
    for (const PlannedCase& planned : group) {
      if (!planned.skip_reason) able.push_back(planned);
    }
    if (!able.empty()) group = std::move(able);
  }
  if (group.size() > 1) refuse(ambiguity(name, group, sides));
  return group.front();
}

Params common(const PlannedCase& a, const PlannedCase& b) {
  Params shared;
  for (const auto& [axis, value] : a.params) {
    if (b.params.has(axis) && b.params.at(axis) == value) shared.set(axis, value);
  }
  return shared;
}

// Whether two names are of one thing: the same file and what is named in it, or the same words in one folder.
bool is_same_thing(const Selection& selection, const PlannedCase& a, const PlannedCase& b) {
  if (a.implementation == b.implementation) return true;
  const auto one = std::ranges::find(selection.mine, a.implementation, &Submitted::name),
             other = std::ranges::find(selection.mine, b.implementation, &Submitted::name);
  if (one == selection.mine.end() || other == selection.mine.end()) return false;
  if (one->is_command() != other->is_command()) return false;
  if (!one->is_command()) {
    std::error_code none;
    const auto file = [&](const Submitted& mine) { return std::filesystem::weakly_canonical(mine.path(), none); };
    return file(*one) == file(*other) && one->inside() == other->inside();
  }
  const auto place = parse_command_place(one->path()), beside = parse_command_place(other->path());
  const auto words = [](const CommandPlace& of, const PlannedCase& planned) {
    std::vector<std::string> filled_words = command_words(of.command);
    for (std::string& word : filled_words) word = filled(word, planned.params);
    return filled_words;
  };
  return place && beside && place->folder == beside->folder && words(*place, a) == words(*beside, b);
}

}  // namespace

const AxisAssignment* SideSpec::find(std::string_view axis) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const auto& it) { return it.name == axis; });
  return found == axes.end() ? nullptr : &*found;
}

std::string SideSpec::label() const {
  std::string label;
  for (const AxisAssignment& assignment : axes) {
    label += label.empty() ? "" : " ";
    label += assignment.name == kImpl ? assignment.values.front() : assignment.name + "=" + assignment.values.front();
  }
  if (!build.empty()) label += (label.empty() ? "build " : " of build ") + build;
  return label;
}

Sides take_sides(std::vector<std::string>& words) {
  Sides sides;
  std::vector<std::string> rest;
  for (const std::string& word : words) {
    const bool is_a = word.starts_with("A:"), is_b = word.starts_with("B:");
    if (!is_a && !is_b) {
      rest.push_back(word);
      continue;
    }
    SideSpec& side = is_a ? sides.a : sides.b;
    side.given = true;
    for (const std::string& item : split(word.substr(2), ',')) add_item(side, word[0], word, trim(item));
  }
  words = std::move(rest);
  return sides;
}

ComparisonPlan make_comparison_plan(const registry::Registry& registry, const Selection& selection, Sides sides,
                                    bool same_on_purpose) {
  fill_in(sides, selection);
  const std::set<std::string> side_axes = axes_of(sides);
  check_shared(selection, side_axes);
  const Groups a = grouped(registry, selection, sides.a, side_axes);
  const Groups b = grouped(registry, selection, sides.b, side_axes);

  ComparisonPlan plan;
  plan.mine = selection.mine;
  plan.root_seed = selection.root_seed;
  plan.registry = selection.registry;
  for (const auto& [key, group] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    ComparisonPoint point;
    point.a = only('A', group, sides);
    point.b = only('B', other->second, sides);
    point.shared = common(point.a, point.b);
    if (!side_axes.contains(std::string(kImpl))) point.shared_impl = point.a.implementation;
    const bool same = point.a.params == point.b.params && is_same_thing(selection, point.a, point.b) &&
                      point.a.world_size == point.b.world_size;
    if (same && sides.a.build == sides.b.build && !same_on_purpose) {
      refuse(fmt::format(
          "both sides are {} {}{}: there is nothing to compare; --same-on-purpose measures it all the same, "
          "to see what this machine calls different",
          point.a.experiment->id, point.a.implementation,
          point.a.implementation == point.b.implementation
              ? ""
              : fmt::format(", and {} is the same under another name", point.b.implementation)));
    }
    plan.points.push_back(std::move(point));
  }
  // In the order of side A's plan, not of the keys' text.
  std::sort(plan.points.begin(), plan.points.end(),
            [](const ComparisonPoint& x, const ComparisonPoint& y) { return x.a.index < y.a.index; });
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    plan.points[i].a.index = static_cast<int>(2 * i);
    plan.points[i].b.index = static_cast<int>(2 * i + 1);
  }
  if (plan.points.empty()) {
    refuse("the sides have no case in common: no experiment named has what both of them ask for");
  }
  plan.sides = std::move(sides);
  return plan;
}

}  // namespace syslab::plan
