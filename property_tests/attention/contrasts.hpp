// What is learnt of a fault by asking for something slightly different: the same again, or one thing changed.
#pragma once

#include <string>

#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

// The same input, asked some times more.
struct AskedAgain {
  int calls = 0, wrong_calls = 0;  // with the first
  bool differs = false;            // by more than the bound of an element
  std::string wrong;               // wrong_tensors, of all calls together
  std::string line() const;
};
AskedAgain asked_again(const Subject& subject, const Trial& first, Pass pass);

// "right once it is asked without a mask, or with 20 keys in place of 17": changes of one thing that the contract has,
// each of which makes two wrong answers right. Empty where none does.
std::string right_with(const Subject& subject, const Sample& sample, Pass pass);

// Of a kernel that is right for scores of order one and wrong for scores of ±1e4, by two other inputs: all scores of
// a row near 1000, and near −1000.
std::string of_large_scores(const Subject& subject, const Sample& sample);

}  // namespace syslab::attention
