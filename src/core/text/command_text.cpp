#include "core/text/command_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "core/text/time_unit.hpp"

namespace syslab {
namespace {

constexpr std::size_t kLongestWord = 64;  // of what stands for a number
constexpr std::string_view kIn = "in /", kAgainst = " against in /";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::all_of(text.begin(), text.end(), fits);
}

// Calls `visit(text)` and `visit_place(name)` for the parts of `word` in their order.
template <typename Text, typename Place>
void visit_parts(std::string_view word, Text visit, Place visit_place) {
  std::size_t at = 0;
  while (at < word.size()) {
    const std::size_t open = word.find('{', at);
    const std::size_t close = open == std::string_view::npos ? open : word.find_first_of("{}", open + 1);
    if (close == std::string_view::npos) return visit(word.substr(at));
    const std::string_view name = word.substr(open + 1, close - open - 1);
    if (word[close] == '}' && is_name(name)) {
      visit(word.substr(at, open - at));
      visit_place(name);
      at = close + 1;
    } else {
      visit(word.substr(at, close - at));
      at = close;
      if (word[close] == '}') {
        visit(word.substr(close, 1));
        ++at;
      }
    }
  }
}

// Where `pattern` ends in `text` if it stands at `at`; blanks of the pattern match any number of blanks.
std::optional<std::size_t> match(std::string_view pattern, std::string_view text, std::size_t at) {
  for (std::size_t i = 0; i < pattern.size();) {
    if (is_blank(pattern[i])) {
      while (i < pattern.size() && is_blank(pattern[i])) ++i;
      while (at < text.size() && is_blank(text[at])) ++at;
      continue;
    }
    if (at >= text.size() || text[at] != pattern[i]) return std::nullopt;
    ++at;
    ++i;
  }
  return at;
}

bool is_of_word(char c) { return is_name(std::string_view(&c, 1)) || (c >= '0' && c <= '9'); }

// Outside ASCII no byte tells a letter from a blank or a sign: "1 234" with a no-break space, "−5", "ms²", "é".
// Directly next to a number or a unit, all are taken for a part of it.
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether a number at `at` begins before it: "1,234", "-5", "v2", "1:05", "10^5". Behind a digit what sets words apart
// is a part of the number. `own`: what is directly before it is the pattern's own text, which may be any sign.
bool is_inside_number(std::string_view text, std::size_t at, bool own) {
  constexpr std::string_view kApart = "()[]{}<>=\"|$`:,;'~", kOfNumbers = ":,;'~";
  if (at == 0 || is_blank(text[at - 1])) return false;
  const char before = text[at - 1];
  const bool behind_digit = at > 1 && is_digit(text[at - 2]);
  if (own) return is_of_word(before) || before == '.' || before == '+' || before == '-' || behind_digit;
  return kApart.find(before) == std::string_view::npos ||
         (behind_digit && kOfNumbers.find(before) != std::string_view::npos);
}

// Whether a plain number with a plus begins at `at`: "+5", "+.5"; std::from_chars takes no plus.
bool has_plus(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at] != '+') return false;
  return text[at + 1] == '.' || (text[at + 1] >= '0' && text[at + 1] <= '9');
}

// Whether a unit that ends at `at` goes on behind it: "msgs", "GB/second", "ms/step", "s^2", "s-1".
bool is_inside_unit(std::string_view text, std::size_t at) {
  constexpr std::string_view kApart = ".,;:!?=()[]{}<>|\"'`\\";
  if (at >= text.size() || is_blank(text[at])) return false;
  return kApart.find(text[at]) == std::string_view::npos && static_cast<unsigned char>(text[at]) >= 0x20;
}

bool has_text(std::string_view pattern) { return pattern.find_first_not_of(" \t\r\n") != std::string_view::npos; }

// Whether `token` is written as a number is that may be too small, too large or in a form that nobody reads here: "0",
// "-3", "inf", "1,234".
bool looks_like_number(std::string_view token) {
  if (token.starts_with('+') || token.starts_with('-')) token.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc::invalid_argument && end == token.data() + token.size()) return true;
  return !token.empty() && is_digit(token[0]) && token.find_first_not_of("0123456789.,'_") == std::string_view::npos;
}

}  // namespace

