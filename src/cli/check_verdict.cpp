#include "cli/check_verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "check/law.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "session/requeue.hpp"
#include "session/selection.hpp"
#include "session/summary.hpp"
#include "store/cells.hpp"
#include "submission/locked.hpp"
#include "verdict/checked_laws.hpp"
#include "words/check_words.hpp"

namespace syslab::cli {
namespace {

Exit exit_for(verdict::Standing standing) {
  return standing == verdict::Standing::well    ? Exit::well
         : standing == verdict::Standing::wrong ? Exit::wrong
                                                : Exit::incomplete;
}

}  // namespace

std::map<std::int64_t, JudgedLaw> judged_laws(const store::Store& store, store::RowId run) {
  const store::ResultSet found = store.query(
      "SELECT a.plan_seq, coalesce(k.outcome, iif(a.status = 'skipped', 'not_run', 'error')),"
      "       coalesce(k.message, iif(a.status IN ('skipped', 'timeout'), a.message, NULL),"
      "                iif(k.outcome = 'passed', '', 'ended without an answer')),"
      "       k.counterexample, k.uid, k.uid IS NULL AND a.status = 'timeout', coalesce(k.cases_run, 0),"
      "       k.uid IS NULL AND a.status = 'aborted', k.finding, coalesce(k.promised, 0),"
      "       k.uid IS NULL AND a.status NOT IN ('skipped', 'aborted'), a.facts -> '$.lacks',"
      "       coalesce(a.facts ->> '$.applies', 1), coalesce(k.seldom, 0), k.about, k.cause, k.input, k.first_wrong,"
      "       k.never_drawn, coalesce(k.small, 0)"
      "  FROM v_attempt a LEFT JOIN check_result k ON k.attempt_id = a.attempt_id"
      " WHERE a.run_id = ?1 ORDER BY a.attempt_id, k.id",
      {store::integer_cell(run)});
  std::map<std::int64_t, JudgedLaw> checks;
  for (const auto& row : found.rows) {
    JudgedLaw& law = checks[row[0].integer];
    law = {outcome_of(row[1].text).value_or(Outcome::error),
           row[2].text,
           row[3].text,
           row[4].text,
           row[5].integer != 0,
           row[6].integer,
           row[7].integer != 0};
    law.finding = {.kind = finding_kind_of(row[8].text).value_or(FindingKind::none),
                   .promised = row[9].integer != 0,
                   .seldom = row[13].integer != 0,
                   .about = row[14].text,
                   .cause = row[15].text,
                   .input = row[16].text,
                   .first_wrong = row[17].text,
                   .never_drawn = row[18].text,
                   .small = row[19].integer != 0};
    // The lab's own process ended, or ran out of its time: by what, nobody knows.
    if (row[10].integer != 0) law.finding.kind = FindingKind::unanswered;
    law.lacks = lack_of(json_or_discarded(row[11].text));
    law.applies = row[12].integer != 0;
  }
  return checks;
}

double first_call_seconds(const store::Store& store, store::RowId run) {
  const store::ResultSet found = store.query(
      "SELECT total(f.facts ->> '$.first_call_seconds') FROM attempt a"
      " JOIN attempt_facts f ON f.attempt_id = a.id WHERE a.run_id = ?1",
      {store::integer_cell(run)});
  return found.rows.at(0).at(0).real;
}

verdict::LawFact fact_of(const plan::Plan& plan, const plan::PlannedCase& planned, const JudgedLaw& law,
                         std::string_view year, verdict::SameFindings& same, bool barely) {
  using verdict::Part;
  const bool of_mine = is_mine(plan, planned);
  const bool of_handout = of_mine && plan::contract_of(planned) == Contract::handout;
  const bool posed = !planned.experiment->problems.empty();
  return {.part = !of_mine     ? Part::ours
                  : of_handout ? Part::handout
                  : posed      ? Part::beyond
                               : Part::unposed,
          .outcome = law.outcome,
          .finding = law.finding.kind,
          .promised = law.finding.promised,
          .barely = barely,
          .same_as = same.name_of(planned.implementation, law.finding, law.message),
          .lacking = law.lacks && submission::is_of_surroundings(*law.lacks, year)};
}

bool is_of_ranks(const plan::PlannedCase& planned) { return planned.experiment->takes_ranks(); }

std::string mask_command(const plan::Plan& plan) {
  std::set<std::string> experiments, mine;
  for (const plan::PlannedCase& planned : plan.cases) {
    const auto spec = std::ranges::find(plan.mine, planned.implementation, &Submitted::name);
    const bool of_class = spec != plan.mine.end() && spec->is_python() && !spec->is_function();
    const bool has_mask = planned.experiment->find_axis("causal") != nullptr;
    if (!of_class || planned.device == DeviceKind::cuda || !has_mask) continue;
    if (plan::contract_of(planned) != Contract::handout) continue;
    experiments.insert(planned.experiment->id);
    mine.insert(" --mine " + shell_word(spec->name + "=" + path_of(*spec)));
  }
  if (experiments.empty()) return {};
  return fmt::format("syslab check {}{} -a causal=true --contract full", fmt::join(experiments, " "),
                     fmt::join(mine, ""));
}

std::string nothing_checked(const std::string& name, std::int64_t cases, std::int64_t attempts, std::int64_t tried) {
  if (cases == 0 || tried > 0 || attempts < cases) return {};
  return fmt::format("{}: nothing was checked: {} skipped or unsupported", name,
                     cases == 1 ? "its only case was" : fmt::format("all its {} cases were", cases));
}

std::string input_of(const std::string& counterexample) {
  const Json values = json_or_discarded(counterexample);
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
                     [&](const Submitted& mine) { return mine.name == planned.implementation; });
}

