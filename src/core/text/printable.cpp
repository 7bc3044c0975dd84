#include "core/text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/text/utf8.hpp"

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

// Marks that stack on the character before them: general category Mn or Me of Unicode 14.0's UnicodeData.txt, with
// what is unassigned between them.
constexpr auto kMarks = std::to_array<Range>(
    {{0x0300, 0x036F},   {0x0483, 0x0489},   {0x0591, 0x05BD},   {0x05BF, 0x05BF},   {0x05C1, 0x05C2},
     {0x05C4, 0x05C5},   {0x05C7, 0x05C7},   {0x0610, 0x061A},   {0x064B, 0x065F},   {0x0670, 0x0670},
     {0x06D6, 0x06DC},   {0x06DF, 0x06E4},   {0x06E7, 0x06E8},   {0x06EA, 0x06ED},   {0x0711, 0x0711},
     {0x0730, 0x074A},   {0x07A6, 0x07B0},   {0x07EB, 0x07F3},   {0x07FD, 0x07FD},   {0x0816, 0x0819},
     {0x081B, 0x0823},   {0x0825, 0x0827},   {0x0829, 0x082D},   {0x0859, 0x085B},   {0x0898, 0x089F},
     {0x08CA, 0x08E1},   {0x08E3, 0x0902},   {0x093A, 0x093A},   {0x093C, 0x093C},   {0x0941, 0x0948},
     {0x094D, 0x094D},   {0x0951, 0x0957},   {0x0962, 0x0963},   {0x0981, 0x0981},   {0x09BC, 0x09BC},
     {0x09C1, 0x09C4},   {0x09CD, 0x09CD},   {0x09E2, 0x09E3},   {0x09FE, 0x0A02},   {0x0A3C, 0x0A3C},
     {0x0A41, 0x0A51},   {0x0A70, 0x0A71},   {0x0A75, 0x0A75},   {0x0A81, 0x0A82},   {0x0ABC, 0x0ABC},
     {0x0AC1, 0x0AC8},   {0x0ACD, 0x0ACD},   {0x0AE2, 0x0AE3},   {0x0AFA, 0x0B01},   {0x0B3C, 0x0B3C},
     {0x0B3F, 0x0B3F},   {0x0B41, 0x0B44},   {0x0B4D, 0x0B56},   {0x0B62, 0x0B63},   {0x0B82, 0x0B82},
     {0x0BC0, 0x0BC0},   {0x0BCD, 0x0BCD},   {0x0C00, 0x0C00},   {0x0C04, 0x0C04},   {0x0C3C, 0x0C3C},
     {0x0C3E, 0x0C40},   {0x0C46, 0x0C56},   {0x0C62, 0x0C63},   {0x0C81, 0x0C81},   {0x0CBC, 0x0CBC},
     {0x0CBF, 0x0CBF},   {0x0CC6, 0x0CC6},   {0x0CCC, 0x0CCD},   {0x0CE2, 0x0CE3},   {0x0D00, 0x0D01},
     {0x0D3B, 0x0D3C},   {0x0D41, 0x0D44},   {0x0D4D, 0x0D4D},   {0x0D62, 0x0D63},   {0x0D81, 0x0D81},
     {0x0DCA, 0x0DCA},   {0x0DD2, 0x0DD6},   {0x0E31, 0x0E31},   {0x0E34, 0x0E3A},   {0x0E47, 0x0E4E},
     {0x0EB1, 0x0EB1},   {0x0EB4, 0x0EBC},   {0x0EC8, 0x0ECD},   {0x0F18, 0x0F19},   {0x0F35, 0x0F35},
     {0x0F37, 0x0F37},   {0x0F39, 0x0F39},   {0x0F71, 0x0F7E},   {0x0F80, 0x0F84},   {0x0F86, 0x0F87},
     {0x0F8D, 0x0FBC},   {0x0FC6, 0x0FC6},   {0x102D, 0x1030},   {0x1032, 0x1037},   {0x1039, 0x103A},
     {0x103D, 0x103E},   {0x1058, 0x1059},   {0x105E, 0x1060},   {0x1071, 0x1074},   {0x1082, 0x1082},
     {0x1085, 0x1086},   {0x108D, 0x108D},   {0x109D, 0x109D},   {0x135D, 0x135F},   {0x1712, 0x1714},
     {0x1732, 0x1733},   {0x1752, 0x1753},   {0x1772, 0x1773},   {0x17B7, 0x17BD},   {0x17C6, 0x17C6},
     {0x17C9, 0x17D3},   {0x17DD, 0x17DD},   {0x1885, 0x1886},   {0x18A9, 0x18A9},   {0x1920, 0x1922},
     {0x1927, 0x1928},   {0x1932, 0x1932},   {0x1939, 0x193B},   {0x1A17, 0x1A18},   {0x1A1B, 0x1A1B},
     {0x1A56, 0x1A56},   {0x1A58, 0x1A60},   {0x1A62, 0x1A62},   {0x1A65, 0x1A6C},   {0x1A73, 0x1A7F},
     {0x1AB0, 0x1B03},   {0x1B34, 0x1B34},   {0x1B36, 0x1B3A},   {0x1B3C, 0x1B3C},   {0x1B42, 0x1B42},
     {0x1B6B, 0x1B73},   {0x1B80, 0x1B81},   {0x1BA2, 0x1BA5},   {0x1BA8, 0x1BA9},   {0x1BAB, 0x1BAD},
     {0x1BE6, 0x1BE6},   {0x1BE8, 0x1BE9},   {0x1BED, 0x1BED},   {0x1BEF, 0x1BF1},   {0x1C2C, 0x1C33},
     {0x1C36, 0x1C37},   {0x1CD0, 0x1CD2},   {0x1CD4, 0x1CE0},   {0x1CE2, 0x1CE8},   {0x1CED, 0x1CED},
     {0x1CF4, 0x1CF4},   {0x1CF8, 0x1CF9},   {0x1DC0, 0x1DFF},   {0x20D0, 0x20F0},   {0x2CEF, 0x2CF1},
     {0x2D7F, 0x2D7F},   {0x2DE0, 0x2DFF},   {0x302A, 0x302D},   {0x3099, 0x309A},   {0xA66F, 0xA672},
     {0xA674, 0xA67D},   {0xA69E, 0xA69F},   {0xA6F0, 0xA6F1},   {0xA802, 0xA802},   {0xA806, 0xA806},
     {0xA80B, 0xA80B},   {0xA825, 0xA826},   {0xA82C, 0xA82C},   {0xA8C4, 0xA8C5},   {0xA8E0, 0xA8F1},
     {0xA8FF, 0xA8FF},   {0xA926, 0xA92D},   {0xA947, 0xA951},   {0xA980, 0xA982},   {0xA9B3, 0xA9B3},
     {0xA9B6, 0xA9B9},   {0xA9BC, 0xA9BD},   {0xA9E5, 0xA9E5},   {0xAA29, 0xAA2E},   {0xAA31, 0xAA32},
     {0xAA35, 0xAA36},   {0xAA43, 0xAA43},   {0xAA4C, 0xAA4C},   {0xAA7C, 0xAA7C},   {0xAAB0, 0xAAB0},
     {0xAAB2, 0xAAB4},   {0xAAB7, 0xAAB8},   {0xAABE, 0xAABF},   {0xAAC1, 0xAAC1},   {0xAAEC, 0xAAED},
     {0xAAF6, 0xAAF6},   {0xABE5, 0xABE5},   {0xABE8, 0xABE8},   {0xABED, 0xABED},   {0xFB1E, 0xFB1E},
     {0xFE20, 0xFE2F},   {0x101FD, 0x101FD}, {0x102E0, 0x102E0}, {0x10376, 0x1037A}, {0x10A01, 0x10A0F},
     {0x10A38, 0x10A3F}, {0x10AE5, 0x10AE6}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50},
     {0x10F82, 0x10F85}, {0x11001, 0x11001}, {0x11038, 0x11046}, {0x11070, 0x11070}, {0x11073, 0x11074},
     {0x1107F, 0x11081}, {0x110B3, 0x110B6}, {0x110B9, 0x110BA}, {0x110C2, 0x110C2}, {0x11100, 0x11102},
     {0x11127, 0x1112B}, {0x1112D, 0x11134}, {0x11173, 0x11173}, {0x11180, 0x11181}, {0x111B6, 0x111BE},
     {0x111C9, 0x111CC}, {0x111CF, 0x111CF}, {0x1122F, 0x11231}, {0x11234, 0x11234}, {0x11236, 0x11237},
     {0x1123E, 0x1123E}, {0x112DF, 0x112DF}, {0x112E3, 0x112EA}, {0x11300, 0x11301}, {0x1133B, 0x1133C},
     {0x11340, 0x11340}, {0x11366, 0x11374}, {0x11438, 0x1143F}, {0x11442, 0x11444}, {0x11446, 0x11446},
     {0x1145E, 0x1145E}, {0x114B3, 0x114B8}, {0x114BA, 0x114BA}, {0x114BF, 0x114C0}, {0x114C2, 0x114C3},
     {0x115B2, 0x115B5}, {0x115BC, 0x115BD}, {0x115BF, 0x115C0}, {0x115DC, 0x115DD}, {0x11633, 0x1163A},
     {0x1163D, 0x1163D}, {0x1163F, 0x11640}, {0x116AB, 0x116AB}, {0x116AD, 0x116AD}, {0x116B0, 0x116B5},
     {0x116B7, 0x116B7}, {0x1171D, 0x1171F}, {0x11722, 0x11725}, {0x11727, 0x1172B}, {0x1182F, 0x11837},
     {0x11839, 0x1183A}, {0x1193B, 0x1193C}, {0x1193E, 0x1193E}, {0x11943, 0x11943}, {0x119D4, 0x119DB},
     {0x119E0, 0x119E0}, {0x11A01, 0x11A0A}, {0x11A33, 0x11A38}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47},
     {0x11A51, 0x11A56}, {0x11A59, 0x11A5B}, {0x11A8A, 0x11A96}, {0x11A98, 0x11A99}, {0x11C30, 0x11C3D},
     {0x11C3F, 0x11C3F}, {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3}, {0x11CB5, 0x11CB6},
     {0x11D31, 0x11D45}, {0x11D47, 0x11D47}, {0x11D90, 0x11D91}, {0x11D95, 0x11D95}, {0x11D97, 0x11D97},
     {0x11EF3, 0x11EF4}, {0x16AF0, 0x16AF4}, {0x16B30, 0x16B36}, {0x16F4F, 0x16F4F}, {0x16F8F, 0x16F92},
     {0x16FE4, 0x16FE4}, {0x1BC9D, 0x1BC9E}, {0x1CF00, 0x1CF46}, {0x1D167, 0x1D169}, {0x1D17B, 0x1D182},
     {0x1D185, 0x1D18B}, {0x1D1AA, 0x1D1AD}, {0x1D242, 0x1D244}, {0x1DA00, 0x1DA36}, {0x1DA3B, 0x1DA6C},
     {0x1DA75, 0x1DA75}, {0x1DA84, 0x1DA84}, {0x1DA9B, 0x1DAAF}, {0x1E000, 0x1E02A}, {0x1E130, 0x1E136},
     {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E8D0, 0x1E8D6}, {0x1E944, 0x1E94A}});

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD, of a byte that is no part of UTF-8

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

// Adds what is shown of the character at `at`; returns how many bytes it has.
std::size_t add_shown(std::string& out, std::string_view text, std::size_t at) {
  if (const std::size_t bytes = unprintable_bytes(text, at); bytes > 0) {
    out += escaped(text.substr(at, bytes));
    return bytes;
  }
  const std::size_t bytes = utf8_sequence_length(text.substr(at));
  out += bytes > 0 ? text.substr(at, bytes) : kReplacement;
  return std::max<std::size_t>(bytes, 1);
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
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\r') {
      if (at + 1 == text.size() || text[at + 1] != '\n') out += '\n';
      ++at;
    } else if (text[at] == '\n' || text[at] == '\t') {
      out += text[at++];
    } else {
      at += add_shown(out, text, at);
    }
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) at += add_shown(out, text, at);
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
    out += bytes > 0 ? json_escape(sign_of(json.substr(at), bytes)) : std::string(1, json[at]);
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
