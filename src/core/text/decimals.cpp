#include "core/text/decimals.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace syslab {
namespace {

constexpr int kMost = 15;
constexpr double kRounding = 1e-9;  // of the border: numbers and borders are results of rounded arithmetic

enum class Side { below, at, above };

Side side_of(double value, double border) {
  if (std::abs(value - border) <= kRounding * std::abs(border)) return Side::at;
  return value < border ? Side::below : Side::above;
}

}  // namespace

int decimals_beside(double value, double border, int usual) {
  const Side side = side_of(value, border);
  int decimals = usual;
  while (decimals < kMost && side_of(std::stod(fmt::format("{:.{}f}", value, decimals)), border) != side) ++decimals;
  return decimals;
}

}  // namespace syslab
