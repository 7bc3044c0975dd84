// Any text as LaTeX that shows it: pdflatex with T1 fonts, and lualatex.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "report/writers/writers.hpp"
#include "store/utf8.hpp"

namespace syslab::report {
namespace {

using Pair = std::pair<char32_t, std::string_view>;

// What ASCII has that TeX would read otherwise. '[' and '*' mean something after a line break of a table; quotes,
// commas and hyphens become other characters when they stand together.
constexpr auto kAscii = std::to_array<Pair>({
    {U'\t', " "},
    {U'\n', " "},
    {U'\r', " "},
    {U'"', R"(\textquotedbl{})"},
    {U'#', R"(\#)"},
    {U'$', R"(\$)"},
    {U'%', R"(\%)"},
    {U'&', R"(\&)"},
    {U'\'', R"(\textquotesingle{})"},
    {U'*', "{*}"},
    {U',', "{,}"},
    {U'-', "{-}"},
    {U'<', R"(\textless{})"},
    {U'>', R"(\textgreater{})"},
    {U'[', "{[}"},
    {U'\\', R"(\textbackslash{})"},
    {U']', "{]}"},
    {U'^', R"(\textasciicircum{})"},
    {U'_', R"(\_)"},
    {U'`', R"(\textasciigrave{})"},
    {U'{', R"(\{)"},
    {U'|', R"(\textbar{})"},
    {U'}', R"(\})"},
    {U'~', R"(\textasciitilde{})"},
});

// Signs of captions, units and formulas. In order of their code points.
constexpr auto kSigns = std::to_array<Pair>({
    {U'\u00A0', "~"},
    {U'\u00B0', R"(\textdegree{})"},
    {U'\u00B1', R"(\ensuremath{\pm})"},
    {U'\u00B2', R"(\ensuremath{^2})"},
    {U'\u00B3', R"(\ensuremath{^3})"},
    {U'\u00B5', R"(\ensuremath{\mu})"},
    {U'\u00B7', R"(\ensuremath{\cdot})"},
    {U'\u00B9', R"(\ensuremath{^1})"},
    {U'\u00D7', R"(\ensuremath{\times})"},
    {U'\u00F7', R"(\ensuremath{\div})"},
    {U'\u0394', R"(\ensuremath{\Delta})"},
    {U'\u0398', R"(\ensuremath{\Theta})"},
    {U'\u03A3', R"(\ensuremath{\Sigma})"},
    {U'\u03A8', R"(\ensuremath{\Psi})"},
    {U'\u03A9', R"(\ensuremath{\Omega})"},
    {U'\u03B1', R"(\ensuremath{\alpha})"},
    {U'\u03B2', R"(\ensuremath{\beta})"},
    {U'\u03B3', R"(\ensuremath{\gamma})"},
    {U'\u03B4', R"(\ensuremath{\delta})"},
    {U'\u03B5', R"(\ensuremath{\varepsilon})"},
    {U'\u03BB', R"(\ensuremath{\lambda})"},
    {U'\u03BC', R"(\ensuremath{\mu})"},
    {U'\u03C0', R"(\ensuremath{\pi})"},
    {U'\u03C3', R"(\ensuremath{\sigma})"},
    {U'\u03C4', R"(\ensuremath{\tau})"},
    {U'\u1D40', R"(\ensuremath{^{\mathsf{T}}})"},
    {U'\u2009', R"(\,)"},
    {U'\u2013', R"(\textendash{})"},
    {U'\u2014', R"(\textemdash{})"},
    {U'\u2016', R"(\ensuremath{\Vert})"},
    {U'\u2018', R"(\textquoteleft{})"},
    {U'\u2019', R"(\textquoteright{})"},
    {U'\u201C', R"(\textquotedblleft{})"},
    {U'\u201D', R"(\textquotedblright{})"},
    {U'\u2020', R"(\textdagger{})"},
    {U'\u2022', R"(\textbullet{})"},
    {U'\u2026', R"(\ldots{})"},
    {U'\u202F', R"(\,)"},
    {U'\u2070', R"(\ensuremath{^0})"},
    {U'\u2074', R"(\ensuremath{^4})"},
    {U'\u2080', R"(\ensuremath{_0})"},
    {U'\u2081', R"(\ensuremath{_1})"},
    {U'\u2082', R"(\ensuremath{_2})"},
    {U'\u2083', R"(\ensuremath{_3})"},
    {U'\u20AC', R"(\texteuro{})"},
    {U'\u2190', R"(\ensuremath{\leftarrow})"},
    {U'\u2191', R"(\ensuremath{\uparrow})"},
    {U'\u2192', R"(\ensuremath{\rightarrow})"},
    {U'\u2193', R"(\ensuremath{\downarrow})"},
    {U'\u21D2', R"(\ensuremath{\Rightarrow})"},
    {U'\u2202', R"(\ensuremath{\partial})"},
    {U'\u2208', R"(\ensuremath{\in})"},
    {U'\u2211', R"(\ensuremath{\sum})"},
    {U'\u2212', R"(\ensuremath{-})"},
    {U'\u2218', R"(\ensuremath{\circ})"},
    {U'\u221A', R"(\ensuremath{\surd})"},
    {U'\u221E', R"(\ensuremath{\infty})"},
    {U'\u2229', R"(\ensuremath{\cap})"},
    {U'\u222A', R"(\ensuremath{\cup})"},
    {U'\u2248', R"(\ensuremath{\approx})"},
    {U'\u2260', R"(\ensuremath{\neq})"},
    {U'\u2264', R"(\ensuremath{\leq})"},
    {U'\u2265', R"(\ensuremath{\geq})"},
    {U'\u2282', R"(\ensuremath{\subset})"},
    {U'\u22C5', R"(\ensuremath{\cdot})"},
    {U'\u2308', R"(\ensuremath{\lceil})"},
    {U'\u2309', R"(\ensuremath{\rceil})"},
    {U'\u27E9', R"(\ensuremath{\rangle})"},
});

static_assert(std::ranges::is_sorted(kAscii, {}, &Pair::first) && std::ranges::is_sorted(kSigns, {}, &Pair::first));

template <std::size_t N>
const std::string_view* find_in(const std::array<Pair, N>& pairs, char32_t sign) {
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), sign,
                                      [](const Pair& pair, char32_t wanted) { return pair.first < wanted; });
  return found != pairs.end() && found->first == sign ? &found->second : nullptr;
}

// Letters that every T1 font has under both engines (Latin-1 but for the signs above).
bool is_t1_letter(char32_t sign) { return sign >= 0xC0 && sign <= 0xFF; }

// One character of valid UTF-8, which it takes off the front.
char32_t take(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t sign = bytes == 1 ? first : first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) sign = sign << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(bytes);
  return sign;
}

}  // namespace

std::string escape_tex(std::string_view text) {
  const std::optional<std::string> repaired = store::repaired_utf8(text);
  std::string_view rest = repaired ? std::string_view(*repaired) : text;
  std::string out;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const char32_t sign = take(rest);
    const std::string_view* known = sign < 0x80 ? find_in(kAscii, sign) : find_in(kSigns, sign);
    if (known != nullptr) {
      out += *known;
    } else if ((sign >= 0x20 && sign < 0x7F) || is_t1_letter(sign)) {
      out += before.substr(0, before.size() - rest.size());
    } else {
      out += fmt::format(R"(\texttt{{U+{:04X}}})", static_cast<std::uint32_t>(sign));
    }
  }
  return out;
}

}  // namespace syslab::report
