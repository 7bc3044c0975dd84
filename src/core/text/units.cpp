#include "core/text/units.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include "core/text/text.hpp"

namespace syslab {
namespace {

struct Scale {
  std::string_view suffix;
  double factor;
};

// Three significant digits: "1.23", "12.3", "123".
std::string three_digits(double value) {
  const double size = std::abs(value);
  // The thresholds are where rounding carries into the next digit.
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

// The leading number of `text`, removed from it. Signs, "inf" and "nan" are no numbers here.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string_view take_spaces(std::string_view text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  return text;
}

std::string format_magnitude(std::uint64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (value < 999.5e3) return three_digits(value / 1e3) + " us";
  if (value < 999.5e6) return three_digits(value / 1e6) + " ms";
  if (value < 59.95e9) return three_digits(value / 1e9) + " s";
  const std::uint64_t seconds = (ns + 500'000'000) / 1'000'000'000;
  if (seconds < 3600) return fmt::format("{} m {} s", seconds / 60, seconds % 60);
  const std::uint64_t minutes = (seconds + 30) / 60;
  return fmt::format("{} h {} m", minutes / 60, minutes % 60);
}

}  // namespace

std::string format_duration(Nanoseconds duration) {
  // The smallest number has no opposite among the signed ones.
  const std::uint64_t ns = duration.count() < 0 ? 0 - static_cast<std::uint64_t>(duration.count())
                                                : static_cast<std::uint64_t>(duration.count());
  if (duration.count() < 0) return "-" + format_magnitude(ns);
  return format_magnitude(ns);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<Scale, 4> kBinary{{{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}}};
  for (const Scale& scale : kBinary) {
    const double value = static_cast<double>(bytes) / scale.factor;
    if (value >= 1.0) return fmt::format("{:.2f} {} ({} B)", value, scale.suffix, bytes);
  }
  return fmt::format("{} B", bytes);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<Scale, 10> kSuffixes{{{"Ki", 0x1p10},
                                             {"Mi", 0x1p20},
                                             {"Gi", 0x1p30},
                                             {"Ti", 0x1p40},
                                             {"k", 1e3},
                                             {"K", 1e3},
                                             {"M", 1e6},
                                             {"G", 1e9},
                                             {"T", 1e12},
                                             {"", 1}}};
  // Whole numbers go through integers: beyond 2^53 a double would round them.
  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  std::string_view rest = text;
  std::optional<double> fraction;
  if (error == std::errc{} && (end == text.data() + text.size() || (*end != '.' && *end != 'e'))) {
    rest.remove_prefix(static_cast<std::size_t>(end - text.data()));
  } else if (fraction = take_number(rest); !fraction) {
    return std::nullopt;
  }
  rest = take_spaces(rest);
  if (!rest.empty() && rest.back() == 'B') rest.remove_suffix(1);
  for (const Scale& scale : kSuffixes) {
    if (rest != scale.suffix) continue;
    if (!fraction) {
      const auto factor = static_cast<std::uint64_t>(scale.factor);
      if (whole > UINT64_MAX / factor) return std::nullopt;
      return whole * factor;
    }
    const double bytes = *fraction * scale.factor;
    if (bytes >= 0x1p63 || bytes != std::floor(bytes)) return std::nullopt;  // "1.5" bytes are none
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  constexpr std::array<Scale, 10> kSuffixes{{{"ns", 1},
                                             {"us", 1e3},
                                             {"µs", 1e3},
                                             {"ms", 1e6},
                                             {"s", 1e9},
                                             {"m", 60e9},
                                             {"min", 60e9},
                                             {"h", 3600e9},
                                             {"d", 86400e9},
                                             {"", 1e9}}};
  double total = 0;
  std::string_view rest = take_spaces(text);
  if (rest.empty()) return std::nullopt;
  while (!rest.empty()) {
    const std::optional<double> number = take_number(rest);
    if (!number) return std::nullopt;
    rest = take_spaces(rest);
    const std::string_view unit = rest.substr(0, rest.find_first_of(" .0123456789"));
    if (unit.empty() && !rest.empty()) return std::nullopt;  // a bare number of seconds stands last
    bool known = false;
    for (const Scale& scale : kSuffixes) {
      if (unit != scale.suffix) continue;
      total += *number * scale.factor;
      known = true;
    }
    if (!known) return std::nullopt;
    rest = take_spaces(rest.substr(unit.size()));
  }
  if (!(total < 9.2e18)) return std::nullopt;
  return Nanoseconds(std::llround(total));
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z", fmt::gmtime(seconds), milliseconds % 1000);
}

}  // namespace syslab
