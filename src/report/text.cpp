#include "report/text.hpp"

#include <utility>

namespace syslab::report {

Text marked(std::string_view text) {
  constexpr char kMark = '`';
  Text spans;
  std::string piece;
  Style style = Style::plain;
  const auto finish = [&] {
    if (!piece.empty()) spans.push_back({style, std::exchange(piece, {})});
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kMark) {
      piece += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == kMark) {
      piece += text[i++];
    } else if (style == Style::code) {
      finish();
      style = Style::plain;
    } else {
      finish();
      style = Style::code;
    }
  }
  if (style == Style::code) {  // never closed
    piece.insert(piece.begin(), kMark);
    style = Style::plain;
  }
  finish();
  return spans;
}

std::string unmarked(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '`' ? "``" : std::string(1, c);
  return out;
}

Text plain_text(std::string text) { return {{Style::plain, std::move(text)}}; }
Text strong(std::string text) { return {{Style::strong, std::move(text)}}; }
Text next_line() { return {{Style::next, " "}}; }

Text source_text(std::string file) {
  if (file.empty()) return {};
  return {{Style::source, std::move(file)}};
}

Text operator+(Text first, const Text& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string bare(const Text& text) {
  std::string out;
  for (const Span& span : text) {
    if (span.style != Style::source && span.style != Style::number) out += span.text;
  }
  return out;
}

}  // namespace syslab::report
