#include "report/writers/tex_number.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syslab::report {
namespace {

// The part of a text that has not been read yet.
class Rest {
 public:
  explicit Rest(std::string_view text) : text_(text) {}

  bool empty() const { return text_.empty(); }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string take_digits() {
    const std::string digits(text_.substr(0, text_.find_first_not_of("0123456789")));
    text_.remove_prefix(digits.size());
    return digits;
  }

 private:
  std::string_view text_;
};

// "12" or "12.5" at the front; false where there is none or a point is followed by no digit.
bool take_decimal(Rest& rest, std::string& whole, std::string& decimals) {
  whole = rest.take_digits();
  if (whole.empty()) return false;
  if (!rest.take(".")) return true;
  decimals = rest.take_digits();
  return !decimals.empty();
}

}  // namespace

std::optional<TexNumber> tex_number(std::string_view text) {
  Rest rest(text);
  TexNumber number;
  number.negative = rest.take("-");
  std::string whole, decimals;
  if (!take_decimal(rest, whole, decimals)) return std::nullopt;
  number.whole = whole.size();
  number.decimals = decimals.size();
  number.text = (number.negative ? "-" : "") + whole + (decimals.empty() ? "" : "." + decimals);
  if (rest.take(" ± ")) {
    std::string of_whole, of_decimals;
    if (!take_decimal(rest, of_whole, of_decimals)) return std::nullopt;
    if (of_decimals.size() != decimals.size()) return std::nullopt;  // "1.234 ± 0"
    std::string digits = of_whole + of_decimals;
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
    number.uncertainty = digits.size();
    number.text += "(" + digits + ")";
  } else if (rest.take("e")) {
    number.negative_exponent = rest.take("-");
    const std::string sign = number.negative_exponent ? "-" : rest.take("+") ? "+" : "";
    const std::string digits = rest.take_digits();
    if (digits.empty()) return std::nullopt;
    number.exponent = digits.size();
    number.text += "e" + sign + digits;
  }
  if (!rest.empty()) return std::nullopt;
  return number;
}

std::string number_column(std::span<const TexNumber> numbers) {
  TexNumber widest;
  for (const TexNumber& number : numbers) {
    widest.whole = std::max(widest.whole, number.whole);
    widest.decimals = std::max(widest.decimals, number.decimals);
    widest.uncertainty = std::max(widest.uncertainty, number.uncertainty);
    widest.exponent = std::max(widest.exponent, number.exponent);
    widest.negative = widest.negative || number.negative;
    widest.negative_exponent = widest.negative_exponent || number.negative_exponent;
  }
  std::string format = fmt::format("{}{}.{}", widest.negative ? "-" : "", widest.whole, widest.decimals);
  if (widest.uncertainty > 0) format += fmt::format("({})", widest.uncertainty);
  if (widest.exponent > 0) format += fmt::format("e{}{}", widest.negative_exponent ? "-" : "", widest.exponent);
  return "S[table-format=" + format + "]";
}

}  // namespace syslab::report
