#include "core/text/quoted.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "core/text/printable.hpp"
#include "core/text/utf8.hpp"

namespace syslab {
namespace {

// U+0020, 00A0, 1680, 2000–A, 202F, 205F, 3000, and letters that look like them: 115F–60, 2800, 3164, FFA0.
constexpr std::array<std::string_view, 22> kBlankSigns{
    " ",      "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
    "\u2008", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000", "\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"};
constexpr std::array<std::string_view, 10> kQuotationMarks{"\"",     "\u201c", "\u201d", "\u201e", "\u201f",
                                                           "\u00ab", "\u00bb", "\u275d", "\u275e", "\uff02"};

bool is_sign_of(std::span<const std::string_view> signs, std::string_view sign) {
  return std::ranges::find(signs, sign) != signs.end();
}

// Rather too wide than too narrow: most letters of three bytes are Chinese, Japanese or Korean.
std::size_t columns_of(std::string_view sign) {
  return sign.size() > 3 || (sign.size() == 3 && !sign.starts_with("\xe2")) ? 2 : 1;
}

std::string in_a_line(std::string_view text, std::size_t at_most, bool keeps_marks) {
  const std::string line = one_line(text);
  std::string out;
  std::size_t columns = 0;
  bool blank = false;
  for (std::size_t at = 0; at < line.size();) {
    std::string_view sign = std::string_view(line).substr(
        at, std::max<std::size_t>(1, utf8_sequence_length(std::string_view(line).substr(at))));
    at += sign.size();
    const bool was_blank = blank;
    blank = is_sign_of(kBlankSigns, sign);
    if (blank && was_blank) continue;
    if (blank) sign = " ";
    if (!keeps_marks && is_sign_of(kQuotationMarks, sign)) sign = "'";
    columns += columns_of(sign);
    if (columns > at_most) return out + "…";
    out += sign;
  }
  return out;
}

}  // namespace

bool is_plain(std::string_view word) {
  return word.size() <= kShownOfValue && std::ranges::all_of(word, [](char sign) {
           return sign > ' ' && sign < 0x7f && sign != '"' && sign != '\'' && sign != '`';
         });
}

std::string in_quotes(std::string_view text, std::size_t at_most) {
  return "“" + in_a_line(text, at_most, false) + "”";
}

std::string in_one_run(std::string_view text, std::size_t at_most) { return in_a_line(text, at_most, true); }

}  // namespace syslab
