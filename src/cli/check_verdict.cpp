#include "cli/check_verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "check/law.hpp"
#include "core/text.hpp"
#include "session/selection.hpp"
#include "session/summary.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

using namespace std::chrono_literals;

// Equal messages count as one finding, whichever laws found it.
struct BeyondFinding {
  bool posed;  // by a hand-out
  std::string said;
  std::vector<std::string> laws;
  std::string message, input;
};

std::string said_of(const plan::PlannedCase& planned, const JudgedLaw& check) {
  return planned.implementation + ": " + gist(check.message);
}

std::string text_of(const BeyondFinding& finding) {
  const auto laws = static_cast<std::int64_t>(finding.laws.size());
  return fmt::format("{}{}: {}\n      with {}", fmt::join(finding.laws, ", "),
                     laws > 1 ? fmt::format(" ({})", counted(laws, "law")) : "", finding.message, finding.input);
}

std::string some_of(const std::vector<std::string>& laws) {
  constexpr std::size_t kFew = 3;
  if (laws.size() <= 2 * kFew) return fmt::format("{}", fmt::join(laws, ", "));
  return fmt::format("{} and {} more laws", fmt::join(laws.begin(), laws.begin() + kFew, ", "), laws.size() - kFew);
}

}  // namespace

std::map<std::int64_t, JudgedLaw> judged_laws(const store::Store& store, store::RowId run) {
  const store::ResultSet found = store.query(
      "SELECT a.plan_seq, coalesce(k.outcome, iif(a.status = 'skipped', 'not_run', 'error')),"
      "       coalesce(k.message, iif(a.status IN ('skipped', 'timeout'), a.message, NULL),"
      "                iif(k.outcome = 'passed', '', 'ended without an answer')),"
      "       k.counterexample, k.uid, k.uid IS NULL AND a.status = 'timeout', coalesce(k.cases_run, 0),"
      "       k.uid IS NULL AND a.status = 'aborted'"
      "  FROM v_attempt a LEFT JOIN check_result k ON k.attempt_id = a.attempt_id"
      " WHERE a.run_id = ?1 ORDER BY a.attempt_id, k.id",
      {store::integer_cell(run)});
  std::map<std::int64_t, JudgedLaw> checks;
  for (const auto& row : found.rows)
    checks[row[0].integer] = {row[1].text,         row[2].text,    row[3].text,        row[4].text,
                              row[5].integer != 0, row[6].integer, row[7].integer != 0};
  return checks;
}

double first_call_seconds(const store::Store& store, store::RowId run) {
  const store::ResultSet found = store.query(
      "SELECT total(f.facts ->> '$.first_call_seconds') FROM attempt a"
      " JOIN attempt_facts f ON f.attempt_id = a.id WHERE a.run_id = ?1",
      {store::integer_cell(run)});
  return found.rows.at(0).at(0).real;
}

const char* verdict_of(const HandoutTally& tally) {
  if (tally.tried == 0) return "NOT CHECKED";
  if (tally.held == tally.of) return "PASS";
  return !tally.wrong && tally.barely > 0 && tally.held + tally.barely == tally.of ? "NOT CHECKED" : "FAIL";
}

bool is_of_ranks(std::string_view law) {
  return law.starts_with("ddp.") || law.starts_with("sharded.") || law.starts_with("fsdp.");
}

std::string unasked_mask(const plan::Plan& plan) {
  std::set<std::string> experiments, mine;
  for (const plan::PlannedCase& planned : plan.cases) {
    const auto spec = std::ranges::find(plan.mine, planned.implementation, &plan::MineSpec::name);
    const bool of_class = spec != plan.mine.end() && spec->is_python() && !spec->is_function();
    if (!of_class || planned.device == plan::kCuda || !planned.law.starts_with("attention.")) continue;
    if (!planned.params.has("contract") || to_string(planned.params.at("contract")) != "handout") continue;
    experiments.insert(planned.experiment->id);
    mine.insert(" --mine " + shell_word(spec->name + "=" + path_of(*spec)));
  }
  if (experiments.empty()) return {};
  return fmt::format("the causal mask was not asked: syslab check {}{} -a causal=true --contract full asks it",
                     fmt::join(experiments, " "), fmt::join(mine, ""));
}

std::string nothing_checked(const std::string& name, std::int64_t cases, std::int64_t attempts, std::int64_t tried) {
  if (cases == 0 || tried > 0 || attempts < cases) return {};
  return fmt::format("{}: nothing was checked: {} skipped or unsupported", name,
                     cases == 1 ? "its only case was" : fmt::format("all its {} cases were", cases));
}

