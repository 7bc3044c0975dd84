#include "store/utf8.hpp"

#include <cstddef>

#include "core/text/utf8.hpp"

namespace syslab::store {

std::optional<std::string> repaired_utf8(std::string_view text) {
  std::size_t good = 0;
  while (good < text.size()) {
    const std::size_t length = utf8_sequence_length(text.substr(good));
    if (length == 0) break;
    good += length;
  }
  if (good == text.size()) return std::nullopt;

  std::string repaired(text.substr(0, good));
  for (std::size_t i = good; i < text.size();) {
    const std::size_t length = utf8_sequence_length(text.substr(i));
    if (length == 0) {
      repaired += "\xEF\xBF\xBD";
      ++i;
    } else {
      repaired += text.substr(i, length);
      i += length;
    }
  }
  return repaired;
}

}  // namespace syslab::store
