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
#include "session/selection.hpp"
#include "session/summary.hpp"
#include "store/cells.hpp"
#include "submission/locked.hpp"
#include "verdict/gist.hpp"

namespace syslab::cli {
namespace {

using namespace std::chrono_literals;

// A law beyond the hand-out's that failed. Equal texts count as one finding, whichever laws said them.
struct BeyondFinding {
  std::string said;
  std::vector<std::string> laws;
  std::string message, input;
};

std::string said_of(const plan::PlannedCase& planned, const JudgedLaw& check) {
  return planned.implementation + ": " + verdict::gist(check.finding, check.message);
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
                         std::string_view year, bool barely) {
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
          .same_as = said_of(planned, law),
          .lacking = law.lacks && submission::is_of_surroundings(*law.lacks, year)};
}

bool is_of_ranks(const plan::PlannedCase& planned) { return planned.experiment->takes_ranks(); }

std::string unasked_mask(const plan::Plan& plan) {
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
  return fmt::format(
      "the hand-out does not test the causal mask; to let it decide: syslab check {}{} -a causal=true --contract full",
      fmt::join(experiments, " "), fmt::join(mine, ""));
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

// What a run's laws came to, gathered for the verdict and for those who read it.
class CheckedLaws {
 public:
  CheckedLaws(const store::Store& store, store::RowId run, const plan::Plan& plan, const CheckVerdict& asked)
      : plan_(plan), asked_(asked), checks_(judged_laws(store, run)), first_calls_(first_call_seconds(store, run)) {
    one_experiment_ = std::ranges::all_of(
        plan.cases, [&](const plan::PlannedCase& one) { return one.experiment == plan.cases.front().experiment; });
    for (const plan::PlannedCase& planned : plan.cases) add(planned);
    result_ = verdict::judge(facts_, {.beyond_decides = asked.beyond_decides, .strict = asked.strict});
    if (cut_.empty()) return;
    const std::string time = asked.within == kDeepDepth.within ? "5 min" : fmt::format("{} s", asked.within / 1s);
    why_cut_ = fmt::format("all {} inputs, since the laws share the {} of this depth", asked.cases, time);
  }

  bool of_mine() const { return planned() > 0; }

  Exit exit(Exit ended) const {
    Exit exit = exit_for(result_.standing);
    // What is wrong is judged; how the run ended tells what is missing.
    const bool counts = asked_.beyond_decides || (is_beyond_alone() && result_.of_beyond.tried > 0);
    if (counts && ended != Exit::wrong) exit = worse(exit, ended);
    return interrupted_ ? worse(exit, Exit::incomplete) : exit;
  }

  Json json(Exit exit) const {
    std::vector<std::string> findings;
    for (const BeyondFinding& finding : findings_) findings.push_back(text_of(finding));
    Json untried = Json::object(), warnings = Json::object(), open = Json::object();
    for (const auto& [reason, laws] : never_tried_) untried[reason] = laws;
    if (!cut_.empty()) untried[why_cut_] = cut_laws_;
    for (const auto& [lack, laws] : open_) open[lack] = laws;
    for (const auto& [kind, count] : result_.warnings) warnings[std::string(to_string(kind))] = count;
    const verdict::Share& share = deciding();
    return {{"type", "verdict"},
            {"handout", result_.of_handout.planned > 0 ? Json(asked_.year) : Json(nullptr)},
            {"verdict", std::string(to_string(word()))},
            {"held", share.held},
            {"of", share.of},
            {"warnings", warnings},
            {"warned", result_.warned()},
            {"broken", broken_},
            {"findings", findings},
            {"never_tried", untried},
            {"open", open},
            {"unasked", unasked()},
            {"cut", cut_json_},
            {"first_call_seconds", first_calls_},
            {"left_out", fmt::format("{}", fmt::join(left_out(), "\n"))},
            {"cases", asked_.cases},
            {"until", asked_.until.empty() ? Json(nullptr) : Json(asked_.until)},
            {"chosen_by", asked_.chosen_by.empty() ? Json(nullptr) : Json(asked_.chosen_by)},
            {"exit", static_cast<int>(exit)}};
  }

  // What was never tried, and the verdict in the last line.
  std::string text() const { return details() + verdict_line(); }
  std::string verdict_line() const { return last_line() + "\n"; }
  bool warned() const { return result_.warned() > 0; }

 private:
  std::int64_t planned() const {
    return result_.of_handout.planned + result_.of_beyond.planned + result_.of_unposed.planned;
  }
  // -k or -x chose so: then that decides.
  bool is_beyond_alone() const { return result_.of_handout.planned + result_.of_unposed.planned == 0; }
  const verdict::Share& deciding() const {
    return result_.of_handout.planned > 0 ? result_.of_handout
           : is_beyond_alone()            ? result_.of_beyond
                                          : result_.of_unposed;
  }
  verdict::Word word() const {
    return result_.of_handout.planned > 0 ? result_.handout : is_beyond_alone() ? result_.beyond : result_.unposed;
  }
  std::string unasked() const {
    const bool passes = result_.handout == verdict::Word::pass && result_.of_handout.tried > 0;
    return passes && !asked_.beyond_decides ? unasked_mask(plan_) : "";
  }

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
    facts_.push_back(
        fact_of(plan_, planned, check, asked_.year, is_cut && check.cases_run < check::LawRequest::kFewestCases));
    const verdict::LawFact& fact = facts_.back();
    if (fact.part == verdict::Part::ours) return;
    const bool of_handout = fact.part == verdict::Part::handout;
    const std::string name = planned.law + (of_handout ? " of the hand-out" : "");
    if (is_cut) add_cut(planned, name, of_handout, check);
    if (verdict::is_open(fact)) {
      add_once(open_[check.lacks->text()], name);
    } else if (fact.outcome == Outcome::passed) {
      note_left_out(planned.law, check.finding, of_handout);
    } else if (fact.outcome != Outcome::falsified && fact.outcome != Outcome::error) {
      if (of_handout && fact.outcome != Outcome::not_run) return;
      add_once(never_tried_[first_line(check.message)], name);
    } else if (of_handout) {
      told_.insert(fact.same_as);
    } else if (!told_.contains(fact.same_as)) {
      add_finding(planned, check, fact);
    }
  }

  static void add_once(std::vector<std::string>& laws, const std::string& law) {
    if (std::ranges::find(laws, law) == laws.end()) laws.push_back(law);
  }

  void add_cut(const plan::PlannedCase& planned, const std::string& name, bool of_handout, const JudgedLaw& check) {
    cut_laws_.push_back(name);
    cut_.push_back(fmt::format("{}{} {}", one_experiment_ ? "" : planned.experiment->id + " ", name, check.cases_run));
    cut_json_.push_back({{"law", planned.law},
                         {"experiment", planned.experiment->id},
                         {"contract", to_string(of_handout ? Contract::handout : Contract::full)},
                         {"cases", check.cases_run}});
  }

  // Of an operator's laws that held, what one that draws all sizes leaves out counts, beyond the hand-out where that is
  // asked.
  void note_left_out(const std::string& law, const Finding& held, bool of_handout) {
    if (held.never_drawn.empty()) return;
    const LeftOut found{of_handout, held.small ? law : "", held.never_drawn};
    const auto [there, is_new] = left_out_.try_emplace(law.substr(0, law.find('.')), found);
    const auto narrowness = [](const LeftOut& one) { return std::pair(one.of_handout, !one.by_small.empty()); };
    if (!is_new && narrowness(found) < narrowness(there->second)) there->second = found;
  }

  // A line for each operator; with several, each is named.
  std::vector<std::string> left_out() const {
    std::vector<std::string> lines;
    for (const auto& [name, found] : left_out_) {
      const std::string of =
          found.by_small.empty() ? left_out_.size() > 1 ? ", of " + name : "" : ", by " + found.by_small;
      lines.push_back(fmt::format("never tried, at any depth{}: {}", of, found.never_drawn));
    }
    return lines;
  }

  void add_finding(const plan::PlannedCase& planned, const JudgedLaw& check, const verdict::LawFact& fact) {
    if (verdict::fails_handout(fact.part, fact.outcome, fact.finding, fact.promised)) add_once(broken_, planned.law);
    const auto equal = std::ranges::find(findings_, fact.same_as, &BeyondFinding::said);
    if (equal != findings_.end()) return add_once(equal->laws, planned.law);  // planned again for another value
    findings_.push_back({fact.same_as, {planned.law}, first_line(check.message), input_of(check.counterexample)});
  }

  std::string chosen() const {
    return asked_.chosen_by.empty() ? "" : fmt::format("; only the laws that {} chose", asked_.chosen_by);
  }

  std::string details() const {
    std::string text;
    constexpr double kWorthTelling = 5;
    if (first_calls_ >= kWorthTelling) {
      text += fmt::format("  first calls (imports, compilation) took {:.0f} s, which the laws' time does not include\n",
                          first_calls_);
    }
    if (!cut_.empty()) {
      text += fmt::format("  never tried: {}; tried: {}; try: --cases {}, without a time limit\n", why_cut_,
                          fmt::join(cut_, ", "), asked_.cases);
    }
    for (const auto& [lack, laws] : open_) {
      text += fmt::format("  open: {}: {}; try: another Python, --python FILE\n", lack, some_of(laws));
    }
    const bool none_tried = result_.of_handout.tried + result_.of_beyond.tried + result_.of_unposed.tried == 0;
    for (const auto& [reason, laws] : never_tried_) {
      text += fmt::format("  never tried: {}: {}\n",
                          none_tried ? some_of(laws) : fmt::format("{}", fmt::join(laws, ", ")), reason);
    }
    if (result_.of_beyond.planned + result_.of_unposed.planned > 0) text += limits();
    for (const std::string& line : left_out()) text += "  " + line + "\n";
    if (const std::string mask = unasked(); !mask.empty()) text += fmt::format("  {}\n", mask);
    return text;
  }

  std::string limits() const {
    std::string text;
    if (!asked_.until.empty()) {
      text += fmt::format("  never tried: more inputs than fit into {}; try: a longer --until\n", asked_.until);
    } else if (asked_.cases < kDeepDepth.cases) {
      text += fmt::format("  never tried: more than {} inputs per law; try: --deep, with {}\n", asked_.cases,
                          kDeepDepth.cases);
    }
    if (!std::ranges::any_of(plan_.cases, is_of_ranks)) return text;
    const bool on_gpus =
        std::ranges::any_of(plan_.cases, [](const auto& one) { return one.device == DeviceKind::cuda; });
    return text + fmt::format(
                      "  never tried, at any depth: more than 4 ranks, {}ranks that use different parameters in one "
                      "step, groups of some ranks\n",
                      on_gpus ? "" : "GPUs (--device cuda), ");
  }

  // "3 warnings: 1 crash, 2 wrong values", where anything beyond the hand-out was tried.
  std::string warnings() const {
    if (result_.of_beyond.planned == 0) return "";
    if (result_.of_beyond.tried == 0 && result_.warned() == 0) return ", nothing tried beyond it";
    return ", " + verdict::counted_beyond(result_, {.beyond_decides = asked_.beyond_decides, .strict = asked_.strict});
  }

  std::string last_line() const {
    std::vector<std::string> parts;
    if (const verdict::Share& share = result_.of_handout; share.planned > 0) {
      const std::string broken =
          broken_.empty() ? "" : fmt::format("; {} fails on what is promised", fmt::join(broken_, ", "));
      parts.push_back(fmt::format("hand-out {}: {} ({} of {}{}{}){}", asked_.year, to_string(result_.handout),
                                  share.held, share.of, broken, chosen(), warnings()));
    } else if (const verdict::Share& beyond = result_.of_beyond; beyond.planned > 0) {
      const std::string some =
          beyond.tried == 0 ? "" : fmt::format("{} of {} laws that were tried", beyond.held, beyond.tried);
      const std::string counts = beyond.tried == 0 ? "" : warnings();
      std::string said = some + (some.empty() && !chosen().empty() ? chosen().substr(2) : chosen());
      parts.push_back(fmt::format("beyond the hand-out: {}{}{}", to_string(result_.beyond),
                                  said.empty() ? "" : " (" + said + ")", counts));
    }
    if (const verdict::Share& share = result_.of_unposed; share.planned > 0) {
      parts.push_back(fmt::format("what no hand-out poses: {} ({} of {} laws that were tried{})",
                                  to_string(result_.unposed), share.held, share.tried, chosen()));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  const plan::Plan& plan_;
  const CheckVerdict& asked_;
  std::map<std::int64_t, JudgedLaw> checks_;
  double first_calls_;
  bool one_experiment_ = true, interrupted_ = false;
  std::vector<verdict::LawFact> facts_;
  verdict::LawVerdict result_;
  std::set<std::string> told_;  // by the hand-out's laws: no finding beyond it
  std::vector<BeyondFinding> findings_;
  std::vector<std::string> broken_;                              // laws that fail on what is promised
  std::map<std::string, std::vector<std::string>> never_tried_;  // reason → laws
  std::map<std::string, std::vector<std::string>> open_;         // what this Python lacks → laws
  // Laws that had no time for all of their tries, and with how many they made, as text and as JSON.
  std::vector<std::string> cut_laws_, cut_;
  Json cut_json_ = Json::array();
  std::string why_cut_;
  struct LeftOut {
    bool of_handout = false;
    std::string by_small, never_drawn;  // the law, where that draws small problems alone
  };
  std::map<std::string, LeftOut> left_out_;  // operator → what it leaves out
};

}  // namespace

Exit print_verdict(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan,
                   const CheckVerdict& asked, Exit ended) {
  const CheckedLaws judged(store, run, plan, asked);
  if (!judged.of_mine()) return ended;
  const Exit exit = judged.exit(ended);
  if (context.console.json()) {
    context.console.print_line(judged.json(exit));
  } else if (!context.console.quiet()) {
    context.console.print(judged.text());
  } else if (judged.warned()) {
    context.console.print(judged.verdict_line());
  }
  return exit;
}

}  // namespace syslab::cli