std::vector<std::string> command_words(std::string_view text) {
  constexpr std::string_view kOfShells = "|&;<>()$`";
  std::vector<std::string> words;
  std::string word;
  bool open = false;  // a word has begun, be it empty
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < text.size();
    if (escapes) {
      word += text[++i];
      open = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (is_blank(c)) {
      if (open) words.push_back(std::exchange(word, {}));
      open = false;
    } else if (kOfShells.find(c) != std::string_view::npos) {
      throw Error(ErrorKind::usage, fmt::format("command '{}': no shell reads it, so '{}' means nothing; write sh -c "
                                                "'…', whose start is then part of the time, or quote it",
                                                text, c));
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) throw Error(ErrorKind::usage, fmt::format("command '{}': a quote {} does not end", text, quote));
  if (open) words.push_back(word);
  if (words.empty()) throw Error(ErrorKind::usage, fmt::format("command '{}' names no program", text));
  return words;
}

std::vector<std::string> places_in(std::string_view text) {
  std::vector<std::string> names;
  visit_parts(
      text, [](std::string_view) {},
      [&](std::string_view name) {
        if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
      });
  return names;
}

std::string filled(std::string_view word, const Params& values) {
  std::string text;
  visit_parts(
      word, [&](std::string_view part) { text += part; },
      [&](std::string_view name) {
        text += values.has(name) ? to_string(values.at(name)) : fmt::format("{{{}}}", name);
      });
  return text;
}

std::string to_string(const CommandPlace& place) {
  return fmt::format("in {}: {}{}{}", place.folder, place.command, place.reference.empty() ? "" : " against ",
                     place.reference);
}

std::optional<CommandPlace> parse_command_place(std::string_view text) {
  if (!text.starts_with(kIn)) return std::nullopt;
  CommandPlace place;
  const std::size_t against = text.rfind(kAgainst);
  if (against != std::string_view::npos) {
    place.reference = text.substr(against + kAgainst.size() - kIn.size());
    text = text.substr(0, against);
  }
  const std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  place.folder = text.substr(kIn.size() - 1, colon - kIn.size() + 1);
  place.command = text.substr(colon + 2);
  return place;
}

NumberPattern::NumberPattern(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorKind::usage,
                fmt::format("--reads '{}': {}; write the text around the number, {{}} for it, and its "
                            "unit: 'time: {{}} ms' or '{{}} GB/s'",
                            text, why));
  };
  const std::size_t place = text.find("{}");
  if (place == std::string_view::npos) refuse("there is no {}");
  if (text.find("{}", place + 2) != std::string_view::npos) refuse("there is more than one {}");
  before_ = text.substr(0, place);
  after_ = text.substr(place + 2);
  while (!after_.empty() && is_blank(after_.back())) after_.pop_back();
  const std::string rest = trim(after_);
  unit_ = rest.substr(0, rest.find_first_of(" \t,;()[]"));
  if (const std::optional<double> seconds = seconds_of_unit(unit_)) {
    factor_ = *seconds;
    return;
  }
  const bool rate = unit_.ends_with("/s") || unit_.ends_with("/sec") || unit_.ends_with("FLOPS");
  if (!rate) {
    if (unit_.ends_with("FLOPs") || unit_.ends_with("flops")) {
      refuse(
          fmt::format("'{}' may be a number of operations, of which nobody knows whether more is better; print what "
                      "is per second as TFLOP/s or GFLOPS",
                      unit_));
    }
    refuse(unit_.empty()
               ? "no unit follows the {}"
               : fmt::format("'{}' is neither a unit of time nor one per second, so nobody knows whether more of it is "
                             "better (ns, us, ms, s, min; GB/s, TFLOP/s, GFLOPS)",
                             unit_));
  }
}

std::optional<std::string> NumberPattern::find_other(std::string_view text) const {
  Last counted = last_of(text);
  if (counted.other) return counted.other;
  std::optional<std::string> last;
  for (std::size_t start = 0; start < text.size(); ++start) {
    std::optional<std::size_t> at = match(before_, text, start);
    if (!at) continue;
    while (*at < text.size() && is_blank(text[*at])) ++*at;
    std::size_t stop = *at;
    while (stop < text.size() && stop - *at < kLongestWord && !is_blank(text[stop])) {
      ++stop;
      const std::optional<std::size_t> ends = end_behind(text, stop);
      if (!ends) continue;
      const bool begins = start == 0 || is_blank(text[start - 1]) || !is_blank(before_.empty() ? ' ' : before_.front());
      if (begins) last = std::string(text.substr(start, *ends - start));
      break;
    }
  }
  return last;
}

bool NumberPattern::is_apart(std::string_view text, std::size_t at) const {
  const bool directly = !before_.empty() && !is_blank(before_.back());
  return directly || !is_inside_number(text, at, has_text(before_));
}

std::optional<std::size_t> NumberPattern::end_behind(std::string_view text, std::size_t stop) const {
  const std::optional<std::size_t> ends = match(after_, text, stop);
  return !ends || (is_of_word(after_.back()) && is_inside_unit(text, *ends)) ? std::nullopt : ends;
}

// Where something at `at` that is no number above zero has the text around it, as a number would. What has text before
// it may be any word ("took n/a ms"); a unit without a blank before it, and a pattern of nothing else, are in many
// words.
std::optional<std::size_t> NumberPattern::end_of_other(std::string_view text, std::size_t at) const {
  for (std::size_t stop = at + 1; stop <= text.size() && stop - at <= kLongestWord && !is_blank(text[stop - 1]);
       ++stop) {
    const std::optional<std::size_t> ends = end_behind(text, stop);
    if (!ends) continue;
    const bool blank_behind = stop < text.size() && is_blank(text[stop]);
    const bool any = has_text(before_) && blank_behind;
    return any || looks_like_number(text.substr(at, stop - at)) ? ends : std::nullopt;
  }
  return std::nullopt;
}

std::optional<NumberPattern::Found> NumberPattern::read_at(std::string_view text, std::size_t at) const {
  double value = 0;
  const char* const begin = text.data() + at + (has_plus(text, at) ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc{} || !(value > 0) || value - value != 0) return std::nullopt;
  const auto stop = static_cast<std::size_t>(end - text.data());
  if (!end_behind(text, stop)) return std::nullopt;
  return Found{is_rate() ? 1 / value : value * factor_, at, stop};
}

NumberPattern::Last NumberPattern::last_of(std::string_view text) const {
  Last last;
  for (std::size_t start = 0; start < text.size(); ++start) {
    if (!has_text(before_) && is_blank(text[start])) continue;  // the place is the one behind all blanks
    std::optional<std::size_t> at = match(before_, text, start);
    if (!at) continue;
    while (*at < text.size() && is_blank(text[*at])) ++*at;
    if (!is_apart(text, *at)) continue;
    if (const std::optional<Found> number = read_at(text, *at)) {
      last = {number, {}};
    } else if (const std::optional<std::size_t> ends = end_of_other(text, *at)) {
      last = {std::nullopt, std::string(text.substr(start, *ends - start))};
    }
  }
  return last;
}

std::optional<NumberPattern::Found> NumberPattern::find(std::string_view text) const { return last_of(text).number; }

}  // namespace syslab
