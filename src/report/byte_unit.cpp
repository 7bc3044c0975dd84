#include "report/byte_unit.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "report/cells.hpp"

namespace syslab::report {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
    {{"TiB", 1099511627776.0}, {"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}, {"B", 1.0}}};

}  // namespace

std::optional<double> bytes_in(std::string_view unit) {
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return std::nullopt;
}

std::string_view fitting_unit(double bytes, std::string_view declared) {
  const double most = bytes_in(declared).value_or(1);
  for (const auto& [name, size] : kUnits) {
    if (size <= most && std::abs(bytes) >= size) return name;
  }
  return bytes == 0 ? declared : kUnits.back().first;
}

std::string with_fitting_unit(double value, std::string_view unit, int digits) {
  const double bytes = value * bytes_in(unit).value_or(1);
  const std::string_view fitting = fitting_unit(bytes, unit);
  const double shown = bytes / bytes_in(fitting).value_or(1);
  return fmt::format("{} {}", fitting == "B" ? fmt::format("{:.0f}", shown) : with_digits(shown, digits), fitting);
}

}  // namespace syslab::report