namespace {

// Gathers what a run's laws came to.
class Gathering {
 public:
  Gathering(const store::Store& store, store::RowId run, const plan::Plan& plan, const CheckVerdict& asked)
      : plan_(plan), asked_(asked), checks_(judged_laws(store, run)) {
    laws_ = {.year = asked.year,
             .asked = {.beyond_decides = asked.beyond_decides, .strict = asked.strict},
             .cases = asked.cases,
             .within = asked.within,
             .until = asked.until,
             .chosen_by = asked.chosen_by,
             .of_ranks = std::ranges::any_of(plan.cases, is_of_ranks),
             .first_call_seconds = first_call_seconds(store, run)};
    for (const plan::PlannedCase& planned : plan.cases) {
      laws_.of_several_experiments |= planned.experiment != plan.cases.front().experiment;
      laws_.on_gpus |= planned.device == DeviceKind::cuda;
      add(planned);
    }
    laws_.verdict = verdict::judge(facts_, laws_.asked);
    const bool passes =
        laws_.verdict.handout == verdict::Word::pass && laws_.verdict.of_handout.tried > 0 && !asked.beyond_decides;
    if (passes) laws_.mask_command = mask_command(plan);
  }

  const verdict::CheckedLaws& laws() const { return laws_; }
  bool interrupted() const { return interrupted_; }

 private:
  void add(const plan::PlannedCase& planned) {
    const auto found = checks_.find(planned.index);
    JudgedLaw check = found == checks_.end() ? JudgedLaw{Outcome::not_run, "not begun", ""} : found->second;
    interrupted_ = interrupted_ || check.stopped || (found == checks_.end() && !asked_.may_end_early);
    if (check.stopped) {
      check.outcome = Outcome::not_run;
      check.message = "the check was stopped while they were searched";
    }
    const bool is_cut = is_mine(plan_, planned) && check.outcome == Outcome::passed && asked_.within.count() > 0 &&
                        check.cases_run < asked_.cases;
    facts_.push_back(fact_of(plan_, planned, check, asked_.year, same_,
                             is_cut && check.cases_run < check::LawRequest::kFewestCases));
    const verdict::LawFact& fact = facts_.back();
    if (fact.part == verdict::Part::ours) return;
    const bool of_handout = fact.part == verdict::Part::handout;
    const std::string name = verdict::name_of(planned.law, of_handout);
    if (is_cut) laws_.cut.push_back({planned.experiment->id, planned.law, of_handout, check.cases_run});
    if (verdict::is_open(fact)) {
      add_once(laws_.open[check.lacks->text()], name);
    } else if (fact.outcome == Outcome::passed) {
      note_left_out(planned.law, check.finding, of_handout);
    } else if (fact.outcome != Outcome::falsified && fact.outcome != Outcome::error) {
      if (of_handout && fact.outcome != Outcome::not_run) return;
      add_once(laws_.never_tried[first_line(check.message)], name);
    } else if (of_handout) {
      told_.insert(fact.same_as);
    } else if (!told_.contains(fact.same_as)) {
      add_finding(planned, check, fact);
    }
  }

  static void add_once(std::vector<std::string>& laws, const std::string& law) {
    if (std::ranges::find(laws, law) == laws.end()) laws.push_back(law);
  }

  // Of an operator's laws that held, what one that draws all sizes leaves out counts, beyond the hand-out where that is
  // asked.
  void note_left_out(const std::string& law, const Finding& held, bool of_handout) {
    if (held.never_drawn.empty()) return;
    const verdict::LeftOut found{of_handout, held.small ? law : "", held.never_drawn};
    const auto [there, is_new] = laws_.left_out.try_emplace(law.substr(0, law.find('.')), found);
    const auto narrowness = [](const verdict::LeftOut& one) {
      return std::pair(one.of_handout, !one.by_small.empty());
    };
    if (!is_new && narrowness(found) < narrowness(there->second)) there->second = found;
  }

