#include "evidence/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/json_text.hpp"
#include "report/deliverables.hpp"

namespace syslab::evidence {
namespace {

constexpr std::string_view kRubric = "tools/rubric/rubric.json";

Part& find_or_add(std::vector<Part>& parts, const std::string& problem, const std::string& letter) {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const Part& one) { return one.problem == problem && one.letter == letter; });
  if (found != parts.end()) return *found;
  return parts.emplace_back(Part{problem, letter, 0, 0});
}

void add_points(std::vector<Part>& parts, const std::string& handout) {
  const auto text = find_resource(kRubric);
  if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", kRubric));
  const Json rubric = parse_json(*text);
  for (const auto& problem : rubric.at("problems")) {
    if (!problem.at("points").contains(handout)) continue;
    for (const auto& part : problem.at("parts")) {
      if (part.value("handout", handout) != handout) continue;
      find_or_add(parts, problem.at("id"), part.at("part")).points += part.at("points").get<double>();
    }
  }
}

}  // namespace

std::vector<Part> parts_of(const std::string& handout) {
  if (handout != "2025" && handout != "2026") {
    throw Error(ErrorKind::usage, fmt::format("unknown hand-out '{}' (known: 2025, 2026)", handout));
  }
  std::vector<Part> parts;
  for (const report::Problem& problem : report::handout_problems()) {
    if (!problem.points.contains(handout)) continue;
    for (const report::Deliverable& one : problem.deliverables) {
      if (one.handout.empty() || one.handout == handout) ++find_or_add(parts, problem.id, one.part).deliverables;
    }
  }
  add_points(parts, handout);
  return parts;
}

}  // namespace syslab::evidence
