#include "report/deliverables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/json_text.hpp"

namespace syslab::report {
namespace {

using nlohmann::json;

constexpr std::string_view kDeliverablesFile = "reports/deliverables.json";
constexpr std::array<std::string_view, 5> kEvidenceKinds{"code", "table", "figure", "answer", "derivation"};

Deliverable deliverable_of(const std::string& problem, const json& entry) {
  Deliverable made{entry.at("part"), entry.at("kind"), entry.at("what"), entry.value("handout", ""), {}};
  if (entry.contains("by")) made.by = entry.at("by").get<std::vector<std::string>>();
  made.carries = entry.value("carries", false);
  if (std::find(kEvidenceKinds.begin(), kEvidenceKinds.end(), made.kind) == kEvidenceKinds.end()) {
    throw Error(ErrorKind::internal, fmt::format("{}: {}: unknown kind '{}'", kDeliverablesFile, problem, made.kind));
  }
  for (const std::string& place : made.by) {
    if (place.find('/') == std::string::npos) {
      throw Error(ErrorKind::internal,
                  fmt::format("{}: {}: '{}' is not experiment/table", kDeliverablesFile, problem, place));
    }
  }
  return made;
}

}  // namespace

std::vector<Problem> parse_problems(const std::string& text) {
  std::vector<Problem> problems;
  try {
    for (const json& entry : parse_json(text)) {
      Problem problem{entry.at("id"),       entry.at("title"),  entry.at("section"),
                      entry.at("question"), entry.at("points"), {}};
      for (const json& part : entry.at("deliverables"))
        problem.deliverables.push_back(deliverable_of(problem.id, part));
      problems.push_back(std::move(problem));
    }
  } catch (const json::exception& error) {
    throw Error(ErrorKind::internal, fmt::format("{}: {}", kDeliverablesFile, error.what()));
  }
  return problems;
}

const std::vector<Problem>& handout_problems() {
  static const std::vector<Problem> problems = [] {
    const auto text = find_resource(kDeliverablesFile);
    if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", kDeliverablesFile));
    return parse_problems(std::string(*text));
  }();
  return problems;
}

}  // namespace syslab::report
