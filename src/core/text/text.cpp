#include "core/text/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/text/printable.hpp"

namespace syslab {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edit distance with swaps of neighbours (optimal string alignment), letter case ignored.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before(width), previous(width), current(width);
  for (std::size_t j = 0; j < width; ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char x, char y) { return lower(x) == lower(y); }) != text.end();
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, resume = 0;  // the last '*', and the text it has swallowed up to
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string counted(std::int64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  const auto ends = [&](std::string_view ending) { return noun.ends_with(ending); };
  if (ends("ay") || ends("ey") || ends("oy")) return fmt::format("{} {}s", count, noun);
  if (ends("y")) return fmt::format("{} {}ies", count, noun.substr(0, noun.size() - 1));
  const bool hisses = ends("s") || ends("x") || ends("z") || ends("ch") || ends("sh");
  return fmt::format("{} {}{}", count, noun, hisses ? "es" : "s");
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpaces) - first + 1));
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, std::size_t count) {
  // Plausible: within a third of the word's letters (at least two for words long enough), or one contains the other.
  const std::size_t limit = word.size() <= 3 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  constexpr std::size_t kShortestPart = 3;
  std::vector<std::pair<std::size_t, std::string>> scored;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool part = (word.size() >= kShortestPart && contains_ignoring_case(candidate, word)) ||
                      (candidate.size() >= kShortestPart && contains_ignoring_case(word, candidate));
    if (distance <= limit) {
      scored.emplace_back(distance, candidate);
    } else if (part) {
      scored.emplace_back(limit + distance, candidate);  // after all that are near by letters
    }
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : scored) {
    if (names.size() == count) break;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string> candidates) {
  const std::size_t noun = std::min(what.find(' '), what.size());
  std::string text = fmt::format("unknown {} '{}'{}", what.substr(0, noun), word, what.substr(noun));
  const std::vector<std::string> near = nearest(word, candidates);
  if (!near.empty()) text += fmt::format("; did you mean '{}'?", fmt::join(near, "' or '"));
  constexpr std::size_t kListed = 24;
  if (candidates.empty()) {
    text += " (there are none)";
  } else if (candidates.size() <= kListed) {
    text += fmt::format(" (known: {})", fmt::join(candidates, ", "));
  } else {
    text += fmt::format(" ({} are known)", candidates.size());
  }
  return one_line(text);
}

}  // namespace syslab
