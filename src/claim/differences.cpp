#include "claim/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "claim/derived.hpp"
#include "claim/quoted.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "runner/environment.hpp"
#include "runner/known_facts.hpp"

namespace syslab::claim {
namespace {

constexpr std::size_t kShownOfSentence = 400;  // columns
constexpr std::size_t kShownOfName = 150;      // columns
constexpr const char* kNotTold = "not told";

std::string in_short(const std::string& digest) {
  return digest.empty() ? kNotTold : in_quotes(digest, kShownOfDigest);
}

class Lines {
 public:
  // `then` and `here` as they are shown: values of the file are quoted.
  void add(const std::string& what, const std::string& then, const std::string& here) {
    const char* const hidden = then == here ? ", which differ in what is not shown" : "";
    lines_.push_back(fmt::format("{}: claim {}, here {}{}", in_one_run(what, kShownOfName), then, here, hidden));
  }
  void add_if_other(const std::string& what, const std::string& then, const std::string& here) {
    if (then != here) add(what, in_quotes(then), in_quotes(here));
  }
  void add_text(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void add_side(Lines& lines, const Side& then, const Side& here) {
  lines.add_if_other(here.label + " implementation", then.name, here.name);
  if (then.is_mine != here.is_mine) {
    const auto whose = [](const Side& side) { return side.is_mine ? "handed in" : "of syslab"; };
    lines.add(here.label, whose(then), whose(here));
  }
  if (then.command != here.command) {
    lines.add(here.label + " command", in_quotes(then.command), in_quotes(here.command));
  } else if (then.digest != here.digest && here.is_mine) {  // of ours it is the build's
    lines.add(here.label + (here.command.empty() ? " file" : " command's files"), in_short(then.digest),
              in_short(here.digest));
  }
}

void add_files(Lines& lines, const File& then, const File& here) {
  const auto digest = [](const File& file, const std::string& option) {
    const auto found = file.digests.find(option);
    return found == file.digests.end() ? std::string() : found->second;
  };
  for (const char* option : {"reference", "inputs"}) {
    const std::string before = digest(then, option), now = digest(here, option);
    if (before != now) lines.add(fmt::format("--{} file", option), in_short(before), in_short(now));
  }
}

// "cpu.model" → "a processor".
std::map<std::string, Json> leaves_of(const Json& json, const std::string& prefix) {
  std::map<std::string, Json> leaves;
  const bool is_list_of_values = json.is_array() && !json.empty() && !json.front().is_structured();
  if (!json.is_structured() || is_list_of_values) {
    leaves[prefix] = json;
    return leaves;
  }
  for (const auto& [key, value] : json.items())
    leaves.merge(leaves_of(value, prefix.empty() ? key : prefix + "." + key));
  return leaves;
}

// Null: it is not there, which `missing` says.
void add_fact(Lines& lines, const std::string& name, const Json& then, const Json& here, const char* missing) {
  if (then == here) return;
  lines.add(name, then.is_null() ? missing : shown(then), here.is_null() ? missing : shown(here));
}

void add_leaves(Lines& lines, const Json& then, const Json& here, const std::string& prefix) {
  const std::map<std::string, Json> before = leaves_of(then, prefix), now = leaves_of(here, prefix);
  std::set<std::string> names;
  for (const auto* leaves : {&before, &now}) {
    for (const auto& [name, value] : *leaves) names.insert(name);
  }
  const auto at = [](const std::map<std::string, Json>& leaves, const std::string& name) {
    const auto found = leaves.find(name);
    return found == leaves.end() ? Json() : found->second;
  };
  for (const std::string& name : names) add_fact(lines, name, at(before, name), at(now, name), kNotTold);
}

void add_build(Lines& lines, const File& then, const File& here) {
  lines.add_if_other("revision of syslab", revision_of(then.build_json), revision_of(here.build_json));
  Json before = parse_json(then.build_json), now = parse_json(here.build_json);
  for (Json* build : {&before, &now}) {
    for (const char* of_revision : {"git_sha", "git_dirty"}) build->erase(of_revision);
  }
  add_leaves(lines, before, now, "build");
}

void add_tolerance(Lines& lines, const File& then) {
  if (then.tolerance == kTolerance) return;
  lines.add_text(fmt::format("tolerance: claim {:g} %, usually {:g} %", 100 * then.tolerance, 100 * kTolerance));
}

// One card of eight is as fast as another, and which it was does not matter. All variables stay: a file that somebody
// else wrote may have one that syslab writes into no claim.
Json steady(const std::string& environment_json) {
  const Json whole = parse_json(environment_json);
  Json facts = runner::facts_for_strangers(whole);
  if (const auto env = whole.find("env"); env != whole.end() && env->is_object()) facts["env"] = *env;
  facts = runner::printable_facts(facts);
  if (!facts.contains("gpu")) facts["gpu"] = Json::array();
  for (Json& gpu : facts["gpu"]) gpu.erase("pci");
  facts["env"].erase("CUDA_VISIBLE_DEVICES");
  return facts;
}

// A claim has no paths, so that one here does not say that the variable is not set.
const char* why_missing(const std::string& name, const Json& other) {
  const Json told = runner::facts_for_strangers({{"env", {{name, other}}}});
  return told.at("env").contains(name) ? "not set" : kNotTold;
}

void add_machine(Lines& lines, const File& then, const File& here) {
  Json before = steady(then.environment_json), now = steady(here.environment_json);
  Json& cards_then = before["gpu"];
  Json& cards_here = now["gpu"];
  if (cards_then.size() != cards_here.size()) {  // and of those that only one has, nothing
    lines.add("gpus", std::to_string(cards_then.size()), std::to_string(cards_here.size()));
    const auto both = static_cast<std::ptrdiff_t>(std::min(cards_then.size(), cards_here.size()));
    for (Json* const cards : {&cards_then, &cards_here}) {
      cards->erase(cards->begin() + both, cards->end());
    }
  }
  // Variables that steer a computation: OMP_NUM_THREADS changes more than most kernels do.
  const Json variables_then = before["env"], variables_here = now["env"];
  for (Json* facts : {&before, &now}) facts->erase("env");
  add_leaves(lines, before, now, "");
  std::set<std::string> names;
  for (const Json* variables : {&variables_then, &variables_here}) {
    for (const auto& [name, value] : variables->items()) names.insert(name);
  }
  for (const std::string& name : names) {
    const Json then_is = variables_then.value(name, Json()), here_is = variables_here.value(name, Json());
    add_fact(lines, name, then_is, here_is, why_missing(name, then_is.is_null() ? here_is : then_is));
  }
}

// The machine code of what ran on the GPU, where the claim tells it.
void add_kernels(Lines& lines, const std::string& of, const std::string& then, const std::string& here) {
  if (!then.empty() && then != here) lines.add("kernels of " + of, in_short(then), in_short(here));
}

// Clocks move in steps of 15 MHz.
void add_clock(Lines& lines, const std::string& of, double then, double here) {
  constexpr double kSame = 0.01;
  if (!(then > 0) || (here > 0 && std::abs(here / then - 1) <= kSame)) return;
  lines.add("the GPU's clock under " + of, fmt::format("{:.0f} MHz", then),
            here > 0 ? fmt::format("{:.0f} MHz", here) : kNotTold);
}

// Times that no machine of the same kind would have: a ratio may be kept while both are forged.
void add_time(Lines& lines, const std::string& of, double then, double here) {
  constexpr double kFar = 1.5;  // times; clocks and neighbours make less
  if (!(then > 0) || !(here > 0) || std::abs(std::log(here / then)) <= std::log(kFar)) return;
  lines.add("the time of " + of, fmt::format("{:.4g} s", then), fmt::format("{:.4g} s", here));
}

std::string quoted_sentence(stats::TimingWarning warning) {
  for (std::string* const text : {&warning.side, &warning.about}) *text = in_one_run(*text, kShownOfValue);
  return in_quotes(sentence(warning), kShownOfSentence);
}

// Their numbers are of one run, and differ from the next.
void add_warnings(Lines& lines, const std::string& title, const Case& then, const Case& here) {
  const auto knows = [](const Case& one, const stats::TimingWarning& warning) {
    return std::ranges::any_of(one.warnings, [&](const stats::TimingWarning& it) {
      return it.code == warning.code && it.side == warning.side && it.about == warning.about;
    });
  };
  for (const stats::TimingWarning& warning : then.warnings) {
    if (!knows(here, warning)) lines.add("a warning of " + title, quoted_sentence(warning), "none");
  }
  for (const stats::TimingWarning& warning : here.warnings) {
    if (!knows(then, warning)) lines.add("a warning of " + title, "none", quoted_sentence(warning));
  }
}

void add_case(Lines& lines, const File& file, const Case& then, const Case& here, bool same_kind) {
  const std::string title = full_title(file, then);
  const std::string faster = file.faster.label + " in " + title, slower = file.slower.label + " in " + title;
  if (then.ranks != here.ranks) lines.add("ranks of " + title, std::to_string(then.ranks), std::to_string(here.ranks));
  add_kernels(lines, faster, then.faster_code, here.faster_code);
  add_kernels(lines, slower, then.slower_code, here.slower_code);
  if (same_kind) {
    add_time(lines, faster, side_seconds(then, 'B'), side_seconds(here, 'B'));
    add_time(lines, slower, side_seconds(then, 'A'), side_seconds(here, 'A'));
  }
  add_clock(lines, faster, then.faster_mhz, here.faster_mhz);
  add_clock(lines, slower, then.slower_mhz, here.slower_mhz);
  add_warnings(lines, title, then, here);
}

}  // namespace

void require_same_cases(const File& then, const File& here) {
  // Of a function the cases are those of --inputs, of anything else those of this program.
  const char* const advice = then.digests.empty()
                                 ? "verify it with the syslab that made it, or one of the same versions"
                                 : "are --reference and --inputs those of the claim?";
  const auto refuse = [advice](const std::string& what) { throw Error(ErrorKind::usage, what + "; " + advice); };
  if (here.cases.size() != then.cases.size()) {
    refuse(fmt::format("the claim has {}, and here its words mean {}",
                       counted(static_cast<std::int64_t>(then.cases.size()), "case"), here.cases.size()));
  }
  for (std::size_t i = 0; i < here.cases.size(); ++i) {
    const Case &claimed = then.cases[i], &own = here.cases[i];
    if (own.experiment != claimed.experiment || own.params != claimed.params) {
      refuse(
          fmt::format("case {} of the claim is {}, and here its words mean another", i + 1, full_title(then, claimed)));
    }
    if (own.version != claimed.version) {
      refuse(fmt::format("{} is of version {} here and was of version {} when the claim was made", claimed.experiment,
                         own.version, claimed.version));
    }
  }
}

std::vector<std::string> differences(const File& then, const File& here, bool same_kind) {
  Lines lines;
  add_build(lines, then, here);
  add_side(lines, then.faster, here.faster);
  add_side(lines, then.slower, here.slower);
  add_files(lines, then, here);
  add_tolerance(lines, then);
  add_machine(lines, then, here);
  for (std::size_t i = 0; i < std::min(then.cases.size(), here.cases.size()); ++i) {
    add_case(lines, then, then.cases[i], here.cases[i], same_kind);
  }
  return lines.take();
}

}  // namespace syslab::claim
