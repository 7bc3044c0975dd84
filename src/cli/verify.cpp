#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/claim_run.hpp"
#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "runner/environment.hpp"
#include "session/selection.hpp"
#include "session/stored_run.hpp"

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

// The same cases of the same experiments, or the numbers mean something else.
void require_same_cases(const claim::File& file, const plan::ComparisonPlan& plan) {
  // Of a function the cases are those of --inputs, of anything else those of this program.
  const char* const advice = file.digests.empty()
                                 ? "verify it with the syslab that made it, or one of the same versions"
                                 : "are --reference and --inputs those of the claim?";
  const auto refuse = [advice](const std::string& what) { throw Error(ErrorKind::usage, what + "; " + advice); };
  if (plan.points.size() != file.cases.size()) {
    refuse(fmt::format("the claim has {}, and here its words mean {}",
                       counted(static_cast<std::int64_t>(file.cases.size()), "case"), plan.points.size()));
  }
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const plan::ComparisonPoint& point = plan.points[i];
    const claim::Case& claimed = file.cases[i];
    if (point.a.experiment->id != claimed.experiment || json_text(point.shared.to_json()) != claimed.params) {
      refuse(fmt::format("case {} of the claim is {}, and here its words mean another", i + 1, claimed.title));
    }
    if (point.a.experiment->version != claimed.version) {
      refuse(fmt::format("{} is of version {} here and was of version {} when the claim was made", claimed.experiment,
                         point.a.experiment->version, claimed.version));
    }
  }
}

// Variables that steer a computation: OMP_NUM_THREADS changes more than most kernels do. Which GPU it was does not.
std::vector<std::string> differing_variables(const Json& then, const Json& now) {
  const auto steering = [](const Json& facts) {
    Json variables = runner::facts_for_strangers(facts)["env"];
    variables.erase("CUDA_VISIBLE_DEVICES");
    return variables;
  };
  const Json before = steering(then), here = steering(now);
  std::set<std::string> names;
  for (const Json* variables : {&before, &here}) {
    for (const auto& [name, value] : variables->items()) names.insert(name);
  }
  std::vector<std::string> differing;
  for (const std::string& name : names) {
    const std::string a = before.value(name, std::string("not set")), b = here.value(name, std::string("not set"));
    if (a != b) differing.push_back(printable(fmt::format("{}: claim {}, here {}", name, a, b)));
  }
  return differing;
}

std::vector<std::string> differing_code(const claim::File& file, const plan::ComparisonPlan& plan) {
  std::vector<std::string> differing;
  const auto compare = [&](const claim::Side& then, const claim::Side& now) {
    if (then.digest == now.digest) return;
    const char* what = !now.command.empty() ? "command and its files" : now.is_mine ? "file" : "revision";
    differing.push_back(
        fmt::format("{} {}: claim {}, here {}", now.label, what, in_short(then.digest), in_short(now.digest)));
  };
  compare(file.faster, side_of(plan, 'B'));
  compare(file.slower, side_of(plan, 'A'));
  const std::map<std::string, std::string> now = digests_of(plan);
  for (const auto& [option, digest] : file.digests) {
    const auto found = now.find(option);
    const std::string here = found == now.end() ? "none" : found->second;
    if (here != digest) {
      differing.push_back(fmt::format("--{} file: claim {}, here {}", option, in_short(digest), in_short(here)));
    }
  }
  return differing;
}

// The machine code of what ran on the GPU, where both know it.
void add_differing_kernels(std::vector<std::string>& differing, const claim::File& file, const claim::Case& then,
                           const claim::Case& now) {
  const auto compare = [&](const claim::Side& side, const std::string& before, const std::string& here) {
    if (before.empty() || here.empty() || before == here) return;
    differing.push_back(fmt::format("kernels of {} in {}: claim {}, here {}", side.label, then.title, in_short(before),
                                    in_short(here)));
  };
  compare(file.faster, then.faster_code, now.faster_code);
  compare(file.slower, then.slower_code, now.slower_code);
}

// Whether this machine is of the kind that the claim is about; where all of it runs on a single GPU, whether the GPU
// is.
bool is_same_kind(const claim::File& file, const plan::ComparisonPlan& plan, const Json& environment) {
  if (runner::comparability_key(environment) == file.machine_kind) return true;
  const auto on_one_gpu = [](const plan::PlannedCase& one) { return one.device == plan::kCuda && one.world_size == 1; };
  const bool of_a_gpu = std::ranges::all_of(
      plan.points, [&](const plan::ComparisonPoint& point) { return on_one_gpu(point.a) && on_one_gpu(point.b); });
  return of_a_gpu && runner::comparability_key_on_one_gpu(parse_json(file.environment_json)) ==
                         runner::comparability_key_on_one_gpu(environment);
}

}  // namespace

Exit execute(const Context& context, const VerifyOptions& options) {
  claim::File file = claim::read_claim(options.claim);
  require_files(file, options);
  const plan::ComparisonPlan plan = plan_of(context, file.statement, file.question, options.files);
  require_same_cases(file, plan);
  const Json environment = runner::environment_facts();
  const bool same_kind = is_same_kind(file, plan, environment);
  std::vector<std::string> differing = differing_code(file, plan);
  for (const std::string& one : differing_machines(parse_json(file.environment_json), environment, "claim", "here")) {
    differing.push_back(one);
  }
  for (const std::string& one : differing_variables(parse_json(file.environment_json), environment)) {
    differing.push_back(one);
  }
  const ClaimRun run =
      measure(context, "verify", plan, file, file.tolerance,
              {options.launches, options.budget, options.timeout, options.memory_limit, options.label});
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    add_differing_kernels(differing, file, file.cases[i], run.cases[i]);
    for (const std::string& one : claim::differing_clocks(file, file.cases[i], run.cases[i])) differing.push_back(one);
  }
  const claim::Finding finding = claim::judge(file.statement, run.measured, file.tolerance);
  const claim::Finding claimed = claim::finding_of(file);
  const std::string verdict(same_kind ? claim::to_string(finding.verdict) : "other hardware");
  const Exit exit = worse(same_kind ? exit_of(finding.verdict) : Exit::unclear, run.exit);
  if (context.console.json()) {
    Json json = to_json(finding, run.measured);
    json["here"] = json["verdict"];
    json["verdict"] = verdict;
    json["claim"] = claim::to_string(file.statement);
    json["tolerance"] = file.tolerance;
    json["differing"] = differing;
    json["run"] = run.run_uid;
    context.console.print_document(json);
    return exit;
  }
  std::string text = fmt::format("{}, made {}\n", claim::to_string(file.statement), file.made_at);
  text += case_table(context.console, run.measured, finding, &claimed);
  const std::string here = fmt::format("{}: {}", claim::to_string(finding.verdict), finding.reason);
  text += same_kind
              ? here + ".\n"
              : fmt::format("other hardware: a claim about one machine says nothing of another. Here it would be {}.\n",
                            here);
  text += other_failures(run.measured, finding);
  if (!run.what_would_do.empty()) text += run.what_would_do + "\n";
  for (const std::string& one : differing) text += "differs  " + one + "\n";
  context.console.print(text);
  return exit;
}

}  // namespace syslab::cli
