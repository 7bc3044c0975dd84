#include "claim/statement.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "claim/quoted.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::claim {
namespace {

constexpr double kLargestFactor = 1e6;

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorKind::usage,
              fmt::format("claim {}: {}; write FASTER >= FACTOR x SLOWER, as in 'me >= 1.10 x naive', and behind it "
                          "'in geometric mean' where that is meant and not every case",
                          in_quotes(text), why));
}

bool take_ending(std::string& text, std::string_view ending) {
  if (!text.ends_with(ending)) return false;
  text = trim(text.substr(0, text.size() - ending.size()));
  return true;
}

bool is_times(std::string_view word) { return word == "x" || word == "×" || word == "*"; }

double factor_of(std::string_view text, const std::string& word) {
  double factor = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), factor);
  if (failed != std::errc{} || end != word.data() + word.size() || !std::isfinite(factor)) {
    refuse(text, fmt::format("{} is no number", in_quotes(word)));
  }
  if (factor < 1 / kLargestFactor || factor > kLargestFactor) {
    refuse(text, fmt::format("{} times is not between 10⁻⁶ and 10⁶", word));
  }
  return factor;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' ')) {
    if (!trim(word).empty()) words.push_back(trim(word));
  }
  return words;
}

}  // namespace

Statement parse_statement(std::string_view text) {
  Statement statement;
  std::string rest = trim(in_one_run(text, std::string::npos));  // a name has no blank in it, of whatever width
  if (take_ending(rest, "in geometric mean")) {
    statement.quantifier = Quantifier::geometric_mean;
  } else {
    take_ending(rest, "in every case");
  }
  const std::size_t at = rest.find(">=");
  if (at == std::string::npos) refuse(text, "it has no '>='");
  const std::vector<std::string> left = words_of(rest.substr(0, at)), right = words_of(rest.substr(at + 2));
  if (left.size() != 1) refuse(text, "one name belongs before '>='");
  statement.faster = left[0];
  if (right.size() == 3 && is_times(right[1])) {
    statement.factor = factor_of(text, right[0]);
  } else if (right.size() != 1) {
    refuse(text, "'FACTOR x NAME' or a name belongs behind '>='");
  }
  statement.slower = right.back();
  if (statement.faster == statement.slower) refuse(text, "both sides are the same");
  return statement;
}

verdict::SpeedBorder border_of(const Statement& statement, double tolerance) {
  return {statement.factor, statement.quantifier, tolerance};
}

std::string to_string(const Statement& statement) {
  return fmt::format("{} >= {} x {} {}", statement.faster, statement.factor, statement.slower,
                     statement.quantifier == Quantifier::every_case ? "in every case" : "in geometric mean");
}

}  // namespace syslab::claim
