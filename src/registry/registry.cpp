#include "registry/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "registry/validate.hpp"

namespace syslab::registry {
namespace {

constexpr std::string_view kTagPrefix = "tag:";
constexpr std::string_view kSelftestTag = "selftest";

bool answers_to(const Experiment& experiment, std::string_view name) {
  return experiment.id == name ||
         std::find(experiment.aliases.begin(), experiment.aliases.end(), name) != experiment.aliases.end();
}

bool has_tag(const Experiment& experiment, std::string_view pattern) {
  return std::any_of(experiment.tags.begin(), experiment.tags.end(),
                     [pattern](const std::string& tag) { return glob_match(pattern, tag); });
}

bool is_selftest(const Experiment& experiment) { return has_tag(experiment, kSelftestTag); }

// Names for error messages; the house's own faults are not offered.
std::vector<std::string> names_of(std::span<const Experiment> experiments) {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments) {
    if (is_selftest(experiment)) continue;
    names.push_back(experiment.id);
    names.insert(names.end(), experiment.aliases.begin(), experiment.aliases.end());
  }
  return names;
}

std::vector<std::string> tags_of(std::span<const Experiment> experiments) {
  std::vector<std::string> tags;
  for (const Experiment& experiment : experiments)
    tags.insert(tags.end(), experiment.tags.begin(), experiment.tags.end());
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  return tags;
}

// The latest of what is declared. Set before anything runs, so that it may be used by what runs first.
constinit const Registration* g_declared = nullptr;

}  // namespace

Registration::Registration(const char* id_of_it, Experiment (*description)())
    : id(id_of_it), describe(description), next(g_declared) {
  g_declared = this;
}

Registry& Registry::global() {
  static Registry& registry = *new Registry;  // never taken apart: the process ends as well without
  return registry;
}

void Registry::describe(const Registration& declared) {
  Experiment made = declared.describe();
  if (made.id != declared.id) {
    throw Error(ErrorKind::internal,
                fmt::format("what is declared as experiment '{}' describes itself as '{}'", declared.id, made.id));
  }
  add(std::move(made));
}

void Registry::add(Experiment experiment) {
  if (sealed_) {
    throw Error(ErrorKind::internal, fmt::format("experiment '{}' was added to a sealed registry", experiment.id));
  }
  validate(experiment);
  std::vector<std::string> names = experiment.aliases;
  names.push_back(experiment.id);
  for (const Experiment& other : experiments_) {
    for (const std::string& name : names) {
      if (answers_to(other, name)) {
        throw Error(ErrorKind::internal,
                    fmt::format("two experiments answer to '{}': '{}' and '{}'", name, other.id, experiment.id));
      }
    }
  }
  experiments_.push_back(std::move(experiment));
}

void Registry::seal() {
  if (sealed_) return;
  if (this == &global()) {
    for (const Registration* one = g_declared; one != nullptr; one = one->next) {
      if (std::ranges::find(experiments_, one->id, &Experiment::id) == experiments_.end()) describe(*one);
    }
  }
  std::sort(experiments_.begin(), experiments_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  // Not in add(): rules may call code with statics that are not yet initialised.
  for (const Experiment& experiment : experiments_) probe_skip_rules(experiment);
  sealed_ = true;
}

const Experiment& Registry::only(std::string_view id) {
  const auto found = std::ranges::find(experiments_, id, &Experiment::id);
  if (found != experiments_.end()) return *found;
  for (const Registration* one = sealed_ ? nullptr : g_declared; one != nullptr; one = one->next) {
    if (one->id != id) continue;
    describe(*one);
    return experiments_.back();
  }
  throw Error(ErrorKind::usage, fmt::format("there is no experiment '{}'", id));
}

std::shared_ptr<const Registry> Registry::with(std::string_view id, std::vector<Axis> axes,
                                               std::vector<Params> points) const {
  auto copy = std::make_shared<Registry>(*this);
  const auto found = std::ranges::find(copy->experiments_, id, &Experiment::id);
  if (found == copy->experiments_.end()) {
    throw Error(ErrorKind::internal, fmt::format("there is no experiment '{}'", id));
  }
  found->axes = std::move(axes);
  found->points = std::move(points);
  return copy;
}

const Experiment& Registry::find(std::string_view name) const {
  for (const Experiment& experiment : experiments_) {
    if (answers_to(experiment, name)) return experiment;
  }
  throw Error(ErrorKind::usage, unknown_name("experiment", name, names_of(experiments_)));
}

std::vector<const Experiment*> Registry::select(std::span<const std::string> patterns) const {
  std::vector<bool> chosen(experiments_.size(), false);
  const auto choose = [&](const auto& wanted) {
    bool any = false;
    for (std::size_t i = 0; i < experiments_.size(); ++i) {
      if (!wanted(experiments_[i])) continue;
      chosen[i] = any = true;
    }
    return any;
  };
  for (const std::string& pattern : patterns) {
    for (const std::string& untrimmed : split(pattern, ',')) {
      const std::string part = trim(untrimmed);
      if (part.empty()) {
        throw Error(ErrorKind::usage, fmt::format("'{}' has an empty part; write names between the commas", pattern));
      }
      if (part == "all") {
        choose([](const Experiment& it) { return !is_selftest(it); });
      } else if (part.rfind(kTagPrefix, 0) == 0) {
        const std::string tag = part.substr(kTagPrefix.size());
        if (!choose([&](const Experiment& it) { return has_tag(it, tag); })) {
          throw Error(ErrorKind::usage, unknown_name("tag", tag, tags_of(experiments_)));
        }
      } else if (part.find_first_of("*?") != std::string::npos) {
        if (!choose([&](const Experiment& it) { return !is_selftest(it) && glob_match(part, it.id); })) {
          throw Error(ErrorKind::usage, fmt::format("no experiment matches '{}'; `syslab list` shows all", part));
        }
      } else if (!choose([&](const Experiment& it) { return answers_to(it, part); })) {
        throw Error(ErrorKind::usage, unknown_name("experiment", part, names_of(experiments_)));
      }
    }
  }
  std::vector<const Experiment*> selected;
  for (std::size_t i = 0; i < experiments_.size(); ++i) {
    if (chosen[i]) selected.push_back(&experiments_[i]);
  }
  return selected;
}

}  // namespace syslab::registry
