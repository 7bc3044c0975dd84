#include "core/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/utf8.hpp"

namespace syslab {
namespace {

struct Range {
  char32_t first, last;
};

// What cannot be seen, moves the cursor, ends a line or turns the writing direction. Most of it is
// Default_Ignorable_Code_Point of Unicode 16's DerivedCoreProperties.txt; the rest are control characters (0000–001F,
// 007F–009F), the separators of lines and paragraphs (2028–9), marks of direction (202A–E) and annotations (FFF9–B).
constexpr std::array<Range, 19> kUnprintable{{{0x0000, 0x001F},
                                              {0x007F, 0x009F},
                                              {0x00AD, 0x00AD},
                                              {0x034F, 0x034F},
                                              {0x061C, 0x061C},
                                              {0x115F, 0x1160},
                                              {0x17B4, 0x17B5},
                                              {0x180B, 0x180F},
                                              {0x200B, 0x200F},
                                              {0x2028, 0x202E},
                                              {0x2060, 0x206F},
                                              {0x3164, 0x3164},
                                              {0xFE00, 0xFE0F},
                                              {0xFEFF, 0xFEFF},
                                              {0xFFA0, 0xFFA0},
                                              {0xFFF0, 0xFFFB},
                                              {0x1BCA0, 0x1BCA3},
                                              {0x1D173, 0x1D17A},
                                              {0xE0000, 0xE0FFF}}};

// Marks that stack on the character before them: the blocks of combining marks, and the marks of Cyrillic, Hebrew and
// Arabic (general category Mn or Me of Unicode 16's UnicodeData.txt).
constexpr std::array<Range, 9> kMarks{{{0x0300, 0x036F},
                                       {0x0483, 0x0489},
                                       {0x0591, 0x05BD},
                                       {0x0610, 0x061A},
                                       {0x064B, 0x065F},
                                       {0x1AB0, 0x1AFF},
                                       {0x1DC0, 0x1DFF},
                                       {0x20D0, 0x20FF},
                                       {0xFE20, 0xFE2F}}};

// More of them on one character cover the lines above and below it; writing systems use fewer.
constexpr int kMostMarks = 8;

template <std::size_t Size>
bool is_in(const std::array<Range, Size>& ranges, char32_t sign) {
  const auto after = std::ranges::upper_bound(ranges, sign, {}, &Range::first);
  return after != ranges.begin() && sign <= std::prev(after)->last;
}

// The character of `length` bytes that well-formed text begins with.
char32_t sign_of(std::string_view text, std::size_t length) {
  constexpr std::array<unsigned, 5> kOfLead{0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t sign = static_cast<unsigned char>(text[0]) & kOfLead[length];
  for (std::size_t i = 1; i < length; ++i) sign = (sign << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  return sign;
}

// Whether kMostMarks marks end at `end`.
bool follows_most_marks(std::string_view text, std::size_t end) {
  for (int marks = 0; marks < kMostMarks; ++marks) {
    std::size_t begin = end;
    while (begin > 0 && end - begin < 4 && (begin == end || (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U))
      --begin;
    const std::size_t length = utf8_sequence_length(text.substr(begin, end - begin));
    if (length == 0 || length != end - begin || !is_in(kMarks, sign_of(text.substr(begin), length))) return false;
    end = begin;
  }
  return true;
}

// How many bytes at `at` are a character that kUnprintable has, or a mark after kMostMarks others: 0 of any other.
std::size_t unprintable_bytes(std::string_view text, std::size_t at) {
  if (at >= text.size()) return 0;
  if (text[at] >= 0x20 && text[at] < 0x7F) return 0;  // most text
  if (text[at] == '\0') return 1;                     // utf8_sequence_length() has no length of it
  const std::size_t length = utf8_sequence_length(text.substr(at));
  if (length == 0) return 0;
  const char32_t sign = sign_of(text.substr(at), length);
  return is_in(kUnprintable, sign) || (is_in(kMarks, sign) && follows_most_marks(text, at)) ? length : 0;
}

std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

// The first character of `text`, which is UTF-8.
char32_t code_point(std::string_view text) {
  const auto bits = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) & 0x3FU; };
  const auto first = static_cast<unsigned char>(text[0]);
  switch (text.size()) {
    case 1:
      return first;
    case 2:
      return (first & 0x1FU) << 6U | bits(1);
    case 3:
      return (first & 0x0FU) << 12U | bits(1) << 6U | bits(2);
    default:
      return (first & 0x07U) << 18U | bits(1) << 12U | bits(2) << 6U | bits(3);
  }
}

// As JSON escapes it: in two halves beyond U+FFFF.
std::string json_escape(char32_t point) {
  if (point < 0x10000) return fmt::format("\\u{:04x}", static_cast<unsigned>(point));
  const unsigned above = static_cast<unsigned>(point) - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (above >> 10U), 0xDC00 + (above & 0x3FFU));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      if (at + 1 == text.size() || text[at + 1] != '\n') out += '\n';
    } else if (text[at] == '\n' || text[at] == '\t') {
      out += text[at];
    } else if (const std::size_t bytes = unprintable_bytes(text, at); bytes > 0) {
      out += escaped(text.substr(at, bytes));
      at += bytes - 1;
    } else {
      out += text[at];
    }
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t bytes = unprintable_bytes(text, at);
    out += bytes > 0 ? escaped(text.substr(at, bytes)) : std::string(1, text[at]);
    if (bytes > 0) at += bytes - 1;
  }
  return out;
}

std::string with_margin(std::string_view text, std::string_view margin) {
  std::string lines;
  for (const char c : printable(text)) {
    lines += c;
    if (c == '\n') lines += margin;
  }
  return lines;
}

std::string with_lines_below(std::string_view message) {
  std::string out(message.substr(0, message.find('\n')));
  for (std::size_t at = out.size(); at < message.size();) {
    const std::size_t end = std::min(message.find('\n', at + 1), message.size());
    const std::string_view line = message.substr(at + 1, end - at - 1);
    const bool stays = line.empty() || line.starts_with(' ') || (end == message.size() && line.starts_with("try: "));
    out += (stays ? "\n" : "\n  ");
    out += line;
    at = end;
  }
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size(); ++at) {
    const std::size_t bytes = json[at] == '\n' ? 0 : unprintable_bytes(json, at);  // a writer escapes those of strings
    out += bytes > 0 ? json_escape(code_point(json.substr(at, bytes))) : std::string(1, json[at]);
    if (bytes > 0) at += bytes - 1;
  }
  return out;
}

std::size_t printable_bytes(std::string_view text, std::size_t at) {
  return unprintable_bytes(text, at) > 0 ? 0 : utf8_sequence_length(text.substr(at));
}

bool is_printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = printable_bytes(text, at);
    if (bytes == 0) return false;
    at += bytes;
  }
  return true;
}

std::string cut_to(std::string text, std::size_t at_most) {
  if (text.size() <= at_most) return text;
  const std::string said = fmt::format("… (cut: {} bytes in all)", text.size());
  std::size_t end = at_most > said.size() ? at_most - said.size() : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + said;
}

}  // namespace syslab
