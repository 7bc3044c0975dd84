// A law as everybody names it; check::Law is one that can be searched, bound to an implementation.
#pragma once

#include <string>

namespace syslab {

struct LawInfo {
  // Which implementations it is a law of: any, only those that somebody handed in (--mine), or only ours.
  enum class Bound { all, handed_in, ours };

  std::string id;               // "attention.causal_prefix"
  std::string statement;        // one line: "changing keys after i leaves output row i as it was"
  bool against_oracle = false;  // compares with the oracle, so it proves nothing about the rung "reference"
  Bound bound = Bound::all;
  bool asked_by_handout = false;  // a test of the hand-out looks at it
};

}  // namespace syslab
