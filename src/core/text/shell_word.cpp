#include "core/text/shell_word.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/printable.hpp"
#include "core/text/text.hpp"

namespace syslab {
namespace {

// "$'…'", as POSIX has it since 2024 and bash, zsh and ksh had it before. Three octal digits end by themselves, unlike
// \\x.
std::string dollar_quoted(const std::string& word, const ShellSigns signs) {
  std::string safe = "$'";
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t bytes = printable_bytes(word, at);
    const bool hidden = bytes == 0 || (signs == ShellSigns::ascii && bytes > 1) || word[at] == '!';
    if (hidden) {  // '!' would call for an earlier command in an interactive bash
      for (std::size_t i = 0; i < std::max<std::size_t>(bytes, 1); ++i) {
        safe += fmt::format("\\{:03o}", static_cast<unsigned char>(word[at + i]));
      }
    } else {
      if (word[at] == '\'' || word[at] == '\\') safe += '\\';
      safe += word.substr(at, bytes);
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return safe + "'";
}

bool is_ascii(const std::string& word) {
  return std::ranges::all_of(word, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string shell_word(const std::string& word) { return shell_word(word, ShellSigns::printable); }

std::string shell_word(const std::string& word, const ShellSigns signs) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.=,:/@%") ==
                                          std::string::npos;
  if (plain) return word;
  if (!is_printable(word) || (signs == ShellSigns::ascii && !is_ascii(word))) return dollar_quoted(word, signs);
  std::string safe = "'";
  for (const char c : word) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

}  // namespace syslab
