// Numbers as siunitx reads them, and the column that has room for them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace syslab::report {

// A number and the digits of each of its parts.
struct TexNumber {
  std::string text;  // "1.234(5)", "1.0e-05"
  std::size_t whole = 0, decimals = 0, uncertainty = 0, exponent = 0;
  bool negative = false, negative_exponent = false;
};

// Of "-12", "1.25", "1.234 ± 0.005" (as many decimals on both sides) and "1.0e-05"; nothing of any other text.
std::optional<TexNumber> tex_number(std::string_view text);

// "S[table-format=-3.2(2)e-2]": room for the widest of each part.
std::string number_column(std::span<const TexNumber> numbers);

}  // namespace syslab::report
