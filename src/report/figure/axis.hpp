// The range of an axis and the positions of its tics.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace syslab::report {

struct Tic {
  double at = 0;
  std::string label;  // empty: a small tic without one
};

struct Axis {
  bool logarithmic = false;
  double base = 10;  // of the logarithm
  double low = 0, high = 1;
  std::vector<Tic> tics;  // rising

  double place(double value) const;  // 0 at low, 1 at high
};

// An axis by a scale of the header (linear, log2, log10, auto) that holds all `values`; they must be finite, and
// positive for a logarithmic one. `from_zero`: a linear axis begins there, where no value is negative. Labels: about
// `most` at most, all told apart; where all values are whole numbers, those of a linear axis are, too.
Axis make_axis(const std::string& scale, std::span<const double> values, bool from_zero, int most);

// Calls tics of an axis of bytes "1 MiB" instead of 1048576.
void name_bytes(Axis& axis);
// Takes away labels that would come nearer than `gap` to the one before; `width` of the axis and of a character, in
// pixels.
void thin_labels(Axis& axis, double width, double character, double gap);

// Extends the axis downwards for texts next to it, each on `slot` of the axis's `width` pixels, or on less if they
// would take more than half. Returns their positions, which become tics.
std::vector<double> make_room_beside(Axis& axis, std::span<const std::string> texts, double slot, double width);

}  // namespace syslab::report
