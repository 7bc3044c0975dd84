#include "core/text/utc_time.hpp"

#include <algorithm>
#include <string>

namespace syslab {

std::optional<std::chrono::sys_seconds> utc_from(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z", kFraction = ".000";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string plain(text);
  if (plain.size() == kForm.size() + kFraction.size()) {
    const std::string fraction = plain.substr(kForm.size() - 1, kFraction.size());
    if (fraction[0] != '.' || !std::all_of(fraction.begin() + 1, fraction.end(), is_digit)) return std::nullopt;
    plain.erase(kForm.size() - 1, kFraction.size());
  }
  if (plain.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !is_digit(plain[i]) : plain[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) { return std::stoi(plain.substr(at, digits)); };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return std::chrono::sys_days(day) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace syslab
