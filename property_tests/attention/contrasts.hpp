// What is learnt of a fault by asking for something slightly different: the same again, or one thing changed.
#pragma once

#include <optional>
#include <string>

#include "property_tests/attention/likeness.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

// The same input, asked some times more.
struct AskedAgain {
  int calls = 0, wrong_calls = 0;  // with the first
  bool differs = false;            // by more than the bound of an element
  std::string wrong;               // wrong_tensors, of all calls together
  std::string given;               // wrong_given, of the first call that has any
  Likeness likeness() const;
};
AskedAgain asked_again(const Subject& subject, const Trial& first, Pass pass);

// State that an earlier call left: wrong behind other calls, and right as the first that a fresh process is asked. Else
// nothing, and of a rung of ours. A process is started for it: once for what is wrong there as well, a few times for
// what is right.
std::optional<Likeness> of_a_fresh_process(const Subject& subject, const AskedAgain& again, const Sample& sample,
                                           Pass pass);

// Changes of one thing that the contract has, each of which makes two wrong answers right. Where no rounded length
// does, two numbers of keys: right at the first, and wrong at the second.
struct RightWith {
  std::string shown;           // "right once it is asked without a mask; right at 1024 keys, wrong at 1025", or empty
  bool at_fewer_keys = false;  // `shown` ends with such numbers
};
RightWith right_with(const Subject& subject, const Sample& sample, Pass pass);

// Of a kernel that is right for scores of order one and wrong for scores of ±1e4, by two other inputs: all scores of
// a row near 1000, and near −1000. Empty where what it wrote there speaks against each cause: an exp that overflows, or
// a sum of nothing, leaves no row its log-sum-exp, and exp itself leaves out no mean of the values. The cause is empty
// where only inputs are told apart.
Likeness of_large_scores(const Subject& subject, const Sample& sample);

}  // namespace syslab::attention
