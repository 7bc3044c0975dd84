// What is said of a counterexample beyond the law's own line: the input in a caller's words, the first wrong element by
// tile and row, and the one usual mistake that explains what was written, if exactly one kind does.
#pragma once

#include <string>
#include <string_view>

#include "property_tests/attention/law_bodies.hpp"

namespace syslab::attention {

struct Explanation {
  // "input: …\nfirst wrong: …\nlooks like …\nright once …", without the lines that nothing can be said in.
  std::string lines;
  std::string input, first_wrong, cause;  // as Finding has them; empty: nothing can be said
  // JSON: tensor, rows, columns and cells, each with its largest error over its bound, and the call where it is small
  // and of the hand-out's form; or empty.
  std::string error_map;
};

// Asks the implementation again for the sample, and for others that differ in one thing. `seldom`: the law failed and
// held on the same input.
Explanation explain(const Subject& subject, std::string_view law, const Sample& sample, Pass pass, bool seldom);

}  // namespace syslab::attention
