#include "claim/alteration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "claim/derived.hpp"
#include "claim/known_fields.hpp"
#include "claim/programs.hpp"
#include "claim/quoted.hpp"
#include "core/files/hash.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "core/text/utc_time.hpp"
#include "verdict/judgement.hpp"

namespace syslab::claim {
namespace {

using Kind = Alteration::Kind;

constexpr const char* kSeal = "seal";
constexpr const char* kStatement = "claim";  // read whole or refused; a person may write it in other words
constexpr std::size_t kShownOfPlace = 78;    // columns: it begins a line, and a terminal folds lines at 80

void look_at_seal(std::vector<Alteration>& found, const Json& claim) {
  const Json sealed = claim.value(kSeal, Json());
  if (!sealed.is_object()) {
    found.push_back({Kind::unsealed, "seal", "none", "a SHA-256 of each part"});
    return;
  }
  const Json here = seal_of(claim);
  for (const auto& [part, digest] : here.items()) {
    const Json was = sealed.value(part, Json());
    if (was == digest) continue;
    found.push_back({Kind::changed, part, "SHA-256 " + in_quotes(digest.get<std::string>(), kShownOfDigest),
                     was.is_string() ? in_quotes(was.get<std::string>(), kShownOfDigest) + ", as sealed"
                                     : "no such part, as sealed"});
  }
  for (const auto& [part, digest] : sealed.items()) {
    if (!here.contains(part)) found.push_back({Kind::changed, part, "nothing", "this part, as sealed"});
  }
}

// Launches are those of both sides; in each, blocks are counted from 0 on.
void look_at_blocks(std::vector<Alteration>& found, const Case& one, const std::string& title) {
  std::map<int, std::set<int>> blocks;
  for (const Block& block : one.blocks) {
    if (block.launch >= 0 && block.block >= 0 && blocks[block.launch].insert(block.block).second) continue;
    found.push_back({Kind::blocks, title, fmt::format("block {} of launch {} twice", block.block, block.launch),
                     "each once, counted from 0"});
  }
  if (std::ssize(blocks) < verdict::kFewestLaunches) {
    found.push_back({Kind::blocks, title, counted(std::ssize(blocks), "launch") + " with times",
                     fmt::format("{} or more", verdict::kFewestLaunches)});
  }
  for (const auto& [launch, numbers] : blocks) {
    if (numbers.empty() || *numbers.rbegin() + 1 == std::ssize(numbers)) continue;
    found.push_back({Kind::blocks, title,
                     fmt::format("{} of launch {}, the last of number {}", counted(std::ssize(numbers), "block"),
                                 launch, *numbers.rbegin()),
                     "all from 0 on"});
  }
  if (one.checked != std::ssize(blocks)) {
    found.push_back(
        {Kind::checked, title, fmt::format("{} of {} launches checked", one.checked, blocks.size()), "each of them"});
  }
}

// A claim cannot say another ratio than its times do.
void look_at_times(std::vector<Alteration>& found, const Case& one, const std::string& title) {
  constexpr double kRounding = 1e-9;
  for (const Block& block : one.blocks) {
    const double ratio = log_ratio_of(block);
    if (std::abs(block.log_ratio - ratio) <= kRounding) continue;
    found.push_back(
        {Kind::times, title,
         fmt::format("{:.9g} as log_ratio of block {} of launch {}", block.log_ratio, block.block, block.launch),
         fmt::format("{:.9g}, that of its times", ratio)});
    return;  // one says that the case was edited
  }
}

// "2026-05-01T12:34:56.789Z", of a claim that was made before it is read. A clock may be a day off.
void look_at_date(std::vector<Alteration>& found, const File& file) {
  constexpr std::chrono::hours kMostOff{24};
  const std::string expected = "a date of UTC that is past, such as 2026-05-01T12:34:56.789Z";
  const std::optional<std::chrono::sys_seconds> made = utc_from(file.made_at);
  // In seconds: nanoseconds of the year 9999 overflow.
  if (made && *made <= std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() + kMostOff)) return;
  found.push_back({Kind::date, "made_at", in_quotes(file.made_at), expected});
}

}  // namespace

Json seal_of(const Json& claim) {
  Json seal = Json::object();
  for (const auto& [part, value] : claim.items()) {
    if (part != kSeal) seal[part] = sha256_hex(json_text(value));
  }
  return seal;
}

std::vector<Alteration> alterations_of(const Json& claim, const File& file) {
  std::vector<Alteration> found;
  if (file.is_sealed) look_at_seal(found, claim);
  add_unknown_fields(found, claim);
  if (file.cases.empty()) found.push_back({Kind::times, "cases", "none", "one or more"});
  for (const Case& one : file.cases) {
    const std::string title = full_title(file, one);
    look_at_blocks(found, one, title);
    look_at_times(found, one, title);
  }
  add_contradictions(found, file);
  add_invented_inputs(found, file);
  look_at_date(found, file);
  if (const verdict::SpeedFinding finding = finding_of(file); finding.verdict != verdict::SpeedVerdict::confirmed) {
    found.push_back({Kind::not_shown, to_string(file.statement),
                     fmt::format("{} by its own times: {}", verdict::to_string(finding.verdict), reason_of(file)),
                     "confirmed"});
  }
  return found;
}

namespace {

// The path and the two values where they first differ.
struct Difference {
  std::string path;
  Json read, made;
};

std::optional<Difference> first_difference(const Json& read, const Json& made, const std::string& path) {
  const bool nothing = read.is_null() || ((read.is_structured() || read.is_string()) && read.empty());
  if (read == made || (made.is_null() && nothing)) return std::nullopt;
  if (read.is_object() && made.is_object()) {
    for (const auto& [key, value] : read.items()) {
      if (auto found = first_difference(value, made.value(key, Json()), path + "/" + key)) return found;
    }
    return std::nullopt;
  }
  if (read.is_array() && made.is_array() && read.size() == made.size()) {
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (auto found = first_difference(read[i], made[i], path + "/" + std::to_string(i))) return found;
    }
    return std::nullopt;
  }
  return Difference{path, read, made};
}

}  // namespace

void add_unread(std::vector<Alteration>& found, const Json& claim, const Json& made) {
  if (std::ranges::count(found, Kind::unknown, &Alteration::kind) > 0) return;  // which are such values
  for (const auto& [part, value] : claim.items()) {
    if (part == kSeal || part == "syslab_claim" || part == kStatement || !made.contains(part)) continue;
    const std::optional<Difference> other = first_difference(value, made[part], part);
    if (!other) continue;
    found.push_back({Kind::changed, other->path, shown(other->read),
                     other->made.is_null() ? "nothing" : shown(other->made) + ", as syslab reads it"});
  }
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::unsealed:
      return "unsealed";
    case Kind::changed:
      return "changed";
    case Kind::blocks:
      return "blocks";
    case Kind::checked:
      return "checked";
    case Kind::revision:
      return "revision";
    case Kind::derived:
      return "derived";
    case Kind::doubled:
      return "doubled";
    case Kind::times:
      return "times";
    case Kind::unknown:
      return "unknown";
    case Kind::date:
      return "date";
    case Kind::not_shown:
      return "not_shown";
  }
  return {};
}

std::string to_string(const Alteration& alteration) {
  return fmt::format("{}: found {}, expected {}", in_one_run(alteration.where, kShownOfPlace), alteration.found,
                     alteration.expected);
}

}  // namespace syslab::claim
