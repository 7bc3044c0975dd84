// What an implementation made of one sample, beside what is right: for who explains a counterexample.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "check/tally.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/attention/suspects.hpp"

namespace syslab::attention {

// A tensor that the implementation wrote, with what is right.
struct Judged {
  Written found;
  std::vector<double> exact, derived, allowed;
  std::int64_t unwritten = 0;  // elements that still hold what stood there before the call
  double unit = 1;             // of its numbers, where V or dO is longer or smaller than usual

  bool wrong(std::size_t i) const {
    return check::Tally::ratio_of(check::Tally::error_of(found.values[i], exact[i]), allowed[i]) > 1;
  }
  bool wrong_anywhere() const {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (wrong(i)) return true;
    }
    return false;
  }
};

// A sample with what the implementation made of it.
struct Trial {
  Sample sample;
  std::vector<Judged> tensors;
  std::vector<Judged> given;  // O and L that a backward pass was given by the forward pass, where asked for
  bool wrong() const {
    return std::any_of(tensors.begin(), tensors.end(), [](const Judged& one) { return one.wrong_anywhere(); });
  }
};

// Asks the implementation; throws what its call throws. `with_given`: of a backward pass, judges O and L as well.
Trial tried(const Subject& subject, const Sample& sample, Pass pass, bool with_given = false);

// Whether a formula gives what was found, by the bound that is derived for what is right, in a tensor whose numbers are
// of this unit.
bool same(double found, double expected, double derived, double unit);

// "O", "L" or "O and L": what the backward pass was given and is wrong; or empty.
std::string wrong_given(const Trial& trial);

// "001": of out and lse, or of dq, dk and dv, which are wrong anywhere.
std::string wrong_tensors(const Trial& trial);

}  // namespace syslab::attention
