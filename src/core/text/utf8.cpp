#include "core/text/utf8.hpp"

#include <cstdint>

namespace syslab {
namespace {

bool within(std::uint8_t byte, std::uint8_t low, std::uint8_t high) { return low <= byte && byte <= high; }

}  // namespace

std::size_t utf8_sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0}; };
  const std::uint8_t lead = at(0);
  if (within(lead, 0x01, 0x7f)) return 1;
  if (within(lead, 0xc2, 0xdf)) return within(at(1), 0x80, 0xbf) ? 2 : 0;
  if (within(lead, 0xe0, 0xef)) {
    // The second byte is narrower after E0 (overlong forms) and ED (surrogates).
    const bool second = within(at(1), lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf);
    return second && within(at(2), 0x80, 0xbf) ? 3 : 0;
  }
  if (within(lead, 0xf0, 0xf4)) {
    const bool second = within(at(1), lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf);
    return second && within(at(2), 0x80, 0xbf) && within(at(3), 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace syslab
