#include "report/figure/text.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace syslab::report {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string fitted(const std::string& text, std::size_t most) {
  if (characters(text) <= most) return text;
  std::string kept;
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U && ++count >= std::max<std::size_t>(most, 1)) break;
    kept += c;
  }
  return kept + "…";
}

std::vector<std::string> in_lines(const std::string& text, std::size_t most, std::size_t most_lines) {
  std::vector<std::string> lines;
  for (const std::string& part : split(text, ',')) {
    const std::string word = trim(part);
    const bool joins = !lines.empty() && characters(lines.back()) + characters(word) + 3 <= most;
    if (joins || (!lines.empty() && lines.size() == most_lines)) {
      lines.back() += ", " + word;
    } else {
      if (!lines.empty()) lines.back() += ",";
      lines.push_back(word);
    }
  }
  for (std::string& line : lines) line = fitted(line, most);
  return lines;
}

}  // namespace syslab::report