  void add_finding(const plan::PlannedCase& planned, const JudgedLaw& check, const verdict::LawFact& fact) {
    if (verdict::fails_handout(fact.part, fact.outcome, fact.finding, fact.promised)) {
      add_once(laws_.broken, planned.law);
    }
    const auto equal = std::ranges::find(laws_.findings, fact.same_as, &verdict::BeyondFinding::same_as);
    if (equal != laws_.findings.end()) return add_once(equal->laws, planned.law);  // planned again for another value
    laws_.findings.push_back({fact.same_as, {planned.law}, first_line(check.message), input_of(check.counterexample)});
  }

  const plan::Plan& plan_;
  const CheckVerdict& asked_;
  std::map<std::int64_t, JudgedLaw> checks_;
  std::vector<verdict::LawFact> facts_;
  verdict::SameFindings same_;
  std::set<std::string> told_;  // by the hand-out's laws: no finding beyond it
  bool interrupted_ = false;
  verdict::CheckedLaws laws_;
};

Exit exit_after(const Gathering& gathered, Exit ended) {
  const verdict::CheckedLaws& laws = gathered.laws();
  Exit exit = exit_for(laws.verdict.standing);
  // What is wrong is judged; how the run ended tells what is missing.
  const bool counts =
      laws.asked.beyond_decides || (verdict::is_beyond_alone(laws.verdict) && laws.verdict.of_beyond.tried > 0);
  if (counts && ended != Exit::wrong) exit = worse(exit, ended);
  return gathered.interrupted() ? worse(exit, exit_of_missing()) : exit;
}

Json cut_json(const verdict::CheckedLaws& laws) {
  Json list = Json::array();
  for (const verdict::CutLaw& one : laws.cut) {
    list.push_back({{"law", one.law},
                    {"experiment", one.experiment},
                    {"contract", to_string(one.of_handout ? Contract::handout : Contract::full)},
                    {"cases", one.cases}});
  }
  return list;
}

Json json_of(const verdict::CheckedLaws& laws, Exit exit) {
  const verdict::LawVerdict& all = laws.verdict;
  std::vector<std::string> findings;
  for (const verdict::BeyondFinding& finding : laws.findings) findings.push_back(words::text_of(finding));
  Json untried = laws.never_tried, warnings = Json::object();
  for (const verdict::CutLaw& one : laws.cut) {
    untried[words::why_cut(laws)].push_back(verdict::name_of(one.law, one.of_handout));
  }
  for (const auto& [kind, count] : all.warnings) warnings[std::string(to_string(kind))] = count;
  const bool posed = all.of_handout.planned > 0, beyond_alone = verdict::is_beyond_alone(all);
  const verdict::Share& share = posed ? all.of_handout : beyond_alone ? all.of_beyond : all.of_unposed;
  const verdict::Word word = posed ? all.handout : beyond_alone ? all.beyond : all.unposed;
  return {{"type", "verdict"},
          {"handout", posed ? Json(laws.year) : Json(nullptr)},
          {"verdict", std::string(to_string(word))},
          {"held", share.held},
          {"of", share.of},
          {"warnings", warnings},
          {"warned", all.warned()},
          {"broken", laws.broken},
          {"findings", findings},
          {"never_tried", untried},
          {"open", laws.open},
          {"unasked", words::unasked_mask(laws.mask_command)},
          {"cut", cut_json(laws)},
          {"first_call_seconds", laws.first_call_seconds},
          {"left_out", fmt::format("{}", fmt::join(words::left_out(laws), "\n"))},
          {"cases", laws.cases},
          {"until", laws.until.empty() ? Json(nullptr) : Json(laws.until)},
          {"chosen_by", laws.chosen_by.empty() ? Json(nullptr) : Json(laws.chosen_by)},
          {"exit", static_cast<int>(exit)}};
}

}  // namespace

Exit print_verdict(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan,
                   const CheckVerdict& asked, Exit ended) {
  const Gathering gathered(store, run, plan, asked);
  const verdict::CheckedLaws& laws = gathered.laws();
  const verdict::LawVerdict& all = laws.verdict;
  if (all.of_handout.planned + all.of_beyond.planned + all.of_unposed.planned == 0) return ended;
  const Exit exit = exit_after(gathered, ended);
  const std::string verdict_line = words::last_line(laws) + "\n";
  if (context.console.json()) {
    context.console.print_line(json_of(laws, exit));
  } else if (!context.console.quiet()) {
    context.console.print(words::details(laws) + verdict_line);
  } else if (all.warned() > 0) {
    context.console.print(verdict_line);
  }
  return exit;
}

}  // namespace syslab::cli
