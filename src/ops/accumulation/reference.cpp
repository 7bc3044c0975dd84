// `reference`: the same sums in integers. A positive number of a format with p digits is m · 2^e with 2^(p-1) ≤ m <
// 2^p; 1/denominator is rounded from an exact quotient and remainder, and a sum from two exact integers on a common
// exponent. No floating-point operation decides a bit here, so neither the processor nor core/dtype.hpp can be wrong
// unnoticed.
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "ops/accumulation/rungs.hpp"

namespace syslab::accumulation {
namespace {

__extension__ using Wide = unsigned __int128;  // GCC and Clang; not in the standard

struct Format {
  int digits;         // of the significand, the hidden one included
  int exponent_bits;  // of the storage
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {24, 8};
    case DType::f16:
      return {11, 5};
    case DType::bf16:
      return {8, 8};
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::usage, "accumulation knows fp32, fp16 and bf16");
}

// m · 2^e; zero has m = 0.
struct Number {
  Wide m = 0;
  int e = 0;
};

int bit_length(Wide value) {
  int length = 0;
  for (; value != 0; value >>= 1) ++length;
  return length;
}

// Rounds to `digits` digits, to nearest, ties to even. `sticky`: the exact value lies a little above m.
Number round_to(Number value, int digits, bool sticky = false) {
  const int surplus = bit_length(value.m) - digits;
  if (surplus <= 0) return value;
  const Wide half = Wide{1} << (surplus - 1), mask = (Wide{1} << surplus) - 1;
  const Wide rest = value.m & mask;
  Wide kept = value.m >> surplus;
  if (rest > half || (rest == half && (sticky || (kept & 1) != 0))) ++kept;
  return {kept, value.e + surplus};
}

Number quotient(std::int64_t denominator, int digits) {
  constexpr int kScale = 96;  // far more digits than any format: the remainder only decides ties
  const Wide divisor = static_cast<Wide>(denominator), one = Wide{1} << kScale;
  return round_to({one / divisor, -kScale}, digits, one % divisor != 0);
}

Number sum_of(Number a, Number b, int digits) {
  if (a.m == 0) return round_to(b, digits);
  if (a.e < b.e) std::swap(a, b);
  if (a.e - b.e > 64) throw Error(ErrorKind::usage, "accumulation: sum and addend lie more than 2^64 apart");
  return round_to({(a.m << (a.e - b.e)) + b.m, b.e}, digits);
}

// The stored bits of a normal number: sign 0, biased exponent, digits after the hidden one.
std::uint32_t encode(Number value, const Format& format) {
  if (value.m == 0) return 0;
  const int shift = format.digits - bit_length(value.m);
  const auto significand = static_cast<std::uint32_t>(shift >= 0 ? value.m << shift : value.m >> -shift);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = value.e - shift + format.digits - 1 + bias;
  if (exponent < 1 || exponent >= (1 << format.exponent_bits) - 1) {
    throw Error(ErrorKind::usage, "accumulation: the sum leaves the normal numbers of its format");
  }
  return (static_cast<std::uint32_t>(exponent) << (format.digits - 1)) |
         (significand & ((1U << (format.digits - 1)) - 1));
}

double to_double(const Number& value) { return std::ldexp(static_cast<double>(value.m), value.e); }

bool equal(Number a, Number b) {
  if (a.m == 0 || b.m == 0) return a.m == b.m;
  if (a.e < b.e) std::swap(a, b);
  return a.e - b.e < 64 && (a.m << (a.e - b.e)) == b.m;
}

Result exact_sum(const Problem& problem) {
  const Format accumulator = format_of(problem.how.accumulator), addend = format_of(problem.how.addend);
  const Number constant = quotient(problem.denominator, addend.digits);
  Number total;
  Result result;
  for (std::int64_t i = 1; i <= problem.count; ++i) {
    const Number next = sum_of(total, constant, accumulator.digits);
    if (!equal(next, total)) result.last_change = i;
    total = next;
  }
  result.bits = encode(total, accumulator);
  result.value = to_double(total);
  result.addend = to_double(constant);
  return result;
}

}  // namespace

Rung reference_rung() {
  Rung rung;
  rung.name = "reference";
  rung.role = Role::reference;
  rung.teaches = "the same sums in integers: rounding written out";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.sum = exact_sum;
  return rung;
}

}  // namespace syslab::accumulation
