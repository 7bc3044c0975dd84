// What a measured number is of, and which way is better. Comparisons keep a rate as the time of one unit, its
// reciprocal, so that `faster` has one meaning; people read the rate.
#pragma once

#include <string>

namespace syslab {

enum class Better { smaller, larger };

struct Quantity {
  std::string unit = "s";  // of a rate "TFLOP/s"
  Better better = Better::smaller;

  bool is_rate() const { return better == Better::larger; }
};

// A time, or the rate whose time of one unit `seconds` is: "3.33 ms", "300 TFLOP/s".
std::string text_of(const Quantity& quantity, double seconds);

}  // namespace syslab
