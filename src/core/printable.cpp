#include "core/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.hpp"

namespace syslab {
namespace {

// How many bytes at `at` are a sign that cannot be seen, moves the cursor, ends a line or turns the writing direction:
// 0 of any other. UTF-8 of
//   U+0080–9F (C1), 00AD (soft hyphen), 061C and 200E–F (marks of direction), 180E, 200B–D and FEFF (no width),
//   2028–9 (line and paragraph), 202A–E and 2066–9 (direction), 2060–5 and 206A–F (invisible), FFF9–B, E0000–7F (tags).
std::size_t unprintable_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto is = [&](unsigned second, unsigned low, unsigned high) {
    return byte(at + 1) == second && byte(at + 2) >= low && byte(at + 2) <= high;
  };
  const unsigned first = byte(at);
  if (first < 0x20 || first == 0x7F) return 1;
  if (first == 0xC2) return (byte(at + 1) >= 0x80 && byte(at + 1) <= 0x9F) || byte(at + 1) == 0xAD ? 2 : 0;
  if (first == 0xD8) return byte(at + 1) == 0x9C ? 2 : 0;
  if (first == 0xE1) return is(0xA0, 0x8E, 0x8E) ? 3 : 0;
  if (first == 0xE2) return is(0x80, 0x8B, 0x8F) || is(0x80, 0xA8, 0xAE) || is(0x81, 0xA0, 0xAF) ? 3 : 0;
  if (first == 0xEF) return is(0xBB, 0xBF, 0xBF) || is(0xBF, 0xB9, 0xBB) ? 3 : 0;
  if (first == 0xF3 && is(0xA0, 0x80, 0x81) && byte(at + 3) >= 0x80) return 4;
  return 0;
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
