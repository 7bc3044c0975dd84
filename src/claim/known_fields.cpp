#include "claim/known_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "claim/quoted.hpp"
#include "runner/known_facts.hpp"
#include "stats/timing_warning.hpp"

namespace syslab::claim {
namespace {

using Kind = Alteration::Kind;

constexpr std::array<std::string_view, 62> kFields{
    "/syslab_claim",
    "/claim",
    "/tolerance",
    "/question/experiments/*",
    "/question/assignments/*",
    "/question/devices/*",
    "/question/seed",
    "/question/protocol",
    "/question/data",
    "/question/preset",
    "/question/reads",
    "/faster/label",
    "/faster/is_mine",
    "/faster/digest",
    "/faster/name",
    "/faster/command",
    "/faster/laws/*/name",
    "/faster/laws/*/contract",
    "/faster/laws/*/outcome",
    "/faster/laws/*/inputs",
    "/slower/label",
    "/slower/is_mine",
    "/slower/digest",
    "/slower/name",
    "/slower/command",
    "/slower/laws/*/name",
    "/slower/laws/*/contract",
    "/slower/laws/*/outcome",
    "/slower/laws/*/inputs",
    "/digests/reference",
    "/digests/inputs",
    "/cases/*/title",
    "/cases/*/experiment",
    "/cases/*/version",
    "/cases/*/params",
    "/cases/*/ranks",
    "/cases/*/checked",
    "/cases/*/blocks/*/launch",
    "/cases/*/blocks/*/block",
    "/cases/*/blocks/*/order",
    "/cases/*/blocks/*/seconds/*",
    "/cases/*/blocks/*/log_ratio",
    "/cases/*/faster_code",
    "/cases/*/slower_code",
    "/cases/*/warnings/*/code",
    "/cases/*/warnings/*/side",
    "/cases/*/warnings/*/about",
    "/cases/*/warnings/*/number",
    "/cases/*/faster_mhz",
    "/cases/*/slower_mhz",
    "/made_at",
    "/machine_kind",
    "/environment",
    "/build/version",
    "/build/git_sha",
    "/build/git_dirty",
    "/build/git_diff",
    "/build/compiler",
    "/build/flags",
    "/build/build_type",
    "/build/cuda",
    "/seal",
};
// Parts whose fields have no list here.
constexpr std::array<std::string_view, 3> kParts{"/cases/*/params", "/environment", "/seal"};

// "/cases/0/of" → "cases/0" and "of".
void add_unknown(std::vector<Alteration>& found, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string where = slash == 0 ? "the claim" : path.substr(1, slash - 1);
  found.push_back(
      {Kind::unknown, where, "a field " + in_quotes(path.substr(slash + 1)), "the fields of a claim alone"});
}

void look_at_fields(std::vector<Alteration>& found, const Json& value, const std::string& path,
                    const std::string& pattern) {
  const bool is_known = std::ranges::any_of(
      kFields, [&](std::string_view field) { return field == pattern || field.starts_with(pattern + "/"); });
  if (!is_known) return add_unknown(found, path);
  if (!value.is_structured() || std::ranges::find(kParts, pattern) != kParts.end()) return;
  for (const auto& [key, each] : value.items()) {
    look_at_fields(found, each, path + "/" + key, pattern + (value.is_array() ? "/*" : "/" + key));
  }
}

// Those that are known are written again as they were read.
void look_at_warnings(std::vector<Alteration>& found, const Json& cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json warnings = cases[i].value("warnings", Json::array());
    if (stats::to_json(stats::warnings_from_json(warnings)) == warnings) continue;
    found.push_back({Kind::unknown, fmt::format("cases/{}/warnings", i), "a warning that syslab does not know",
                     "warnings of this version"});
  }
}

}  // namespace

std::span<const std::string_view> known_fields() { return kFields; }

void add_unknown_fields(std::vector<Alteration>& found, const Json& claim) {
  look_at_fields(found, claim, "", "");
  for (const std::string& fact : runner::unknown_facts(claim.at("environment")))
    add_unknown(found, "/environment" + fact);
  look_at_warnings(found, claim.at("cases"));
}

}  // namespace syslab::claim
