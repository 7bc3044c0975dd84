#include "claim/derived.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "claim/quoted.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "core/value.hpp"
#include "runner/environment.hpp"

namespace syslab::claim {
namespace {

using Kind = Alteration::Kind;

// Takes it off the front, if it is there.
bool take(std::string_view& text, const std::string& beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

// How many ranks there are is no axis of the case.
std::string ranks_of(const Case& one) { return one.ranks > 1 ? fmt::format(" on {} ranks", one.ranks) : ""; }

// Of the case's own words alone, in their order; some may be left out.
bool is_title_of(const File& file, const Case& one) {
  std::string_view rest = one.title;
  if (!take(rest, one.experiment)) return false;
  if (file.faster.name == file.slower.name) take(rest, " " + file.faster.name);
  for (const auto& [axis, value] : Params::from_json(parse_json(one.params))) {
    take(rest, fmt::format(" {}={}", axis, syslab::to_string(value)));
  }
  return rest == ranks_of(one);
}

void look_at_cases(std::vector<Alteration>& found, const File& file) {
  std::set<std::pair<std::string, std::string>> known;
  for (const Case& one : file.cases) {
    const std::string title = full_title(file, one);
    if (!is_title_of(file, one))
      found.push_back({Kind::derived, title, "the title " + in_quotes(one.title), "its axes"});
    if (std::ranges::find(file.question.experiments, one.experiment) == file.question.experiments.end()) {
      found.push_back({Kind::derived, title, "a case of " + one.experiment, "an experiment of the question"});
    }
    if (!known.emplace(one.experiment, one.params).second) {
      found.push_back({Kind::doubled, title, "the case twice", "each case once"});
    }
  }
}

void look_at_side(std::vector<Alteration>& found, const File& file, const Side& side, const std::string& words) {
  const std::string label = label_of(words);
  if (side.label != label) {
    found.push_back({Kind::derived, label, "the label " + in_quotes(side.label), "that of the sentence"});
  }
  // With axes, and of a pattern, `verify` knows which implementation that is.
  const bool is_name = label.find_first_of("=*?") == std::string::npos;
  if (is_name && side.name != label) {
    found.push_back({Kind::derived, label, "the implementation " + in_quotes(side.name), "that of the sentence"});
  }
  const std::string revision = revision_of(file.build_json);
  if (!side.is_mine && side.digest != revision) {
    found.push_back(
        {Kind::revision, label, "revision " + in_quotes(side.digest), in_quotes(revision) + ", that of the build"});
  }
}

}  // namespace

std::string label_of(const std::string& side) {
  std::string label;
  for (const std::string& item : split(side, ',')) {
    const bool is_implementation = item.starts_with("impl=") || item.starts_with("mine=");
    label += (label.empty() ? "" : " ") + (is_implementation ? item.substr(item.find('=') + 1) : item);
  }
  return label;
}

std::string full_title(const File& file, const Case& one) {
  std::string title = one.experiment;
  if (file.faster.name == file.slower.name) title += " " + file.faster.name;
  for (const auto& [axis, value] : Params::from_json(parse_json(one.params))) title += " " + shown_axis(axis, value);
  return title + ranks_of(one);
}

std::string revision_of(const std::string& build_json) {
  const Json build = parse_json(build_json);
  return build.value("git_sha", std::string("unknown")) + (build.value("git_dirty", false) ? "+changes" : "");
}

void add_contradictions(std::vector<Alteration>& found, const File& file) {
  look_at_side(found, file, file.faster, file.statement.faster);
  look_at_side(found, file, file.slower, file.statement.slower);
  look_at_cases(found, file);
  const std::string kind = runner::comparability_key(parse_json(file.environment_json));
  if (file.machine_kind != kind) {
    found.push_back({Kind::derived, "machine_kind", file.machine_kind, kind + ", that of its environment"});
  }
}

}  // namespace syslab::claim
