#include "verdict/law_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/text/text.hpp"
#include "verdict/law_row.hpp"

namespace syslab::verdict {
namespace {

bool is_wrong(const LawFact& fact) { return !is_open(fact) && verdict::is_wrong(fact.outcome); }

// What was tried and said nothing leaves the verdict open: a process that could not be asked, say.
bool is_decided_wrong(const LawFact& fact) {
  if (is_open(fact)) return false;
  return fact.outcome == Outcome::falsified || (fact.outcome == Outcome::error && is_severe(fact.finding));
}

void add_to(Share& share, const LawFact& fact, bool counts_all) {
  // Of a problem of the hand-out a law that found no input to ask has not been tried.
  const bool untried = is_open(fact) || fact.outcome == Outcome::not_run ||
                       (fact.part == Part::beyond && fact.outcome == Outcome::gave_up);
  ++share.planned;
  share.tried += untried ? 0 : 1;
  share.open += is_open(fact) ? 1 : 0;
  const bool is_enough = fact.part != Part::handout || !fact.barely;
  share.held += fact.outcome == Outcome::passed && is_enough ? 1 : 0;
  share.of = counts_all ? share.planned : share.tried;
}

// `open`: another law that decides could not be asked.
Word word_of_handout(const LawVerdict& verdict, bool wrong, bool open) {
  const Share& share = verdict.of_handout;
  if (verdict.broken > 0 || wrong) return Word::fail;
  const std::int64_t untried = share.planned - share.tried;
  if (share.open > 0 && share.held + verdict.barely + untried == share.of) return Word::open;
  if (share.tried == 0) return Word::not_checked;
  // What could not be asked, of a dtype that this torch does not compute in say, is no fault and no pass.
  return share.held == share.of && !open ? Word::pass : Word::not_checked;
}

Word word_of(const Share& share, bool wrong, bool holds) {
  if (share.tried == 0) return share.open > 0 ? Word::open : Word::not_checked;
  return wrong ? Word::fail : holds ? Word::pass : Word::not_checked;
}

}  // namespace

bool is_beyond_alone(const LawVerdict& verdict) { return verdict.of_handout.planned + verdict.of_unposed.planned == 0; }

bool beyond_decides(const LawVerdict& verdict, const LawsAsked& asked) {
  return asked.strict || asked.beyond_decides || is_beyond_alone(verdict);
}

bool fails_handout(Part part, Outcome outcome, FindingKind finding, bool promised) {
  if (!is_wrong(outcome)) return false;
  return part == Part::handout || (part == Part::beyond && promised && is_severe(finding));
}

std::string_view to_string(Word word) {
  switch (word) {
    case Word::pass:
      return "PASS";
    case Word::fail:
      return "FAIL";
    case Word::open:
      return "OPEN";
    case Word::not_checked:
      return "NOT CHECKED";
  }
  return "NOT CHECKED";
}

bool is_open(const LawFact& fact) {
  return fact.lacking && !is_severe(fact.finding) && fact.outcome != Outcome::passed;
}

std::int64_t LawVerdict::warned() const {
  std::int64_t sum = 0;
  for (const auto& [kind, count] : warnings) sum += count;
  return sum;
}

LawVerdict judge(std::span<const LawFact> facts, const LawsAsked& asked) {
  LawVerdict verdict;
  bool handout_wrong = false, beyond_wrong = false, unposed_wrong = false, others_wrong = false, others_open = false;
  std::set<std::string> told, warned;
  for (const LawFact& fact : facts) {
    if (fact.part == Part::handout && is_wrong(fact)) told.insert(fact.same_as);
  }
  for (const LawFact& fact : facts) {
    const bool decided = is_decided_wrong(fact);
    switch (fact.part) {
      case Part::ours:
        others_wrong = others_wrong || decided;
        others_open = others_open || (is_wrong(fact) && !decided);
        break;
      case Part::unposed:
        add_to(verdict.of_unposed, fact, false);
        unposed_wrong = unposed_wrong || decided;
        break;
      case Part::handout:
        add_to(verdict.of_handout, fact, true);
        verdict.barely += fact.barely ? 1 : 0;
        handout_wrong = handout_wrong || decided;
        break;
      case Part::beyond:
        add_to(verdict.of_beyond, fact, false);
        if (fails_handout(fact.part, fact.outcome, fact.finding, fact.promised)) {
          ++verdict.broken;
        } else if (is_wrong(fact) && !told.contains(fact.same_as) && warned.insert(fact.same_as).second) {
          ++verdict.warnings[fact.finding];
          beyond_wrong = beyond_wrong || decided;
        }
        break;
    }
  }
  const std::int64_t found = verdict.warned() + verdict.broken;
  const bool found_decides = beyond_decides(verdict, asked);
  const bool by_beyond = verdict.broken > 0 || (beyond_wrong && found_decides);
  verdict.handout = word_of_handout(verdict, handout_wrong || by_beyond, found > 0 && found_decides);
  verdict.beyond = word_of(verdict.of_beyond, beyond_wrong || verdict.broken > 0, found == 0);
  verdict.unposed = word_of(verdict.of_unposed, unposed_wrong, verdict.of_unposed.held == verdict.of_unposed.of);

  const bool wrong = handout_wrong || unposed_wrong || others_wrong || by_beyond;
  const bool whole = !others_open && (verdict.of_handout.planned == 0 || verdict.handout == Word::pass) &&
                     (verdict.of_unposed.planned == 0 || verdict.unposed == Word::pass) &&
                     (!is_beyond_alone(verdict) || verdict.beyond == Word::pass);
  verdict.standing = wrong ? Standing::wrong : whole ? Standing::well : Standing::incomplete;
  return verdict;
}

}  // namespace syslab::verdict
