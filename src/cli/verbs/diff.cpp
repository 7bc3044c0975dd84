#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "compare/verdict_table.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "session/command_selection.hpp"
#include "session/selection.hpp"
#include "session/stored_case.hpp"
#include "session/stored_run.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

struct ChangedCheck {
  std::string check, before, after;
};

struct Difference {
  std::vector<std::string> conditions;  // if not empty, times are not comparable
  std::vector<ChangedCheck> checks;
  std::vector<VerdictLine> cases;  // in both
  std::vector<std::string> only_a, only_b;
};

Difference difference_of(const Context& context, const store::Store& store, store::RowId a, store::RowId b,
                         std::optional<double> delta) {
  const registry::Registry& registry = context.registry;
  Difference found;
  found.conditions = differing_conditions(store, a, b);
  const auto checks_a = stored_checks(store, a), checks_b = stored_checks(store, b);
  for (const auto& [check, before] : checks_a) {
    const auto after = checks_b.find(check);
    if (after == checks_b.end() || after->second == before) continue;
    found.checks.push_back({check.first.title(registry) + ", " + check.second, before, after->second});
  }
  const auto times_a = stored_times(store, a), times_b = stored_times(store, b);
  for (const auto& [key, of_a] : times_a) {
    const auto other = times_b.find(key);
    if (other == times_b.end()) {
      found.only_a.push_back(key.title(registry));
      continue;
    }
    const StoredTimes& of_b = other->second;
    VerdictLine line{key.title(registry), verdict::judge_stored(of_a.launch_medians, of_b.launch_medians, delta,
                                                                quantity_of_stored(key.experiment, key.params))};
    if (!found.conditions.empty()) {
      line.judgement = verdict::incomparable("machine or protocol differ");
    } else if (of_a.version != of_b.version) {
      line.judgement = verdict::incomparable(
          fmt::format("version of {}: {} in A, {} in B", key.experiment, of_a.version, of_b.version));
    }
    found.cases.push_back(std::move(line));
  }
  for (const auto& [key, of_b] : times_b) {
    if (!times_a.contains(key)) found.only_b.push_back(key.title(registry));
  }
  std::vector<verdict::Judgement*> judgements;
  for (VerdictLine& line : found.cases) judgements.push_back(&line.judgement);
  verdict::correct_for_sweep(judgements);
  return found;
}

bool is(const VerdictLine& line, std::initializer_list<stats::Verdict> verdicts) {
  return std::find(verdicts.begin(), verdicts.end(), line.judgement.verdict) != verdicts.end();
}

Json json_of(const Difference& found, const std::string& a, const std::string& b) {
  Json checks = Json::array(), cases = Json::array();
  for (const ChangedCheck& it : found.checks) {
    checks.push_back({{"check", it.check}, {"before", it.before}, {"after", it.after}});
  }
  for (const VerdictLine& line : found.cases) {
    cases.push_back(words::to_json(line.judgement));
    cases.back()["case"] = line.title;
  }
  return {{"run_a", a},       {"run_b", b},     {"interleaved", false},   {"differing", found.conditions},
          {"checks", checks}, {"cases", cases}, {"only_a", found.only_a}, {"only_b", found.only_b}};
}

void list(std::string& text, const Console& console, const std::string& heading,
          const std::vector<std::string>& items) {
  if (items.empty()) return;
  text += "\n" + console.styled(fmt::format("{} ({})", heading, items.size()), Style::bold) + "\n";
  for (const std::string& item : items) text += "  " + item + "\n";
}

void section(std::string& text, const Console& console, const std::string& heading, const Difference& found,
             std::initializer_list<stats::Verdict> verdicts) {
  std::vector<VerdictLine> lines;
  std::copy_if(found.cases.begin(), found.cases.end(), std::back_inserter(lines),
               [&](const VerdictLine& line) { return is(line, verdicts); });
  if (lines.empty()) return;
  text += "\n" + console.styled(fmt::format("{} ({})", heading, lines.size()), Style::bold) + "\n";
  text += verdict_table(console, lines, "", "");
}

std::string told(const store::StoredRun& run) {
  return fmt::format("{}  {}  {}{}", run.uid, run.started_at, run.verb, run.label.empty() ? "" : "  " + run.label);
}

}  // namespace

// A viewer: it decides nothing, so its exit code is 0 whatever it shows. `gate` decides.
Exit execute(const Context& context, const DiffOptions& options) {
  using stats::Verdict;
  require_database(context);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  const store::StoredRun a = find_run_or_pin(store, options.a), b = find_run_or_pin(store, options.b);
  if (a.id == b.id) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' and '{}' are the same run, {}; name another one", options.a, options.b, a.uid));
  }
  std::optional<double> delta;
  if (options.delta) delta = percent_option("--delta", *options.delta);
  const Difference found = difference_of(context, store, a.id, b.id, delta);
  const Console& console = context.console;
  if (console.json()) {
    console.print_document(json_of(found, a.uid, b.uid));
    return Exit::well;
  }
  std::string text = fmt::format(
      "A {}\nB {}\nStored runs, not measured in turns: whatever the machine did between them is in the difference. "
      "`syslab compare` measures again.\n",
      told(a), told(b));
  std::vector<std::string> checks;
  for (const ChangedCheck& it : found.checks) {
    checks.push_back(fmt::format("{}: {} → {}", it.check, it.before, it.after));
  }
  list(text, console, "Checks that changed", checks);
  list(text, console, "Not comparable, because these differ", found.conditions);
  section(text, console, "Changed", found, {Verdict::faster, Verdict::slower});
  section(text, console, "Unclear", found, {Verdict::unclear});
  section(text, console, "The same", found, {Verdict::same});
  if (found.conditions.empty()) section(text, console, "Incomparable", found, {Verdict::incomparable});
  list(text, console, "Only in A", found.only_a);
  list(text, console, "Only in B", found.only_b);
  if (found.cases.empty()) text += "\nNo case was measured in both runs.\n";
  console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
