// From what laws found to a verdict: pure, so that check and grade mean the same by a PASS.
//
//   const LawVerdict verdict = judge(facts, {.strict = true});
//   if (verdict.handout == Word::fail) …
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "contract/outcome.hpp"
#include "core/finding_kind.hpp"

namespace syslab::verdict {

// To which set a law belongs.
enum class Part {
  handout,  // what the hand-out's tests look at, on their inputs
  beyond,   // of a problem of the hand-out, and beyond its tests
  unposed,  // of an operator that no hand-out poses
  ours,     // of an implementation that is not the one under test
};

struct LawFact {
  Part part = Part::handout;
  Outcome outcome = Outcome::not_run;
  FindingKind finding = FindingKind::none;
  bool promised = false;  // it fails on an input that is promised
  bool barely = false;    // it held, in fewer tries than a law has at the least; counts for the hand-out's alone
  std::string same_as{};  // findings with an equal text are one
  // It failed, or was not tried, for want of what this Python lacks and that of the hand-out has; a process of ours has
  // found that to be so. Such a law says nothing of the implementation.
  bool lacking = false;
};

// Whether a law keeps a hand-out's PASS away: one of its own that is wrong, or any other that met a severe fault on an
// input that is promised.
bool fails_handout(Part part, Outcome outcome, FindingKind finding, bool promised);

struct LawsAsked {
  bool beyond_decides = false;  // --contract full
  bool strict = false;          // --strict
};

// `open`: what was tried held, and the rest needs what this Python lacks.
enum class Word { pass, fail, open, not_checked };
std::string_view to_string(Word word);  // "PASS", "FAIL", "OPEN", "NOT CHECKED"

// Whether a law is left open: a fault that no tolerance excuses is none of this Python's.
bool is_open(const LawFact& fact);

// `held` of `of` laws. Of the hand-out all are counted; of the others those that were tried.
struct Share {
  std::int64_t held = 0, of = 0, tried = 0, planned = 0, open = 0;
};

enum class Standing { well, wrong, incomplete };

struct LawVerdict {
  Word handout = Word::not_checked, beyond = Word::not_checked, unposed = Word::not_checked;
  Share of_handout, of_beyond, of_unposed;
  std::int64_t barely = 0;                       // of the hand-out's
  std::int64_t broken = 0;                       // other laws that fail on what is promised
  std::map<FindingKind, std::int64_t> warnings;  // distinct findings beyond what is promised
  std::int64_t warned() const;
  // Of all together. Where only laws beyond the hand-out were asked, they decide.
  Standing standing = Standing::incomplete;
};

LawVerdict judge(std::span<const LawFact> facts, const LawsAsked& asked);

// Whether only laws beyond the hand-out were asked; and whether what they find is failures, not warnings.
bool is_beyond_alone(const LawVerdict& verdict);
bool beyond_decides(const LawVerdict& verdict, const LawsAsked& asked);

}  // namespace syslab::verdict
