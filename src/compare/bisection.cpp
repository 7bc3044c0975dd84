#include "compare/bisection.hpp"

#include <algorithm>

namespace syslab::cli {

std::vector<int> looks_until(int most) {
  constexpr int kFirst = 5;
  std::vector<int> looks;
  for (int look = kFirst; look < most; look *= 2) looks.push_back(look);
  looks.push_back(most);
  return looks;
}

std::optional<int> Bisection::next() const {
  const int middle = good_ + (bad_ - good_) / 2;
  for (int away = 0; away < bad_ - good_; ++away) {
    for (const int one : {middle - away, middle + away}) {
      if (one > good_ && one < bad_ && !unknown_[static_cast<std::size_t>(one)]) return one;
    }
  }
  return std::nullopt;
}

void Bisection::take(int revision, Answer answer) {
  switch (answer) {
    case Answer::good:
      good_ = std::max(good_, revision);
      break;
    case Answer::bad:
      bad_ = std::min(bad_, revision);
      break;
    case Answer::unknown:
      unknown_[static_cast<std::size_t>(revision)] = true;
      break;
  }
}

std::vector<int> Bisection::suspects() const {
  std::vector<int> suspects;
  for (int one = good_ + 1; one <= bad_; ++one) suspects.push_back(one);
  return suspects;
}

int Bisection::questions_left() const {
  int open = 0, questions = 0;
  for (int one = good_ + 1; one < bad_; ++one) open += unknown_[static_cast<std::size_t>(one)] ? 0 : 1;
  for (; open > 0; open /= 2) ++questions;
  return questions;
}

}  // namespace syslab::cli
