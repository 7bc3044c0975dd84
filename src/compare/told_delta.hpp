// Which --delta an interval already decides: above or below all of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/loss.hpp"

namespace syslab::cli {

// Rounded to two digits of a percent, away from the interval. Nothing: the end does not lie above no loss.
std::optional<double> delta_above(const stats::Interval& log_ratio);
std::optional<double> delta_below(const stats::Interval& log_ratio);
// Above what a part has lost and below the whole loss: a larger one ends a search as `not slower`, before it looks at
// parts.
std::optional<double> delta_within(const stats::Interval& of_part, const Change& whole);

// Of those that are given, each that decides about the whole loss, too, and is not more than anybody asks for:
// "--delta 9.1% or --delta 22% would tell now."; empty: none.
std::string would_tell_now(const std::vector<std::optional<double>>& deltas, const Change& whole);

// "9.1%", as the option takes it.
std::string delta_option(double delta);

}  // namespace syslab::cli
