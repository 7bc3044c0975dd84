#include "core/text/format_factor.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text/decimals.hpp"

namespace syslab {
namespace {

int usual_decimals(double factor) {
  if (factor > 0 && factor < 0.1) return 2 - static_cast<int>(std::floor(std::log10(factor)));
  return factor < 2 ? 3 : factor < 10 ? 2 : factor < 100 ? 1 : 0;
}

}  // namespace

std::string factor_text(double factor) {
  if (factor < 0.1) return fmt::format("{:.3g}", factor);
  return fmt::format("{:.{}f}", factor, usual_decimals(factor));
}

std::string factor_text(double factor, double border) {
  const int usual = usual_decimals(factor), decimals = decimals_beside(factor, border, usual);
  return decimals == usual ? factor_text(factor) : fmt::format("{:.{}f}", factor, decimals);
}

}  // namespace syslab
