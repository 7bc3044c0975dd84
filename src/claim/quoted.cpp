#include "claim/quoted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/utf8.hpp"

namespace syslab::claim {
namespace {

// U+0020, 00A0, 1680, 2000–A, 202F, 205F, 3000, and letters that look like them: 115F–60, 2800, 3164, FFA0.
constexpr std::array<std::string_view, 22> kBlanks{
    " ",      "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
    "\u2008", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000", "\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"};
constexpr std::array<std::string_view, 10> kMarks{"\"",     "\u201c", "\u201d", "\u201e", "\u201f",
                                                  "\u00ab", "\u00bb", "\u275d", "\u275e", "\uff02"};

bool is_one_of(std::span<const std::string_view> signs, std::string_view sign) {
  return std::ranges::find(signs, sign) != signs.end();
}

// Rather too wide than too narrow: most letters of three bytes are Chinese, Japanese or Korean.
std::size_t columns_of(std::string_view sign) {
  return sign.size() > 3 || (sign.size() == 3 && !sign.starts_with("\xe2")) ? 2 : 1;
}

std::string shortened(std::string_view text, std::size_t at_most, bool keeps_marks) {
  const std::string line = one_line(text);
  std::string out;
  std::size_t columns = 0;
  bool blank = false;
  for (std::size_t at = 0; at < line.size();) {
    std::string_view sign = std::string_view(line).substr(
        at, std::max<std::size_t>(1, utf8_sequence_length(std::string_view(line).substr(at))));
    at += sign.size();
    const bool was_blank = blank;
    blank = is_one_of(kBlanks, sign);
    if (blank && was_blank) continue;
    if (blank) sign = " ";
    if (!keeps_marks && is_one_of(kMarks, sign)) sign = "'";
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
  return "“" + shortened(text, at_most, false) + "”";
}

std::string in_one_run(std::string_view text, std::size_t at_most) { return shortened(text, at_most, true); }

std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(value.get<std::string>());
  if (!value.is_array()) return json_text(value);
  std::string list;
  for (const Json& one : value) {
    list += (list.empty() ? "" : ", ") + (one.is_string() ? one.get<std::string>() : json_text(one));
  }
  return in_quotes(list);
}

std::string shown_axis(const std::string& axis, const Value& value) {
  const std::string text = syslab::to_string(value);
  return (is_plain(axis) ? axis : in_quotes(axis)) + "=" + (is_plain(text) ? text : in_quotes(text));
}

std::string shown_title(std::string title, const std::string& params) {
  for (const auto& [axis, value] : Params::from_json(parse_json(params))) {
    const std::string raw = axis + "=" + syslab::to_string(value), told = shown_axis(axis, value);
    if (const std::size_t at = title.find(raw); raw != told && at != std::string::npos)
      title.replace(at, raw.size(), told);
  }
  return title;
}

}  // namespace syslab::claim
