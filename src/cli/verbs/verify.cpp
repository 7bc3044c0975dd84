#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "claim/alteration.hpp"
#include "claim/differences.hpp"
#include "claim/message.hpp"
#include "claim/quoted.hpp"
#include "cli/claim_run.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "runner/environment.hpp"
#include "session/selection.hpp"
#include "words/speed_words.hpp"

namespace syslab::cli {
namespace {

// Of a digest, as much as tells it from another.
std::string in_short(const std::string& digest) { return digest.substr(0, 12); }

// Files come from this command line alone: a claim names none. All that are missing are told at once.
void require_files(const claim::File& file, const VerifyOptions& options) {
  const bool is_function = !file.digests.empty();
  std::vector<std::string> given, commands;
  for (const std::string& word : options.files.mine) given.push_back(word.substr(0, word.find('=')));
  for (const std::string& word : options.files.commands) commands.push_back(plan::parse_command(word).name);
  std::string missing, digests;
  const auto miss = [&](const std::string& option, const std::string& name, const std::string& digest) {
    missing += " " + option;
    digests += fmt::format("{}{} {}", digests.empty() ? "" : ", ", name, in_short(digest));
  };
  std::set<std::string> asked;  // sides may differ in axes alone
  for (const claim::Side* side : {&file.faster, &file.slower}) {
    if (!side->is_mine || (is_function && side->name == plan::kReferenceName)) continue;
    if (!side->command.empty()) {
      if (std::ranges::find(commands, side->name) != commands.end()) continue;
      throw Error(ErrorKind::usage, fmt::format("the claim is about '{}', a command of its author, and a claim starts "
                                                "nothing; if you mean to: --command {}={}",
                                                side->name, shell_word(side->name), shell_word(side->command)));
    }
    if (std::ranges::find(given, side->name) != given.end() || !asked.insert(side->name).second) continue;
    miss(fmt::format("--mine {}={}", shell_word(side->name), is_function ? "FILE.py:NAME" : "FILE"), side->name,
         side->digest);
  }
  // A manifest may name its reference itself; cases lie beside the reference where nothing else is said.
  if (is_function && options.files.reference.empty() && !options.files.inputs.ends_with(".json")) {
    const auto digest = [&](const char* option) {
      const auto found = file.digests.find(option);
      return found == file.digests.end() ? std::string() : found->second;
    };
    miss("--reference FILE.py:NAME", "reference", digest("reference"));
    if (options.files.inputs.empty() && digest("inputs") != digest("reference")) {
      miss("--inputs FILE.py:NAME", "inputs", digest("inputs"));
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("a claim brings no code; give the files that it is about:{} (SHA-256 of its "
                          "author's: {})",
                          missing, digests));
}

// Whether this machine is of the kind that the claim is about; where all of it runs on a single GPU, whether the GPU
// is.
bool is_same_kind(const claim::File& file, const plan::ComparisonPlan& plan, const claim::File& here) {
  if (here.machine_kind == file.machine_kind) return true;
  const auto on_one_gpu = [](const plan::PlannedCase& one) {
    return one.device == DeviceKind::cuda && one.world_size == 1;
  };
  const bool of_a_gpu = std::ranges::all_of(
      plan.points, [&](const plan::ComparisonPoint& point) { return on_one_gpu(point.a) && on_one_gpu(point.b); });
  return of_a_gpu && runner::comparability_key_on_one_gpu(parse_json(file.environment_json)) ==
                         runner::comparability_key_on_one_gpu(parse_json(here.environment_json));
}

// What the file asks for, or why that cannot be measured. The reason has words of the file.
plan::ComparisonPlan plan_of_claim(const Context& context, claim::File& file, const SelectionOptions& files) {
  try {
    return plan_of(context, file.statement, file.question, files);
  } catch (const Error& error) {
    std::string told;
    for (const std::string& line : split(error.what(), '\n')) {
      told += (told.empty() ? "" : "\n") + claim::shown_message(file, line);
    }
    const bool is_quoted = !claim::has_plain_words_alone(file);
    throw Error(error.kind(), (is_quoted ? "the claim cannot be measured here: " : "") + told);
  }
}

// A claim that was altered is not measured: nobody knows what it said.
Exit tell_altered(const Context& context, const claim::File& file) {
  if (context.console.json()) {
    Json altered = Json::array();
    for (const claim::Alteration& one : file.altered) {
      altered.push_back({{"kind", claim::to_string(one.kind)},
                         {"where", one.where},
                         {"found", one.found},
                         {"expected", one.expected}});
    }
    context.console.print_document(
        {{"verdict", "altered"}, {"claim", claim::to_string(file.statement)}, {"altered", altered}});
    return Exit::wrong;
  }
  std::string text;
  for (const claim::Alteration& one : file.altered) text += claim::to_string(one) + "\n";
  context.console.print(text +
                        "altered: the file is not as syslab wrote it, or contradicts itself; nothing was measured.\n");
  return Exit::wrong;
}

}  // namespace

Exit execute(const Context& context, const VerifyOptions& options) {
  claim::File file = claim::read_claim(options.claim);
  if (!file.altered.empty()) return tell_altered(context, file);
  require_files(file, options);
  SelectionOptions files = options.files;
  files.file_names = plan::FileNames::refused;
  const plan::ComparisonPlan plan = plan_of_claim(context, file, files);
  claim::File here;
  here.faster = side_of(plan, 'B');
  here.slower = side_of(plan, 'A');
  here.digests = digests_of(plan);
  here.cases = cases_of(plan);
  claim::require_same_cases(file, here);
  take_machine(here);
  const bool same_kind = is_same_kind(file, plan, here);
  const ClaimRun run =
      measure(context, "verify", plan, file, file.tolerance,
              {options.launches, options.budget, options.timeout, options.memory_limit, options.label});
  here.cases = run.cases;
  const std::vector<std::string> differing = claim::differences(file, here, same_kind);
  const verdict::SpeedBorder border = claim::border_of(file.statement, file.tolerance);
  const verdict::SpeedFinding finding = verdict::judge(border, run.measured);
  const verdict::SpeedFinding claimed = claim::finding_of(file);
  const std::string reason = words::reason(finding, run.measured, border);
  const std::string verdict(same_kind ? verdict::to_string(finding.verdict) : "other hardware");
  const Exit exit = worse(same_kind ? exit_of(finding.verdict) : Exit::unclear, run.exit);
  if (context.console.json()) {
    Json json = words::to_json(finding, run.measured, reason);
    json["here"] = json["verdict"];
    json["verdict"] = verdict;
    json["claim"] = claim::to_string(file.statement);
    json["tolerance"] = file.tolerance;
    json["border"] = std::exp(border.log());
    json["differing"] = differing;
    json["sealed"] = file.is_sealed;
    json["run"] = run.run_uid;
    json["warnings"] = stats::to_json(claim::all_warnings(run.cases));
    if (!plan.mine.empty()) add_missing_walls(json);
    context.console.print_document(json);
    return exit;
  }
  std::string text =
      fmt::format("{}, made {} as its author says\n", claim::to_string(file.statement), in_quotes(file.made_at));
  if (!file.is_sealed) text += std::string(claim::kNoSeal) + "\n";
  text += case_table(context.console, run.measured, finding, border.log(), &claimed);
  text += warnings_of(run.cases);
  text += fmt::format("confirmed if at least {}\n", words::border_text(border));
  const std::string found = fmt::format("{}: {}", verdict::to_string(finding.verdict), reason);
  text += same_kind
              ? found + ".\n"
              : fmt::format("other hardware: a claim about one machine says nothing of another. Here it would be {}.\n",
                            found);
  text += other_failures(run.measured, finding);
  if (!run.what_would_do.empty()) text += run.what_would_do + "\n";
  for (const std::string& one : differing) text += "differs  " + one + "\n";
  context.console.print(text);
  return exit;
}

}  // namespace syslab::cli
