#include "cli/check_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/text.hpp"

namespace syslab::cli {
namespace {

struct JudgedLaw {
  std::string outcome, message, counterexample;
};

std::map<std::int64_t, JudgedLaw> judged_laws(const store::Store& store, store::RowId run) {
  store::Cell wanted;
  wanted.type = store::Cell::Type::integer;
  wanted.integer = run;
  const store::ResultSet found = store.query(
      "SELECT a.plan_seq, k.outcome, k.message, k.counterexample FROM check_result k"
      " JOIN attempt a ON a.id = k.attempt_id WHERE a.run_id = ?1 ORDER BY k.id",
      {wanted});
  std::map<std::int64_t, JudgedLaw> checks;
  for (const auto& row : found.rows) checks[row[0].integer] = {row[1].text, row[2].text, row[3].text};
  return checks;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// "dtype=fp32 mask=top_left seq_q=17": the drawn values, without RapidCheck's own order.
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

}  // namespace

bool is_mine(const plan::Plan& plan, const plan::PlannedCase& planned) {
  return std::any_of(plan.mine.begin(), plan.mine.end(),
                     [&](const plan::MineSpec& mine) { return mine.name == planned.implementation; });
}

Exit print_verdict(const Context& context, const store::Store& store, store::RowId run, const plan::Plan& plan,
                   const CheckVerdict& asked, Exit ended) {
  const std::map<std::int64_t, JudgedLaw> checks = judged_laws(store, run);
  std::int64_t of_handout = 0, held = 0, beyond = 0;
  bool handout_wrong = false, others_wrong = false;
  std::vector<std::string> findings;
  std::map<std::string, std::vector<std::string>> never_tried;  // reason → laws
  std::set<std::string> told;                                   // equal messages are one finding
  for (const plan::PlannedCase& planned : plan.cases) {
    const auto found = checks.find(planned.index);
    const JudgedLaw check = found == checks.end() ? JudgedLaw{"error", "ended without an answer", ""} : found->second;
    const bool wrong = check.outcome == "falsified" || check.outcome == "error";
    if (!is_mine(plan, planned)) {
      others_wrong = others_wrong || wrong;
      continue;
    }
    if (to_string(planned.params.at("contract")) == "handout") {
      ++of_handout;
      held += check.outcome == "passed" ? 1 : 0;
      handout_wrong = handout_wrong || check.outcome == "falsified";
      if (wrong) told.insert(check.message);
      continue;
    }
    ++beyond;
    if (check.outcome == "passed") continue;
    if (!wrong) {
      never_tried[first_line(check.message)].push_back(planned.law);
    } else if (told.insert(check.message).second) {
      findings.push_back(
          fmt::format("{}: {}\n      with {}", planned.law, first_line(check.message), input_of(check.counterexample)));
    }
  }
  if (of_handout == 0) return ended;
  const bool pass = held == of_handout;
  Exit exit = pass ? Exit::well : handout_wrong ? Exit::wrong : Exit::incomplete;
  if (others_wrong || (asked.beyond_decides && !findings.empty())) exit = worse(exit, Exit::wrong);
  if (asked.beyond_decides) exit = worse(exit, ended);

  if (context.console.json()) {
    Json untried = Json::object();
    for (const auto& [reason, laws] : never_tried) untried[reason] = laws;
    context.console.print_line({{"type", "verdict"},
                                {"handout", asked.year},
                                {"verdict", pass ? "PASS" : "FAIL"},
                                {"held", held},
                                {"of", of_handout},
                                {"findings", findings},
                                {"never_tried", untried},
                                {"exit", static_cast<int>(exit)}});
    return exit;
  }
  if (context.console.quiet()) return exit;
  std::string text;
  for (const std::string& finding : findings) text += "  " + finding + "\n";
  text += fmt::format("hand-out {}: {} ({} of {})\n", asked.year, pass ? "PASS" : "FAIL", held, of_handout);
  if (beyond > 0) {
    text += fmt::format("beyond the hand-out: {}\n", counted(static_cast<std::int64_t>(findings.size()), "finding"));
  }
  for (const auto& [reason, laws] : never_tried) {
    text += fmt::format("  never tried: {}: {}\n", fmt::join(laws, ", "), reason);
  }
  context.console.print(text);
  return exit;
}

}  // namespace syslab::cli
