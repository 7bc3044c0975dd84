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
  bool wrong() const {
    return std::any_of(tensors.begin(), tensors.end(), [](const Judged& one) { return one.wrong_anywhere(); });
  }
};

// Asks the implementation; throws what its call throws.
Trial tried(const Subject& subject, const Sample& sample, Pass pass);

// "001": of out and lse, or of dq, dk and dv, which are wrong anywhere.
std::string wrong_tensors(const Trial& trial);

}  // namespace syslab::attention
