// Which revision to try next, and between which the change lies: a search in halves that can do without some answers.
// Knows nothing of git or of time.
#pragma once

#include <optional>
#include <vector>

namespace syslab::cli {

enum class Answer {
  good,
  bad,
  unknown  // it does not build, or what was measured does not tell
};

class Bisection {
 public:
  // Revisions 0 (good) to `last` (bad), last ≥ 1.
  explicit Bisection(int last) : good_(0), bad_(last), unknown_(static_cast<std::size_t>(last) + 1, false) {}

  // The one nearest to the middle that has not been asked in vain; nothing: nothing is left to ask.
  std::optional<int> next() const;
  // Of next(), or any that lies between.
  void take(int revision, Answer answer);

  int last_good() const { return good_; }
  int first_bad() const { return bad_; }
  // The first bad one is among these: first_bad(), and those before it that nobody could answer for.
  std::vector<int> suspects() const;
  // At most, if all answer.
  int questions_left() const;

 private:
  int good_, bad_;
  std::vector<bool> unknown_;
};

// After how many launches a step is looked at, until it is clear or there have been `most`: 5, 10, 20 and so on, `most`
// the last.
std::vector<int> looks_until(int most);

}  // namespace syslab::cli
