#pragma once

#include <fmt/format.h>

#include <string>

namespace syslab {

// So many times: "1.204", "2.41", "12.3", "123", "0.0512". Three digits, and around one so many that a part in a
// thousand shows.
inline std::string factor_text(double factor) {
  if (factor < 0.1) return fmt::format("{:.3g}", factor);
  return fmt::format("{:.{}f}", factor, factor < 2 ? 3 : factor < 10 ? 2 : factor < 100 ? 1 : 0);
}

}  // namespace syslab
