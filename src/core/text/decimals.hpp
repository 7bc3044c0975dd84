// How many decimals a number takes where it is printed next to a border.
#pragma once

namespace syslab {

// The fewest decimals, `usual` or more, with which the printed number is on that side of the border on which the number
// is: 1.0496 next to 1.05 takes four, since "1.050" is not below it. A number within 10⁻⁹ of the border is the border,
// and takes those that print it whole. 15 at most.
int decimals_beside(double value, double border, int usual);

}  // namespace syslab
