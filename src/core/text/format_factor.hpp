#pragma once

#include <string>

namespace syslab {

// So many times: "1.204", "2.41", "12.3", "123", "0.0512". Three digits, and around one so many that a part in a
// thousand shows.
std::string factor_text(double factor);

// The same with so many more digits that it compares with the border as printed (core/text/decimals.hpp). Of the border
// itself: all of its digits.
std::string factor_text(double factor, double border);

}  // namespace syslab
