// Adds a small constant many times in different precisions: the exact cost of the accumulator's precision.
//
// Source: CS336 assignment 2, mixed_precision_accumulation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ops/rung.hpp"

namespace syslab::accumulation {

// One way of adding. The first four are those of the hand-out, in its order.
struct Case {
  std::string name;
  DType accumulator;       // the running sum is rounded to this after every addition
  DType addend;            // the constant is rounded to this once
  bool converted = false;  // the addend is converted to the accumulator's type before the loop, not in each addition
  std::string says;        // one line: what the case shows
};

std::span<const Case> cases();
// Error(usage) with the nearest names if there is none.
const Case& find_case(std::string_view name);

// `count` additions of 1/denominator: 0.01 a thousand times.
struct Problem {
  Case how;
  std::int64_t denominator = 100;
  std::int64_t count = 1000;

  double exact() const { return static_cast<double>(count) / static_cast<double>(denominator); }
};

struct Result {
  std::uint32_t bits = 0;        // of the sum in the accumulator's type
  double value = 0;              // of those bits, exact
  double addend = 0;             // the constant after rounding to its type, exact
  std::int64_t last_change = 0;  // the last addition that changed the sum; if below `count`, the sum stalled
};

// The sum's bits in hexadecimal: "0x4120008c" for fp32, "0x48fa" for 16-bit types.
std::string bits_text(const Result& result, DType accumulator);

struct Rung : RungInfo {
  std::function<Result(const Problem&)> sum;
};

// `reference` computes with integers alone; all rungs give the same bits.
std::span<const Rung> ladder();
const Rung& find_rung(std::string_view name);

}  // namespace syslab::accumulation
