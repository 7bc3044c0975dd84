// What a claim says: "me >= 1.10 x sdpa", one implementation is at least so many times as fast as another.
#pragma once

#include <string>
#include <string_view>

#include "verdict/speed.hpp"

namespace syslab::claim {

using verdict::Quantifier;

struct Statement {
  std::string faster, slower;  // sides: an implementation's name, or axes, "strategy=bucketed,bucket_mb=25"
  double factor = 1;           // the time of `slower` is at least so many times that of `faster`
  Quantifier quantifier = Quantifier::every_case;
};

// "FASTER >= FACTOR x SLOWER", with "in every case" (which may be left out) or "in geometric mean" behind it; "×" and
// "*" stand for x as well, and without "FACTOR x" the factor is 1. Error(usage) that shows the form.
Statement parse_statement(std::string_view text);

// `tolerance`, from 0 to below 1: how much less than claimed still counts as what was claimed.
verdict::SpeedBorder border_of(const Statement& statement, double tolerance);

// As a person writes it, whatever was typed, with the factor to its last digit: "me >= 1.1 x sdpa in every case".
std::string to_string(const Statement& statement);

}  // namespace syslab::claim
