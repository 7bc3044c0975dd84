#include "report/text.hpp"

namespace syslab::report {

Text marked(std::string_view text) {
  Text spans;
  const auto add = [&](Style style, std::string_view piece) {
    if (!piece.empty()) spans.push_back({style, std::string(piece)});
  };
  while (!text.empty()) {
    const std::size_t open = text.find('`');
    const std::size_t close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    add(Style::plain, text.substr(0, open));
    add(Style::code, text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  add(Style::plain, text);
  return spans;
}

Text plain_text(std::string text) { return {{Style::plain, std::move(text)}}; }
Text strong(std::string text) { return {{Style::strong, std::move(text)}}; }

Text operator+(Text first, const Text& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string bare(const Text& text) {
  std::string out;
  for (const Span& span : text) out += span.text;
  return out;
}

}  // namespace syslab::report