std::string input_of(const std::string& counterexample) {
  const Json values = Json::parse(counterexample, nullptr, false);
  if (!values.is_object()) return "no input was kept";
  std::string text;
  for (const auto& [name, value] : values.items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

bool is_mine(const plan::Plan& plan, const plan::PlannedCase& planned) {
  return std::any_of(plan.mine.begin(), plan.mine.end(),
                     [&](const plan::MineSpec& mine) { return mine.name == planned.implementation; });
}

Exit print_verdict(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan,
                   const CheckVerdict& asked, Exit ended) {
  const std::map<std::int64_t, JudgedLaw> checks = judged_laws(store, run);
  HandoutTally handout;
  std::int64_t beyond = 0, beyond_tried = 0, beyond_held = 0;
  std::int64_t unposed = 0, unposed_tried = 0, unposed_held = 0;  // of what no hand-out poses
  bool others_wrong = false, unposed_wrong = false, interrupted = false;
  std::string left_out;
  std::vector<BeyondFinding> found_beyond;
  std::map<std::string, std::vector<std::string>> never_tried;  // reason → laws
  // Laws that had no time for all of their tries, and with how many they made, as text and as JSON.
  std::vector<std::string> cut_laws, cut;
  Json cut_json = Json::array();
  const bool one_experiment = std::ranges::all_of(
      plan.cases, [&](const plan::PlannedCase& one) { return one.experiment == plan.cases.front().experiment; });
  std::set<std::string> told;  // by the hand-out's laws: no finding beyond it
  for (const plan::PlannedCase& planned : plan.cases) {
    const auto found = checks.find(planned.index);
    JudgedLaw check = found == checks.end() ? JudgedLaw{"not_run", "not begun", ""} : found->second;
    interrupted = interrupted || check.stopped || (found == checks.end() && !asked.may_end_early);
    if (check.stopped) {
      check.outcome = "not_run";
      check.message = "the check was stopped while they were searched";
    }
    const bool wrong = check.outcome == "falsified" || check.outcome == "error";
    const bool of_handout = is_mine(plan, planned) && to_string(planned.params.at("contract")) == "handout";
    const bool is_cut = is_mine(plan, planned) && check.outcome == "passed" && asked.within.count() > 0 &&
                        check.cases_run < asked.cases;
    if (is_cut) {
      cut_laws.push_back(planned.law + (of_handout ? " of the hand-out" : ""));
      cut.push_back(
          fmt::format("{}{} {}", one_experiment ? "" : planned.experiment->id + " ", cut_laws.back(), check.cases_run));
      cut_json.push_back({{"law", planned.law},
                          {"experiment", planned.experiment->id},
                          {"contract", of_handout ? "handout" : "full"},
                          {"cases", check.cases_run}});
    }
    if (!is_mine(plan, planned)) {
      others_wrong = others_wrong || wrong;
      continue;
    }
    if (of_handout) {
      const bool barely = is_cut && check.cases_run < check::LawRequest::kFewestCases;
      ++handout.of;
      handout.tried += check.outcome == "not_run" ? 0 : 1;
      handout.held += check.outcome == "passed" && !barely ? 1 : 0;
      handout.barely += barely ? 1 : 0;
      handout.wrong = handout.wrong || check.outcome == "falsified";
      if (wrong) told.insert(said_of(planned, check));
      if (check.outcome == "not_run")
        never_tried[first_line(check.message)].push_back(planned.law + " of the hand-out");
      continue;
    }
    const bool posed = !planned.experiment->problems.empty();
    ++(posed ? beyond : unposed);
    // A law that found no input to ask of has not been tried.
    const bool untried = check.outcome == "not_run" || (posed && check.outcome == "gave_up");
    (posed ? beyond_tried : unposed_tried) += untried ? 0 : 1;
    (posed ? beyond_held : unposed_held) += check.outcome == "passed" ? 1 : 0;
    if (!posed) {
      unposed_wrong = unposed_wrong || check.outcome == "falsified";
    }
    if (check.outcome == "passed") {  // its message says what it leaves out; that of one that draws all sizes counts
      constexpr std::string_view kOfAll = "never tried, at any depth: ";
      const bool better = left_out.empty() || (check.message.starts_with(kOfAll) && !left_out.starts_with(kOfAll));
      if (better && check.message.starts_with("never tried")) left_out = check.message;
      continue;
    }
    if (!wrong) {
      std::vector<std::string>& laws = never_tried[first_line(check.message)];
      if (std::ranges::find(laws, planned.law) == laws.end()) laws.push_back(planned.law);
    } else if (const std::string said = said_of(planned, check); !told.contains(said)) {
      const auto equal = std::ranges::find(found_beyond, said, &BeyondFinding::said);
      if (equal == found_beyond.end()) {
        found_beyond.push_back({posed, said, {planned.law}, first_line(check.message), input_of(check.counterexample)});
      } else if (std::ranges::find(equal->laws, planned.law) == equal->laws.end()) {
        equal->laws.push_back(planned.law);  // a law may be planned more than once, for the values of an axis
      }
    }
  }
  std::vector<std::string> findings;
  for (const BeyondFinding& finding : found_beyond) findings.push_back(text_of(finding));
  if (handout.of + unposed + beyond == 0) return ended;
  const bool none_tried = handout.tried + beyond_tried + unposed_tried == 0;
  const bool pass = handout.held == handout.of,
             unposed_pass = unposed_held == unposed_tried && (unposed == 0 || unposed_tried > 0);
  const auto word = [](std::int64_t some_tried, bool passes) {
    return some_tried == 0 ? "NOT CHECKED" : passes ? "PASS" : "FAIL";
  };
  const std::string no_mask = pass && handout.tried > 0 && !asked.beyond_decides ? unasked_mask(plan) : "";
  const char* const of_unposed = word(unposed_tried, unposed_pass);
  const bool only_beyond = handout.of + unposed == 0;  // -k or -x chose so: then that decides
  const char* const verdict = handout.of > 0 ? verdict_of(handout)
                              : only_beyond  ? word(beyond_tried, findings.empty())
                                             : of_unposed;
  Exit exit = pass && unposed_pass ? Exit::well : handout.wrong || unposed_wrong ? Exit::wrong : Exit::incomplete;
  if (only_beyond) exit = beyond_tried == 0 ? Exit::incomplete : ended;
  if (others_wrong || (asked.beyond_decides && !findings.empty())) exit = worse(exit, Exit::wrong);
  if (asked.beyond_decides) exit = worse(exit, ended);
  if (interrupted) exit = worse(exit, Exit::incomplete);

  const std::string depth_time = asked.within == kDeepDepth.within ? "5 min" : fmt::format("{} s", asked.within / 1s);
  const std::string why_cut =
      fmt::format("all {} inputs, since the {} of this depth are shared among the laws", asked.cases, depth_time);
  if (!cut.empty()) never_tried[why_cut] = cut_laws;
  const double first_calls = first_call_seconds(store, run);
  if (context.console.json()) {
    Json untried = Json::object();
    for (const auto& [reason, laws] : never_tried) untried[reason] = laws;
    context.console.print_line({{"type", "verdict"},
                                {"handout", handout.of > 0 ? Json(asked.year) : Json(nullptr)},
                                {"verdict", verdict},
                                {"held", handout.of > 0 ? handout.held
                                         : only_beyond  ? beyond_held
                                                        : unposed_held},
                                {"of", handout.of > 0 ? handout.of
                                       : only_beyond  ? beyond_tried
                                                      : unposed_tried},
                                {"findings", findings},
                                {"never_tried", untried},
                                {"unasked", no_mask},
                                {"cut", cut_json},
                                {"first_call_seconds", first_calls},
                                {"left_out", left_out},
                                {"exit", static_cast<int>(exit)}});
    return exit;
  }
  if (context.console.quiet()) return exit;
  std::string text;  // without the findings, of which the summary above has told, each once
  const std::string chosen =
      asked.chosen_by.empty() ? "" : fmt::format("; only the laws that {} chose", asked.chosen_by);
  if (handout.of > 0) {
    text += fmt::format("hand-out {}: {} ({} of {}{}){}{}\n", asked.year, verdict, handout.held, handout.of, chosen,
                        no_mask.empty() ? "" : "; ", no_mask);
  }
  if (beyond > 0) {
    const auto found = std::ranges::count(found_beyond, true, &BeyondFinding::posed);
    text += fmt::format("beyond the hand-out: {}{}\n", beyond_tried == 0 ? "NOT CHECKED" : counted(found, "finding"),
                        only_beyond ? chosen : "");
  }
  if (unposed > 0) {
    text += fmt::format("what no hand-out poses: {} ({} of {} laws that were tried{})\n", of_unposed, unposed_held,
                        unposed_tried, chosen);
  }
  constexpr double kWorthTelling = 5;
  if (first_calls >= kWorthTelling) {
    text +=
        fmt::format("  first calls, which import and may compile, took {:.0f} s beside what laws share\n", first_calls);
  }
  if (!cut.empty()) {
    never_tried.erase(why_cut);
    text += fmt::format("  never tried: {}; tried were of {}; --cases {} takes as long as it takes\n", why_cut,
                        fmt::join(cut, ", "), asked.cases);
  }
  for (const auto& [reason, laws] : never_tried) {
    text += fmt::format("  never tried: {}: {}\n",
                        none_tried ? some_of(laws) : fmt::format("{}", fmt::join(laws, ", ")), reason);
  }
  if (beyond + unposed > 0) {
    if (!asked.until.empty()) {
      text += fmt::format("  never tried: more inputs than fit into {}; --until takes more time\n", asked.until);
    } else if (asked.cases < kDeepDepth.cases) {
      text += fmt::format("  never tried: more than {} inputs a law; --deep tries {}\n", asked.cases, kDeepDepth.cases);
    }
    if (!left_out.empty()) text += "  " + left_out + "\n";
    if (std::ranges::any_of(plan.cases, is_of_ranks, &plan::PlannedCase::law)) {
      const bool on_gpus = std::ranges::any_of(plan.cases, [](const auto& one) { return one.device == "cuda"; });
      text += fmt::format(
          "  never tried, at any depth: more than 4 ranks, {}ranks that use different parameters in one step, "
          "groups of some ranks\n",
          on_gpus ? "" : "GPUs (--device cuda), ");
    }
  }
  context.console.print(text);
  return exit;
}

}  // namespace syslab::cli
