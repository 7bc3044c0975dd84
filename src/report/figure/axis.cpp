#include "report/figure/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "report/byte_unit.hpp"
#include "report/figure/text.hpp"

namespace syslab::report {
namespace {

constexpr double kMargin = 0.05;      // beyond the outermost values, of the axis' length
constexpr double kAutoLogRatio = 10;  // from here on `auto` is logarithmic

// As many digits as distinguish the tics, and few enough to hide that 0.1 has no exact form.
std::string label_of(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e7)) return fmt::format("{:.12g}", value);
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// A linear axis: the step is 1, 2 or 5 times a power of ten; of whole numbers, one of those.
void add_linear_tics(Axis& axis, int most, bool whole) {
  const double wanted = (axis.high - axis.low) / most;
  double step = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (step * factor >= wanted) {
      step *= factor;
      break;
    }
  }
  if (whole) step = std::max(step, 1.0);
  if (!std::isfinite(step) || step <= 0) return;
  const double first = std::ceil(axis.low / step);
  for (int i = 0; i <= 2 * most; ++i) {
    const double at = (first + i) * step;
    if (at > axis.high + 1e-9 * step) break;
    axis.tics.push_back({at, label_of(std::abs(at) < 1e-9 * step ? 0 : at)});
  }
}

// Powers of ten, with those of `digits` times a power labelled, too; the others are small tics.
void add_decades(Axis& axis, int most, const std::set<int>& digits) {
  const int first = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
  const int stride = std::max(1, (last - first + most) / most);
  for (int exponent = first - 1; exponent <= last; ++exponent) {  // digits of the decade that the axis begins in
    for (int digit = 1; digit <= 9; ++digit) {
      const double at = digit * std::pow(10.0, exponent);
      if (at < axis.low || at > axis.high || (digit > 1 && stride > 1)) continue;
      const bool labelled = digits.count(digit) != 0 && (exponent - first) % stride == 0;
      axis.tics.push_back({at, labelled ? label_of(at) : ""});
    }
  }
}

void add_powers_of_two(Axis& axis, int most) {
  const int first = static_cast<int>(std::ceil(std::log2(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(axis.high) + 1e-9));
  const int stride = std::max(1, (last - first + most) / most);
  for (int exponent = first; exponent <= last; ++exponent) {
    const double at = std::ldexp(1.0, exponent);
    axis.tics.push_back({at, (exponent - first) % stride == 0 ? label_of(at) : ""});
  }
}

int labels(const Axis& axis) {
  return static_cast<int>(
      std::count_if(axis.tics.begin(), axis.tics.end(), [](const Tic& tic) { return !tic.label.empty(); }));
}

// The coarsest tics of which enough are visible. A range so short that even all digits give too few gets linear steps.
void add_tics(Axis& axis, int most, bool whole) {
  constexpr int kEnough = 3, kDecadesOfTwo = 2;  // two labels are enough where decades lie between them
  if (axis.logarithmic && axis.base == 2) {
    add_powers_of_two(axis, most);
    if (labels(axis) >= 2) return;
  } else if (axis.logarithmic) {
    for (const std::set<int>& digits : {std::set<int>{1}, {1, 3}, {1, 2, 5}}) {
      axis.tics.clear();
      add_decades(axis, most, digits);
      if (labels(axis) >= (std::log10(axis.high / axis.low) > kDecadesOfTwo ? 2 : kEnough)) return;
    }
  }
  axis.tics.clear();
  add_linear_tics(axis, most, whole);
}

// What is counted (calls, ranks, layers): there is nothing between two of them.
bool whole_numbers(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::floor(value) == value; });
}

bool powers_of_two(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) {
    int exponent = 0;
    return value > 0 && std::frexp(value, &exponent) == 0.5;
  });
}

}  // namespace

double Axis::place(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Axis make_axis(const std::string& scale, std::span<const double> values, bool from_zero, int most) {
  Axis axis;
  double low = 1, high = 1;
  if (!values.empty()) {
    const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
    low = *smallest;
    high = *largest;
  }
  axis.logarithmic = scale == "log2" || scale == "log10" || (scale == "auto" && low > 0 && high / low > kAutoLogRatio);
  axis.base = scale == "log2" || (scale == "auto" && powers_of_two(values)) ? 2 : 10;
  if (axis.logarithmic) {
    // A single value is in the middle; the square root avoids both ends of the range of a double.
    const double factor = high > low ? std::pow(high / low, kMargin) : 2.0;
    axis.low = std::max(low / factor, 1e-300);
    axis.high = std::min(high * factor, 1e300);
  } else {
    if (from_zero && low >= 0) low = 0;
    const double length = high > low ? high - low : std::max(std::abs(high), 1.0);
    axis.low = from_zero && low == 0 ? 0 : low - kMargin * length;
    axis.high = high + kMargin * length;
  }
  add_tics(axis, most, whole_numbers(values));
  return axis;
}

void name_bytes(Axis& axis) {
  for (Tic& tic : axis.tics) {
    if (tic.label.empty()) continue;
    const std::string_view unit = fitting_unit(tic.at, "TiB");
    if (unit != "B") tic.label = fmt::format("{} {}", label_of(tic.at / bytes_in(unit).value_or(1)), unit);
  }
}

void thin_labels(Axis& axis, double width, double character, double gap) {
  double end = -std::numeric_limits<double>::infinity();
  for (Tic& tic : axis.tics) {
    if (tic.label.empty()) continue;
    const double half = static_cast<double>(characters(tic.label)) * character / 2, at = axis.place(tic.at) * width;
    if (at - half < end + gap) {
      tic.label.clear();
    } else {
      end = at + half;
    }
  }
}

std::vector<double> make_room_beside(Axis& axis, std::span<const std::string> texts, double slot, double width) {
  const double n = static_cast<double>(texts.size());
  const double part = std::min(slot / width, 0.5 / n);  // of the whole, for one of them
  const double length = 1 / (1 - n * part);             // of the whole, in lengths of the axis as it was
  const Axis inner = axis;
  const auto at = [&](double place) {
    return inner.logarithmic ? inner.low * std::pow(inner.high / inner.low, place)
                             : inner.low + (inner.high - inner.low) * place;
  };
  axis.low = at(1 - length);
  std::vector<double> places;
  std::vector<Tic> tics;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    places.push_back(at(1 - length + (static_cast<double>(i) + 0.5) * part * length));
    tics.push_back({places.back(), texts[i]});
  }
  axis.tics.insert(axis.tics.begin(), tics.begin(), tics.end());
  return places;
}

}  // namespace syslab::report
