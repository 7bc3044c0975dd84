#include "core/printable.hpp"

#include <fmt/format.h>

namespace syslab {

std::string printable(std::string_view text) {
  // U+0080 to U+009F, U+202A to U+202E and U+2066 to U+2069 in UTF-8.
  const auto steers = [&](std::size_t at) -> std::size_t {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    if (byte(at) == 0xC2 && byte(at + 1) >= 0x80 && byte(at + 1) <= 0x9F) return 2;
    if (byte(at) != 0xE2) return 0;
    if (byte(at + 1) == 0x80 && byte(at + 2) >= 0xAA && byte(at + 2) <= 0xAE) return 3;
    return byte(at + 1) == 0x81 && byte(at + 2) >= 0xA6 && byte(at + 2) <= 0xA9 ? 3 : 0;
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '\r') {
      if (at + 1 == text.size() || text[at + 1] != '\n') out += '\n';
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (const std::size_t bytes = steers(at); bytes > 0) {
      for (std::size_t i = 0; i < bytes; ++i) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
      at += bytes - 1;
    } else {
      out += text[at];
    }
  }
  return out;
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
