#include "core/quantity.hpp"

#include <fmt/format.h>

#include "core/text/format_seconds.hpp"

namespace syslab {

std::string text_of(const Quantity& quantity, double seconds) {
  return quantity.is_rate() ? fmt::format("{:.4g} {}", 1 / seconds, quantity.unit) : format_seconds(seconds);
}

}  // namespace syslab
